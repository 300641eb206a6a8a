// Package uuidtext reads UUIDs that were stored as text, and tells text that was stored as a binary value.
package uuidtext

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Parse returns the UUID that s is the text of, in one of the forms of [uuid.Validate]. Unlike
// [uuid.Parse] it refuses other characters than braces around the text.
func Parse(s string) (uuid.UUID, error) {
	if err := uuid.Validate(s); err != nil {
		return uuid.Nil, err
	}
	return uuid.Parse(s)
}

// ParseOctets returns the UUID of a binary value whose bytes are the text of the UUID in ASCII: the 36 characters or the 32
// hexadecimal digits, in either letter case. Programs that took the text of a UUID for its bytes wrote such values.
func ParseOctets(b []byte) (u uuid.UUID, ok bool) {
	if len(b) != 36 && len(b) != 32 {
		return u, false
	}
	u, err := uuid.ParseBytes(b)
	if err != nil {
		return uuid.Nil, false
	}
	return u, true
}

// ParseBinary does what [ParseOctets] does for a binary value of subtype 0, 2, 3 or 4, and reports false for any other. The
// bytes of a value of subtype 2 are those after its second length.
func ParseBinary(subtype byte, b []byte) (u uuid.UUID, ok bool) {
	switch subtype {
	case bson.TypeBinaryGeneric, bson.TypeBinaryBinaryOld, bson.TypeBinaryUUIDOld, bson.TypeBinaryUUID:
		return ParseOctets(b)
	}
	return u, false
}
