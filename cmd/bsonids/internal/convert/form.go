package convert

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/forms"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

// A kind that is not binary has a number in the place of its subtype that is none: BSON gives
// meanings to 0 to 9, and leaves those from 128 on to users.
const (
	textNumber   = 127
	structNumber = 126
)

// formKinds are the kinds that are not binary.
var formKinds = []Kind{
	{Name: "text", Subtype: textNumber, Form: forms.Text, order: uuidrep.Standard},
	{Name: "goStruct", Subtype: structNumber, Form: forms.Struct, order: uuidrep.Standard},
}

// formOf returns the form that has the number in the place of its subtype, or Binary.
func formOf(number byte) forms.Form {
	for _, k := range formKinds {
		if k.Subtype == number {
			return k.Form
		}
	}
	return forms.Binary
}

// ParseStored is like ParseKind, and also knows the kinds that are not binary: text and goStruct.
func ParseStored(s string) (Kind, error) {
	for _, k := range formKinds {
		if strings.EqualFold(s, k.Name) {
			return k, nil
		}
	}
	k, err := ParseKind(s)
	if err != nil {
		err = fmt.Errorf("invalid representation %q: must be standard, csharpLegacy, javaLegacy, pythonLegacy, generic (subtype 0), text, or goStruct", s)
	}
	return k, err
}

// IsBinary reports whether the values of the kind are binary.
func (k Kind) IsBinary() bool { return k.Form == forms.Binary }

// String returns the name of the kind, with the subtype if it has one.
func (k Kind) String() string {
	if !k.IsBinary() {
		return k.Name
	}
	return fmt.Sprintf("%s (subtype %d)", k.Name, k.Subtype)
}

// Values returns a name for values of the kind.
func (k Kind) Values() string {
	switch k.Form {
	case forms.Text:
		return "values that are text"
	case forms.Struct:
		return "documents of Go structs"
	}
	return fmt.Sprintf("values of subtype %d", k.Subtype)
}

// mayHave reports whether the value is one of the kind, or, if it is not binary, may be one.
func (k Kind) mayHave(l walk.Leaf) bool {
	subtype, data, _, ok := l.Binary()
	return k.Form.Applies(l) || k.Form == forms.Struct && l.Type == bson.TypeNull || ok && len(data) == 16 && subtype == k.Subtype
}

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
	// certain and null are as in forms.Spelled. If unfit is not empty, it says why the value is not a
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
	if c.From.Form != forms.Struct {
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
	return c.Judge.Formed(field, forms.Spelled{UUID: v.octets, Certain: v.certain})
}

// fresh returns the converted value.
func (c Conversion) fresh(v located) ([16]byte, Value) {
	octets := c.octets(v.octets)
	switch {
	case v.null:
		return octets, null
	case c.To.Form == forms.Text:
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
