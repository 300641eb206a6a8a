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

// InBinary reports whether b has the text of a UUID for its bytes: the 36 characters or the 32 hexadecimal digits, in either
// letter case. It is so of subtypes 0, 2, 3 and 4 only. Programs that took the text of a UUID for its bytes wrote such values.
func InBinary(b bson.Binary) bool {
	switch b.Subtype {
	case bson.TypeBinaryGeneric, bson.TypeBinaryBinaryOld, bson.TypeBinaryUUIDOld, bson.TypeBinaryUUID:
		return (len(b.Data) == 36 || len(b.Data) == 32) && uuid.Validate(string(b.Data)) == nil
	}
	return false
}
