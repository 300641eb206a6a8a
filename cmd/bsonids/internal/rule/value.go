package rule

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Value is a value of a document: a binary value of 16 bytes, or another one. Values can be compared
// with ==.
type Value struct {
	Subtype byte     // of a binary value
	Octets  [16]byte // of a binary value
	// Other is any other value: the byte of its type, and then itself in BSON. It is empty for a binary value.
	Other string
}

// binarySize is the size of a binary value of 16 bytes in BSON.
const binarySize = 4 + 1 + 16

// ValueOf returns the Value of the type and the bytes, which it copies.
func ValueOf(t bson.Type, b []byte) Value {
	if t == bson.TypeBinary && len(b) == binarySize && b[4] != bson.TypeBinaryBinaryOld {
		return Value{Subtype: b[4], Octets: [16]byte(b[5:])}
	}
	return Value{Other: string(append([]byte{byte(t)}, b...))}
}

// Null is the value null.
var Null = ValueOf(bson.TypeNull, nil)

// Raw returns the value as the type of the driver.
func (v Value) Raw() bson.RawValue {
	if v.Other != "" {
		return bson.RawValue{Type: bson.Type(v.Other[0]), Value: []byte(v.Other[1:])}
	}
	return bson.RawValue{Type: bson.TypeBinary, Value: append([]byte{16, 0, 0, 0, v.Subtype}, v.Octets[:]...)}
}

// size returns the size of the value in BSON, in bytes.
func (v Value) size() int {
	if v.Other != "" {
		return len(v.Other) - 1
	}
	return binarySize
}

// leafOf returns the value as a leaf without a place in a document.
func leafOf(v Value) walk.Leaf {
	raw := v.Raw()
	return walk.Leaf{Type: raw.Type, Value: raw.Value}
}

// edit returns the change of the value at the offset of its document to v.
func (v Value) edit(offset int) walk.Edit {
	raw := v.Raw()
	return walk.Edit{Offset: offset, Type: raw.Type, Value: raw.Value}
}

// Walk calls visit for the values of doc, and for the documents to which the conversion may apply.
func (c Conversion) Walk(doc []byte, visit func(*walk.Path, walk.Leaf) error) error {
	for _, p := range c {
		if p.From.Form == kinds.Struct {
			return kinds.Struct.Walk(doc, c.structs, visit)
		}
	}
	return walk.Document(doc, visit) // without an allocation for each document
}

// IsNew reports whether the value is one that the conversion may have written.
func (c Conversion) IsNew(path *walk.Path, l walk.Leaf) bool {
	if !standard.Has(l) {
		return false
	}
	for i := range c {
		if c[i].From.Form != kinds.Malformed && c[i].selects(path) {
			return true
		}
	}
	return false
}
