// Package undolog keeps the old values of a conversion. Each run that converts in place writes a log of its own, named by
// its random id, and no other run appends to it, except that an undo notes at the end that it has restored the values. A
// log is understood by itself: its header says what the run was about.
package undolog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// A log is a [journal] with one record for each document that is about to be changed. The record is on disk before the
// server is asked to change anything. It stays if the server does not make the change because another program was faster.
// If the document is then planned anew, a later record about it has "again". The command show writes a log as text.
const format = "bsonids undo log 5, see: bsonids show FILE\n"

// ErrFormat is wrapped by the error of a file that is not an undo log of this version.
var ErrFormat = errors.New("not an undo log of this version")

// Header is the first record of a log, in JSON.
type Header struct {
	Run            string        `json:"run"`     // random id of the run, which the record has, too
	Started        time.Time     `json:"started"` // by the server
	Database       string        `json:"database"`
	Task           kinds.Task    `json:"conversion"`
	CollectionUUID string        `json:"collectionUUID,omitempty"` // in hexadecimal digits; empty if the server gives none
	Limit          time.Duration `json:"limit"`                    // of a batch, in nanoseconds
}

// Entry is the record of a log about one document.
type Entry struct {
	ID      bson.RawValue
	Changes []rule.Change
	Again   bool // earlier entries of the log about the document are void
	At      Place
}

// Place is where an entry is. Of two entries, the one in the later log is later, and of those in one log, the one with the
// larger offset.
type Place struct {
	Log    int // the index of the log in [Logs]
	Offset int64
}

// Before reports whether an entry at p is earlier than one at o.
func (p Place) Before(o Place) bool { return p.Log < o.Log || p.Log == o.Log && p.Offset < o.Offset }

// The first byte of a record says that it is an entry. The rest is:
//
//	flags, the type of _id: a byte each
//	length and bytes of _id
//	for each change: length and bytes of the path, the old value, the new value
//
// A value is 0, its subtype and 16 bytes, or its length with its type, its type, and itself in BSON. The lengths
// are unsigned varints. The other record is [Undone] in JSON.
const (
	entryRecord  = 1
	undoneRecord = 2

	flagAgain = 1
)

func appendEntry(b []byte, e Entry) []byte {
	flags := byte(0)
	if e.Again {
		flags = flagAgain
	}
	b = appendBytes(append(b, entryRecord, flags, byte(e.ID.Type)), string(e.ID.Value))
	for _, ch := range e.Changes {
		b = AppendValue(AppendValue(appendBytes(b, ch.Path), ch.Old), ch.New)
	}
	return b
}

// AppendValue appends a value as an entry has it.
func AppendValue(b []byte, v rule.Value) []byte {
	if v.Other == "" {
		return append(append(b, 0, v.Subtype), v.Octets[:]...)
	}
	return appendBytes(b, v.Other)
}

func appendBytes(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errEntry = errors.New("invalid entry of an undo log")

// ParseEntry parses the record of an entry. The error describes what is wrong with it.
func ParseEntry(record []byte) (e Entry, err error) {
	r := fields{b: record}
	head := r.take(3)
	if r.short || head[0] != entryRecord || head[1]&^flagAgain != 0 {
		return Entry{}, errEntry
	}
	e.Again = head[1] == flagAgain
	e.ID = bson.RawValue{Type: bson.Type(head[2]), Value: slices.Clone(r.bytes())}
	if r.short || e.ID.Type == 0 || e.ID.Validate() != nil {
		return Entry{}, fmt.Errorf("%w: the _id is not a value", errEntry)
	}
	e.Changes = make([]rule.Change, 0, len(r.b)/40)
	for len(r.b) > 0 && !r.short {
		ch := rule.Change{Path: string(r.bytes()), Old: r.value(), New: r.value()}
		r.short = r.short || ch.Path == ""
		e.Changes = append(e.Changes, ch)
	}
	if r.short || len(e.Changes) == 0 {
		return Entry{}, errEntry
	}
	return e, nil
}

// fields reads the parts of a record.
type fields struct {
	b     []byte
	short bool // something is missing or is not as it must be
}

// take returns the next n bytes, or zeros if there are fewer.
func (r *fields) take(n int) []byte {
	if r.short || len(r.b) < n {
		r.short = true
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// bytes returns bytes behind their length.
func (r *fields) bytes() []byte {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > uint64(len(r.b)-size) {
		r.short = true
		return nil
	}
	r.b = r.b[size:]
	return r.take(int(n))
}

// value returns a value.
func (r *fields) value() (v rule.Value) {
	other := r.bytes()
	if len(other) == 0 {
		b := r.take(17)
		return rule.Value{Subtype: b[0], Octets: [16]byte(b[1:])}
	}
	raw := bson.RawValue{Type: bson.Type(other[0]), Value: other[1:]}
	v = rule.ValueOf(raw.Type, raw.Value)
	if raw.Validate() != nil || v.Other == "" { // a binary value has one form only
		r.short = true
	}
	return v
}
