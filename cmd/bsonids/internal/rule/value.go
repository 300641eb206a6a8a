package rule

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

// ValueOf returns the Value of the type and the bytes, which it copies.
func ValueOf(t bson.Type, b []byte) Value { return Value(append([]byte{byte(t)}, b...)) }

// Null is the value null.
const Null = Value(bson.TypeNull)

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

// Walk calls visit for the values of doc, and for the documents to which the conversion may apply.
func (c Conversion) Walk(doc []byte, visit func(*walk.Path, walk.Leaf) error) error {
	if c.From.Form != kinds.Struct {
		return walk.Document(doc, visit) // without an allocation for each document
	}
	return c.From.Form.Walk(doc, c.Selects, visit)
}

// IsNew reports whether the value is one that the conversion may have written.
func (c Conversion) IsNew(p *walk.Path, l walk.Leaf) (octets [16]byte, value Value, ok bool) {
	if !c.To.IsBinary() {
		s, _, ok := c.To.Form.Parse(l)
		if !ok || !c.Selects(p) {
			return octets, "", false
		}
		return s.UUID, ValueOf(l.Type, l.Value), true
	}
	subtype, data, _, ok := l.Binary()
	if !ok || subtype != c.To.Subtype || len(data) != 16 || !c.Selects(p) {
		return octets, "", false
	}
	return [16]byte(data), "", true
}
