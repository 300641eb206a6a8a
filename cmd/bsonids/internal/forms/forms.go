// Package forms reads UUIDs that are not stored as binary values.
package forms

import (
	"encoding/hex"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Form is the kind of value in which a UUID is stored. The zero Form is Binary.
type Form uint8

// The forms.
const (
	Binary Form = iota // 16 bytes
	Text               // a string in one of the spellings of ParseText
)

// Spelled is a UUID that was read from a value which is not binary.
type Spelled struct {
	UUID [16]byte // in network order
	// Certain is true if nothing but a UUID is written like this. It is false for text of 32 digits,
	// which may be a checksum.
	Certain bool
}

// ParseText reads a UUID in one of its usual spellings, with digits of either case: 36 characters
// with hyphens, the same in braces or after urn:uuid:, and 32 digits. It accepts no other
// characters, such as spaces, around it.
func ParseText(text []byte) (s Spelled, ok bool) {
	switch len(text) {
	case 32:
		_, err := hex.Decode(s.UUID[:], text)
		return s, err == nil
	case 36, 38, 45:
		if uuid.Validate(string(text)) != nil { // ParseBytes accepts any two characters as the braces
			return s, false
		}
		u, err := uuid.ParseBytes(text)
		return Spelled{u, true}, err == nil
	}
	return s, false
}

// Applies reports whether the value may be of the form f: whether it has its BSON type.
func (f Form) Applies(l walk.Leaf) bool { return f == Text && l.Type == bson.TypeString }

// Parse reads a value of the form f. The reason says why the value is not a UUID, if ok is false.
func (f Form) Parse(l walk.Leaf) (s Spelled, reason string, ok bool) {
	text, ok := l.Text()
	if ok {
		s, ok = ParseText(text)
	}
	if !ok {
		return s, "the text is not a UUID in one of the usual spellings", false
	}
	return s, "", true
}
