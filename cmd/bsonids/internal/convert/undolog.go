package convert

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// An undo log has a header line, then one line in canonical extended JSON for each document that is
// about to be changed. The line is on disk before the server is asked to change anything. The line
// stays if the server does not make the change because another program was faster. If the document
// is then planned anew, a later line about it has "again". Lines at the end record that undo began
// to restore the values, and that it finished.
//
//	{"bsonids":"undo log 2","id":"…","conversion":{…},"state":"…","crc":"…"}
//	{"_id":{"$oid":"…"},"changes":[{"path":"items.0.id","old":{"$binary":{…}},"new":{"$binary":{…}}}],"crc":"…"}
//	{"undo":"begun","at":"…","crc":"…"}
//
// Logs of the first format have no checksums. They are read but not written.
const (
	undoFormat  = "undo log 2"
	undoFormat1 = "undo log 1"
)

var errNoUndoLog = fmt.Errorf("not an undo log of a supported version: it does not begin with %q", undoFormat)

// Header is the first line of an undo log.
type Header struct {
	Format   string   `json:"bsonids"`
	ID       string   `json:"id"` // random, 16 hexadecimal digits
	Identity Identity `json:"conversion"`
	State    string   `json:"state,omitempty"` // path of the state file
}

// Checked reports whether the lines have checksums.
func (h Header) Checked() bool { return h.Format != undoFormat1 }

// Mark is a line that records that undo began to restore the values, or that it finished.
type Mark struct {
	Undo string `json:"undo"` // begun or done
	At   string `json:"at"`   // RFC 3339
}

const (
	undoBegun  = "begun"
	undoDone   = "done"
	markPrefix = `{"undo":`
)

func (m Mark) String() string {
	if m.Undo == undoDone {
		return "the conversion was undone on " + m.At
	}
	return "an undo that began on " + m.At + " has not finished"
}

// Entry is the line of an undo log about one document.
type Entry struct {
	ID      bson.RawValue
	Changes []Change // without Field
	Again   bool     // earlier lines about the document are void
	from    byte
	to      byte
	offset  int64 // in the file
}

// ParseEntry parses one line of an undo log. The error describes what is wrong with the line.
func ParseEntry(line []byte) (Entry, error) {
	var doc struct {
		ID      bson.RawValue `bson:"_id"`
		Changes []struct {
			Path     string
			Old, New bson.RawValue
		}
		Again bool
	}
	if err := unmarshalLine(line, &doc); err != nil {
		return Entry{}, fmt.Errorf("invalid line of an undo log: %w", err)
	}
	if doc.ID.Type == 0 || len(doc.Changes) == 0 {
		return Entry{}, errors.New("invalid line of an undo log: no _id or no changes")
	}
	e := Entry{ID: doc.ID, Again: doc.Again}
	known := false // the kind of the new values
	for i, ch := range doc.Changes {
		from, old, oldValue, ok := storedIn(ch.Old)
		to, fresh, freshValue, ok2 := storedIn(ch.New)
		isNull := kinds.FormOf(from) == kinds.Struct && ch.New.Type == bson.TypeNull
		switch {
		case isNull:
			to, freshValue, ok2 = e.to, null, true
		case !known:
			e.to, known = to, true
		}
		if i == 0 {
			e.from = from
		}
		if ch.Path == "" || !ok || !ok2 || from != e.from || to != e.to {
			return Entry{}, errors.New("invalid line of an undo log: a change without a path, or with a value that is no UUID of 16 bytes")
		}
		e.Changes = append(e.Changes, Change{Path: ch.Path, Old: old, New: fresh, OldValue: oldValue, NewValue: freshValue})
	}
	return e, nil
}

// storedIn reads a value of an undo log: binary, or of another form. The number is that of its kind in
// the place of the subtype.
func storedIn(v bson.RawValue) (number byte, octets [16]byte, value Value, ok bool) {
	if subtype, data, ok := v.BinaryOK(); ok && len(data) == 16 {
		return subtype, [16]byte(data), "", true
	}
	k, s, ok := kinds.Formed(walk.Leaf{Type: v.Type, Value: v.Value})
	if !ok {
		return 0, octets, "", false
	}
	return k.Subtype, s.UUID, valueOf(v.Type, v.Value), true
}

// readHeader returns the header and the offset of its end.
func readHeader(r *bufio.Reader) (Header, int64, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return Header{}, 0, errors.New("not an undo log: no first line")
	}
	var h Header
	err = json.Unmarshal(line, &h)
	switch {
	case err == nil && h.Format == undoFormat1 && h.ID != "":
	case bytes.HasPrefix(line, []byte(`{"bsonids":"`+undoFormat+`"`)):
		if err := sealed(line[:len(line)-1], "", 0); err != nil {
			return Header{}, 0, fmt.Errorf("line 1: %w", err)
		}
	default:
		return Header{}, 0, errNoUndoLog
	}
	return h, int64(len(line)), nil
}

func appendEntry(b []byte, p Plan, from, to byte, again bool) ([]byte, error) {
	b, err := appendID(append(b, `{"_id":`...), p.ID)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"changes":[`...)
	for i, ch := range slices.Concat(p.Changes, p.kept) {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendPath(append(b, `{"path":`...), ch.Path); err != nil {
			return nil, err
		}
		if b, err = appendJSON(append(b, `,"old":`...), from, ch.Old, ch.OldValue); err != nil {
			return nil, err
		}
		if b, err = appendJSON(append(b, `,"new":`...), to, ch.New, ch.NewValue); err != nil {
			return nil, err
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if again {
		b = append(b, `,"again":true`...)
	}
	return append(b, '}'), nil
}

// appendJSON appends a binary value, or the value v if it is not empty.
func appendJSON(b []byte, subtype byte, octets [16]byte, v Value) ([]byte, error) {
	if v == "" {
		return appendBinary(b, subtype, octets), nil
	}
	text, err := extJSON(v.Raw())
	return append(b, text...), err
}

func appendBinary(b []byte, subtype byte, octets [16]byte) []byte {
	b = append(b, `{"$binary":{"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, octets[:])
	b = append(b, `","subType":"`...)
	return append(hex.AppendEncode(b, []byte{subtype}), `"}}`...)
}

// appendPath appends a path as JSON.
func appendPath(b []byte, path string) ([]byte, error) {
	if plain(path) {
		return append(append(append(b, '"'), path...), '"'), nil
	}
	text, err := json.Marshal(path)
	return append(b, text...), err
}

// appendID appends an _id in canonical extended JSON, as [extJSON] returns it. The usual types are
// written here, because each document has an _id, and extJSON takes more time than all else that
// convert does for a document.
func appendID(b []byte, id bson.RawValue) ([]byte, error) {
	switch id.Type {
	case bson.TypeObjectID:
		oid := id.ObjectID()
		return append(hex.AppendEncode(append(b, `{"$oid":"`...), oid[:]), `"}`...), nil
	case bson.TypeInt32:
		return append(strconv.AppendInt(append(b, `{"$numberInt":"`...), int64(id.Int32()), 10), `"}`...), nil
	case bson.TypeInt64:
		return append(strconv.AppendInt(append(b, `{"$numberLong":"`...), id.Int64(), 10), `"}`...), nil
	case bson.TypeBinary:
		if subtype, data := id.Binary(); len(data) == 16 && subtype != bson.TypeBinaryBinaryOld {
			return appendBinary(b, subtype, [16]byte(data)), nil
		}
	case bson.TypeString:
		if s := id.StringValue(); plain(s) {
			return append(append(append(b, '"'), s...), '"'), nil
		}
	}
	text, err := extJSON(id)
	return append(b, text...), err
}

// plain reports whether JSON has s as it is: s is printable ASCII without characters that are
// escaped, in any style.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// extJSON returns v in canonical extended JSON, on one line.
func extJSON(v bson.RawValue) ([]byte, error) {
	b, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
	if err != nil {
		return nil, err
	}
	return b[len(`{"v":`) : len(b)-1], nil
}

// keepsID reports whether an _id survives a round trip through extended JSON. Text that is not
// UTF-8 and some unusual numbers do not.
func keepsID(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64, bson.TypeDateTime, bson.TypeBoolean:
		return true
	case bson.TypeBinary:
		if subtype, data := v.Binary(); len(data) == 16 && subtype != bson.TypeBinaryBinaryOld {
			return true
		}
	case bson.TypeString:
		if plain(v.StringValue()) {
			return true
		}
	}
	p := Plan{ID: v, Changes: []Change{{Path: "a"}}}
	line, err := appendEntry(nil, p, 3, 4, false)
	if err != nil {
		return false
	}
	e, err := ParseEntry(line)
	return err == nil && e.ID.Equal(v)
}

// keepsPaths reports whether the paths survive a round trip through JSON, which is UTF-8.
func keepsPaths(changes []Change) bool {
	return !slices.ContainsFunc(changes, func(ch Change) bool { return !utf8.ValidString(ch.Path) })
}
