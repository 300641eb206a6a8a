package uuidrep

import (
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/uuidtext"
)

// StringUUID is a UUID that is stored as a BSON string, whatever the registry says: 36 characters
// in lower case, as [uuid.UUID.String] returns them. It reads a string in any form of
// [uuid.Validate]. Null and undefined give the zero value, which the struct tag omitempty omits. It
// is a plain value, safe to copy.
//
// Text of another form and values of another BSON type, binary values included, are errors.
type StringUUID struct{ uuid.UUID }

// IsZero reports whether all bits of u are zero. It implements [bson.Zeroer].
func (u StringUUID) IsZero() bool { return u.UUID == uuid.Nil }

// UnmarshalText sets u to the UUID that text holds, in any form that [uuid.Validate] accepts. After an error u is
// unchanged. It implements [encoding.TextUnmarshaler].
func (u *StringUUID) UnmarshalText(text []byte) error { return unmarshalText(&u.UUID, text) }

// MarshalBSONValue returns u as a string. It implements [bson.ValueMarshaler] and never fails.
func (u StringUUID) MarshalBSONValue() (byte, []byte, error) {
	const length = 36 + 1          // of the text and the 0x00 that ends it
	const valueLength = 4 + length // with the int32 length before them
	value := append(make([]byte, 0, valueLength), length, 0, 0, 0)
	return byte(bson.TypeString), append(append(value, u.UUID.String()...), 0), nil
}

// UnmarshalBSONValue sets u from a string, null or undefined. After an error u is unchanged. It
// implements [bson.ValueUnmarshaler].
func (u *StringUUID) UnmarshalBSONValue(typ byte, data []byte) error {
	rv := bson.RawValue{Type: bson.Type(typ), Value: data}
	switch rv.Type {
	case bson.TypeNull, bson.TypeUndefined:
		u.UUID = uuid.Nil
		return nil
	case bson.TypeBinary:
		subtype, bytes, _ := rv.BinaryOK()
		if _, text := uuidtext.ParseBinary(subtype, bytes); text {
			return fmt.Errorf("uuidrep: cannot decode a BSON binary into a StringUUID: %w", &LengthError{Length: len(bytes), Text: true})
		}
	case bson.TypeString:
		s, ok := rv.StringValueOK()
		if !ok {
			return fmt.Errorf("uuidrep: truncated string of %d bytes", len(data))
		}
		v, err := uuidtext.Parse(s)
		if err != nil {
			return fmt.Errorf("uuidrep: cannot decode a string into a StringUUID: %w", err)
		}
		u.UUID = v
		return nil
	}
	return fmt.Errorf("uuidrep: cannot decode a BSON %v into a StringUUID", rv.Type)
}
