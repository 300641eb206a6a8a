package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// An undo log is a [journal] with one record for each document that is about to be changed. The record
// is on disk before the server is asked to change anything. It stays if the server does not make the
// change because another program was faster. If the document is then planned anew, a later record
// about it has "again". The command show writes an undo log as text.
const undoFormat = "bsonids undo log 4, see: bsonids show FILE\n"

var errNoUndoLog = errors.New("not an undo log of this version")

// Header is the first record of an undo log, in JSON.
type Header struct {
	ID string `json:"id"` // random, 16 hexadecimal digits
	// For a person: the ledger has what counts.
	Database string     `json:"database"`
	Task     kinds.Task `json:"conversion"`
}

// Entry is the record of an undo log about one document.
type Entry struct {
	ID      bson.RawValue
	Changes []rule.Change
	Again   bool  // earlier entries about the document are void
	offset  int64 // in the file
}

// The first byte of a record says that it is an entry. The rest is:
//
//	flags, the type of _id: a byte each
//	length and bytes of _id
//	for each change: length and bytes of the path, the old value, the new value
//
// A value is 0, its subtype and 16 bytes, or its length with its type, its type, and itself in BSON. The lengths
// are unsigned varints.
const (
	entryRecord = 1

	flagAgain = 1
)

func appendEntry(b []byte, p Planned, again bool) []byte {
	flags := byte(0)
	if again {
		flags = flagAgain
	}
	b = appendBytes(append(b, entryRecord, flags, byte(p.ID.Type)), string(p.ID.Value))
	for _, changes := range [2][]rule.Change{p.Changes, p.kept} {
		for _, ch := range changes {
			b = appendStored(appendStored(appendBytes(b, ch.Path), ch.Old), ch.New)
		}
	}
	return b
}

func appendStored(b []byte, v rule.Value) []byte {
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
