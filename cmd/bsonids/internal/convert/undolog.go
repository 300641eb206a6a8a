package convert

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// An undo log is a [journal] with one record for each document that is about to be changed. The record
// is on disk before the server is asked to change anything. It stays if the server does not make the
// change because another program was faster. If the document is then planned anew, a later record
// about it has "again". Records at the end tell that undo began to restore the values, and that it
// finished. The command show writes an undo log as text.
const undoFormat = "bsonids undo log 3, see: bsonids show FILE\n"

var errNoUndoLog = errors.New("not an undo log of this version")

// Header is the first record of an undo log, in JSON.
type Header struct {
	ID       string   `json:"id"` // random, 16 hexadecimal digits
	Identity Identity `json:"conversion"`
	State    string   `json:"state,omitempty"` // path of the state file
}

// Mark is a record that tells that undo began to restore the values, or that it finished.
type Mark struct {
	Undo string `json:"undo"` // begun or done
	At   string `json:"at"`   // RFC 3339
}

const (
	undoBegun = "begun"
	undoDone  = "done"
)

func (m Mark) String() string {
	if m.Undo == undoDone {
		return "the conversion was undone on " + m.At
	}
	return "an undo that began on " + m.At + " has not finished"
}

// Entry is the record of an undo log about one document.
type Entry struct {
	ID      bson.RawValue
	Changes []rule.Change // without Field
	Again   bool          // earlier entries about the document are void
	from    byte
	to      byte
	offset  int64 // in the file
}

// The first byte of a record says what it is. The rest of a mark is JSON. The rest of an entry is:
//
//	flags, the subtypes of the old and the new values, the type of _id: a byte each
//	length and bytes of _id
//	for each change: flags, length and bytes of the path,
//	  16 bytes of the old value, then its length and itself if it is not binary,
//	  and the same of the new value
//
// The lengths are unsigned varints.
const (
	entryRecord = 1
	markRecord  = 2

	flagAgain    = 1
	flagOldValue = 1
	flagNewValue = 2
)

func appendEntry(b []byte, p Planned, from, to byte, again bool) []byte {
	flags := byte(0)
	if again {
		flags = flagAgain
	}
	b = appendBytes(append(b, entryRecord, flags, from, to, byte(p.ID.Type)), string(p.ID.Value))
	for _, changes := range [2][]rule.Change{p.Changes, p.kept} {
		for _, ch := range changes {
			flags := byte(0)
			if ch.OldValue != "" {
				flags |= flagOldValue
			}
			if ch.NewValue != "" {
				flags |= flagNewValue
			}
			b = append(appendBytes(append(b, flags), ch.Path), ch.Old[:]...)
			if ch.OldValue != "" {
				b = appendBytes(b, string(ch.OldValue))
			}
			b = append(b, ch.New[:]...)
			if ch.NewValue != "" {
				b = appendBytes(b, string(ch.NewValue))
			}
		}
	}
	return b
}

func appendBytes(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errEntry = errors.New("invalid entry of an undo log")

// ParseEntry parses the record of an entry. The error describes what is wrong with it.
func ParseEntry(record []byte) (e Entry, err error) {
	r := fields{b: record}
	head := r.take(5)
	if r.short || head[0] != entryRecord || head[1]&^flagAgain != 0 {
		return Entry{}, errEntry
	}
	e.Again, e.from, e.to = head[1] == flagAgain, head[2], head[3]
	e.ID = bson.RawValue{Type: bson.Type(head[4]), Value: slices.Clone(r.bytes())}
	if r.short || e.ID.Type == 0 || e.ID.Validate() != nil {
		return Entry{}, fmt.Errorf("%w: the _id is not a value", errEntry)
	}
	e.Changes = make([]rule.Change, 0, len(r.b)/40)
	for len(r.b) > 0 && !r.short {
		flags := r.take(1)[0]
		ch := rule.Change{Path: string(r.bytes()), Old: [16]byte(r.take(16))}
		if flags&flagOldValue != 0 {
			ch.OldValue = r.value()
		}
		ch.New = [16]byte(r.take(16))
		if flags&flagNewValue != 0 {
			ch.NewValue = r.value()
		}
		r.short = r.short || flags&^(flagOldValue|flagNewValue) != 0 || ch.Path == ""
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

// value returns a BSON value with its type.
func (r *fields) value() rule.Value {
	v := rule.Value(r.bytes())
	if v == "" || v.Raw().Validate() != nil {
		r.short = true
		return ""
	}
	return v
}

// parseMark returns the mark if the record is one, and nil if it is an entry.
func parseMark(record []byte) (*Mark, error) {
	if len(record) == 0 || record[0] != markRecord {
		return nil, nil
	}
	var m Mark
	err := json.Unmarshal(record[1:], &m)
	return &m, err
}
