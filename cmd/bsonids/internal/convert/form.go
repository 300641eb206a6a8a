package convert

import (
	"encoding/binary"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Value is a value of a document that is not binary: the byte of its type, and the value itself in
// BSON. It is empty if the value is binary, which its subtype and its 16 bytes describe.
type Value string

func valueOf(t bson.Type, b []byte) Value { return Value(append([]byte{byte(t)}, b...)) }

// null is the value null.
const null = Value(bson.TypeNull)

// textOf returns the text of a UUID in its canonical spelling.
func textOf(u [16]byte) Value {
	var b [1 + 4 + 37]byte
	b[0] = byte(bson.TypeString)
	binary.LittleEndian.PutUint32(b[1:], 37)
	copy(b[5:], uuid.UUID(u).String())
	return Value(b[:])
}

// Raw returns the value as the type of the driver.
func (v Value) Raw() bson.RawValue { return bson.RawValue{Type: bson.Type(v[0]), Value: []byte(v[1:])} }

// located is a value that a conversion applies to.
type located struct {
	octets [16]byte // in the order of From
	value  Value
	// certain and null are as in kinds.Spelled. If unfit is not empty, it says why the value is not a
	// UUID; the conversion never converts it.
	certain, null bool
	unfit         string
}

// find returns the value if the conversion applies to it. It copies a value that is not binary.
func (c Conversion) find(p *walk.Path, l walk.Leaf) (v located, ok bool) {
	if c.From.IsBinary() {
		v.octets, _, ok = c.wants(p, l)
		return v, ok
	}
	if !c.From.Form.Applies(l) || !c.Selects(p) {
		return v, false
	}
	return c.read(l), true
}

// read reads a value of the form of From.
func (c Conversion) read(l walk.Leaf) located {
	s, reason, _ := c.From.Form.Parse(l)
	return located{octets: s.UUID, certain: s.Certain, null: s.Null, value: valueOf(l.Type, l.Value), unfit: reason}
}

// reread returns the value that a Change or a Left has.
func (c Conversion) reread(octets [16]byte, v Value) located {
	if v == "" {
		return located{octets: octets}
	}
	return c.read(walk.Leaf{Type: bson.Type(v[0]), Value: []byte(v[1:])})
}

// walk calls visit for the values of doc, and for the documents that find may return.
func (c Conversion) walk(doc []byte, visit func(*walk.Path, walk.Leaf) error) error {
	if c.From.Form != kinds.Struct {
		return walk.Document(doc, visit) // without an allocation for each document
	}
	return c.From.Form.Walk(doc, c.Selects, visit)
}

// judge returns the reason for which a value of the field is not converted, or "".
func (c Conversion) judge(field []byte, v located) string {
	switch {
	case v.unfit != "":
		return v.unfit
	case c.From.IsBinary():
		return c.Judge.Value(field, v.octets)
	}
	return c.Judge.Formed(field, kinds.Spelled{UUID: v.octets, Certain: v.certain})
}

// fresh returns the converted value.
func (c Conversion) fresh(v located) ([16]byte, Value) {
	octets := c.octets(v.octets)
	switch {
	case v.null:
		return octets, null
	case c.To.Form == kinds.Text:
		return octets, textOf(octets)
	}
	return octets, ""
}

// isNew reports whether the value is one that the conversion may have written.
func (c Conversion) isNew(p *walk.Path, l walk.Leaf) (octets [16]byte, value Value, ok bool) {
	if !c.To.IsBinary() {
		s, _, ok := c.To.Form.Parse(l)
		if !ok || !c.Selects(p) {
			return octets, "", false
		}
		return s.UUID, valueOf(l.Type, l.Value), true
	}
	subtype, data, _, ok := l.Binary()
	if !ok || subtype != c.To.Subtype || len(data) != 16 || !c.Selects(p) {
		return octets, "", false
	}
	return [16]byte(data), "", true
}

// edit returns the change of the value at the offset of its document to the converted one.
func (c Conversion) edit(offset int, octets [16]byte, value Value) walk.Edit {
	if value != "" {
		raw := value.Raw()
		return walk.Edit{Offset: offset, Type: raw.Type, Value: raw.Value}
	}
	b := append(make([]byte, 0, 21), 16, 0, 0, 0, c.To.Subtype)
	return walk.Edit{Offset: offset, Type: bson.TypeBinary, Value: append(b, octets[:]...)}
}
