package kinds

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/internal/uuidtext"
)

// Form is the kind of value in which a UUID is stored. The zero Form is Binary.
type Form uint8

// The forms.
const (
	Binary     Form = iota // 16 bytes
	Text                   // a string in one of the spellings of ParseText
	Struct                 // a document that a Go struct left behind, see ParseStruct
	BinaryText             // a binary value whose bytes are the text of a UUID, see ParseBinaryText
	Malformed              // a binary value that says that it is a UUID and is none, see IsMalformed
)

// Spelled is a UUID that was read from a value which is not binary.
type Spelled struct {
	UUID [16]byte // in network order
	// Certain is true if nothing but a UUID is written like this. It is false for text of 32 digits,
	// which may be a checksum, unless the subtype of a binary value says that it is a UUID.
	Certain bool
	// Null is true if the value says that there is no UUID. UUID is then the nil UUID.
	Null bool
}

// ParseText reads a UUID in one of its usual spellings, with digits of either case: 36 characters
// with hyphens, the same in braces or after urn:uuid:, and 32 digits. It accepts no other
// characters, such as spaces, around it.
func ParseText(text []byte) (s Spelled, ok bool) {
	switch len(text) {
	case 32:
		if _, err := hex.Decode(s.UUID[:], text); err != nil {
			return Spelled{}, false
		}
		return s, true
	case 36, 38, 45:
		if uuid.Validate(string(text)) != nil { // ParseBytes accepts any two characters as the braces
			return s, false
		}
		u, err := uuid.ParseBytes(text)
		return Spelled{UUID: u, Certain: true}, err == nil
	}
	return s, false
}

// Octets returns the subtype and the data of a binary value. Those of subtype 2 begin with their length once more, which
// is no part of the data. ok is false if it is another one, and for other types.
func Octets(l walk.Leaf) (subtype byte, data []byte, ok bool) {
	if subtype, data, _, ok = l.Binary(); ok || l.Type != bson.TypeBinary {
		return subtype, data, ok
	}
	if data = l.Value[5:]; len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) != uint64(len(data)-4) {
		return 0, nil, false
	}
	return bson.TypeBinaryBinaryOld, data[4:], true
}

// ParseBinaryText reads a binary value of subtype 0, 2, 3 or 4 whose bytes are the text of a UUID.
func ParseBinaryText(l walk.Leaf) (s Spelled, ok bool) {
	subtype, data, ok := Octets(l)
	if !ok {
		return s, false
	}
	u, ok := uuidtext.ParseBinary(subtype, data)
	if !ok {
		return s, false
	}
	certain := len(data) == 36 || subtype == bson.TypeBinaryUUIDOld || subtype == bson.TypeBinaryUUID
	return Spelled{UUID: u, Certain: certain}, true
}

// IsMalformed reports whether the value is a binary one of subtype 3 or 4, which say that it is a UUID, and
// neither has 16 bytes nor is the text of a UUID.
func IsMalformed(l walk.Leaf) bool {
	subtype, data, _, ok := l.Binary()
	if !ok || subtype != bson.TypeBinaryUUIDOld && subtype != bson.TypeBinaryUUID || len(data) == 16 {
		return false
	}
	_, isText := uuidtext.ParseOctets(data)
	return !isText
}

// ParseStruct reads a document as the Go driver writes structs without a codec: {uuid: X} for a
// struct that has or embeds a uuid.UUID, and {uuid: X, valid: true} for a uuid.NullUUID. X is a
// binary value of 16 bytes and of subtype 0, or 4 if it was converted before. In {uuid: X, valid:
// false}, X is the nil UUID. The reason says what is wrong, if ok is false.
func ParseStruct(doc []byte) (s Spelled, reason string, ok bool) {
	elements, err := bson.Raw(doc).Elements()
	if err != nil || bson.Raw(doc).Validate() != nil {
		return Spelled{}, "the document is damaged", false
	}
	has := make(map[string]bool, 2)
	valid := true
	for _, e := range elements {
		v := e.Value()
		switch key := e.Key(); {
		case key != "uuid" && key != "valid" || has[key]:
			return Spelled{}, "the document has fields other than one uuid and one valid", false
		case key == "valid":
			has[key] = true
			if valid, ok = v.BooleanOK(); !ok {
				return Spelled{}, "valid is not true or false", false
			}
		default:
			has[key] = true
			subtype, data, ok := v.BinaryOK()
			if !ok || len(data) != 16 || subtype != bson.TypeBinaryGeneric && subtype != bson.TypeBinaryUUID {
				return Spelled{}, "uuid is not a binary value of 16 bytes and of subtype 0 or 4", false
			}
			s.UUID = [16]byte(data)
		}
	}
	switch {
	case !has["uuid"]:
		return Spelled{}, "the document has no field uuid", false
	case !valid && s.UUID != uuid.Nil:
		return Spelled{}, "valid is false, but uuid is not the nil UUID", false
	}
	return Spelled{UUID: s.UUID, Certain: true, Null: !valid}, "", true
}

// Walk calls visit for the values of a document, as [walk.Document], and for documents in it if f
// is Struct. It does not enter those that are selected and of the form.
func (f Form) Walk(doc []byte, selected func(*walk.Path) bool, visit func(*walk.Path, walk.Leaf) error) error {
	if f != Struct {
		return walk.Document(doc, visit)
	}
	return walk.Documents(doc, func(p *walk.Path, l walk.Leaf) (bool, error) {
		if selected != nil && !selected(p) {
			return false, nil
		}
		_, _, ok := ParseStruct(l.Value)
		return ok, visit(p, l)
	}, visit)
}

// Applies reports whether the value may be of the form f: whether it has its BSON type, and a document the key uuid.
// An empty string is the absence of a value, as null is.
func (f Form) Applies(l walk.Leaf) bool {
	switch f {
	case Text:
		return l.Type == bson.TypeString && len(l.Value) > emptyString
	case Struct:
		return l.Type == bson.TypeEmbeddedDocument && bson.Raw(l.Value).Lookup("uuid").Type != 0
	case BinaryText: // other bytes are other data, or malformed
		_, ok := ParseBinaryText(l)
		return ok
	case Malformed:
		return IsMalformed(l)
	}
	return false
}

const emptyString = 5 // bytes: a length and a zero

// Parse reads a value of the form f. The reason says why the value is not a UUID, if ok is false.
func (f Form) Parse(l walk.Leaf) (s Spelled, reason string, ok bool) {
	switch f {
	case Struct:
		if l.Type != bson.TypeEmbeddedDocument {
			return s, "not a document", false
		}
		return ParseStruct(l.Value)
	case BinaryText:
		if s, ok = ParseBinaryText(l); !ok {
			return s, "the bytes are not the text of a UUID", false
		}
		return s, "", true
	case Malformed:
		subtype, data, _ := Octets(l)
		return s, fmt.Sprintf("%d bytes of subtype %d are no UUID, which has 16, and not the text of one", len(data), subtype), false
	}
	text, ok := l.Text()
	if ok {
		s, ok = ParseText(text)
	}
	if !ok {
		return s, "the text is not a UUID in one of the usual spellings", false
	}
	return s, "", true
}
