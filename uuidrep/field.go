package uuidrep

import (
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/uuidtext"
)

// The four field types differ in their representation only. Each is a [uuid.UUID] in Go, in JSON
// and in text, and fixes how one field is stored, with any registry, the driver's default one
// included.

// StandardUUID is a UUID that is stored in the [Standard] representation, whatever the registry
// says. It reads binary subtype 4 only. Null and undefined give the zero value, which the struct
// tag omitempty omits. It is a plain value, safe to copy.
//
// Values of another subtype, length or BSON type are errors, as in [AsWithRepresentation].
type StandardUUID struct{ uuid.UUID }

// CSharpLegacyUUID is a UUID that is stored in the [CSharpLegacy] representation, whatever the
// registry says. It reads binary subtype 3 only. Null and undefined give the zero value, which the
// struct tag omitempty omits. It is a plain value, safe to copy.
//
// Values of another subtype, length or BSON type are errors, as in [AsWithRepresentation].
type CSharpLegacyUUID struct{ uuid.UUID }

// JavaLegacyUUID is a UUID that is stored in the [JavaLegacy] representation, whatever the registry
// says. It reads binary subtype 3 only. Null and undefined give the zero value, which the struct
// tag omitempty omits. It is a plain value, safe to copy.
//
// Values of another subtype, length or BSON type are errors, as in [AsWithRepresentation].
type JavaLegacyUUID struct{ uuid.UUID }

// PythonLegacyUUID is a UUID that is stored in the [PythonLegacy] representation, whatever the
// registry says. It reads binary subtype 3 only. Null and undefined give the zero value, which the
// struct tag omitempty omits. It is a plain value, safe to copy.
//
// Values of another subtype, length or BSON type are errors, as in [AsWithRepresentation].
type PythonLegacyUUID struct{ uuid.UUID }

// IsZero reports whether all bits of u are zero. It implements [bson.Zeroer].
func (u StandardUUID) IsZero() bool { return u.UUID == uuid.Nil }

// IsZero reports whether all bits of u are zero. It implements [bson.Zeroer].
func (u CSharpLegacyUUID) IsZero() bool { return u.UUID == uuid.Nil }

// IsZero reports whether all bits of u are zero. It implements [bson.Zeroer].
func (u JavaLegacyUUID) IsZero() bool { return u.UUID == uuid.Nil }

// IsZero reports whether all bits of u are zero. It implements [bson.Zeroer].
func (u PythonLegacyUUID) IsZero() bool { return u.UUID == uuid.Nil }

// UnmarshalText sets u to the UUID that text holds, in any form that [uuid.Validate] accepts. After an error u is
// unchanged. It implements [encoding.TextUnmarshaler].
func (u *StandardUUID) UnmarshalText(text []byte) error { return unmarshalText(&u.UUID, text) }

// UnmarshalText sets u to the UUID that text holds, in any form that [uuid.Validate] accepts. After an error u is
// unchanged. It implements [encoding.TextUnmarshaler].
func (u *CSharpLegacyUUID) UnmarshalText(text []byte) error { return unmarshalText(&u.UUID, text) }

// UnmarshalText sets u to the UUID that text holds, in any form that [uuid.Validate] accepts. After an error u is
// unchanged. It implements [encoding.TextUnmarshaler].
func (u *JavaLegacyUUID) UnmarshalText(text []byte) error { return unmarshalText(&u.UUID, text) }

// UnmarshalText sets u to the UUID that text holds, in any form that [uuid.Validate] accepts. After an error u is
// unchanged. It implements [encoding.TextUnmarshaler].
func (u *PythonLegacyUUID) UnmarshalText(text []byte) error { return unmarshalText(&u.UUID, text) }

// MarshalBSONValue returns u as binary subtype 4. It implements [bson.ValueMarshaler] and never
// fails.
func (u StandardUUID) MarshalBSONValue() (byte, []byte, error) { return marshalValue(u.UUID, Standard) }

// MarshalBSONValue returns u as binary subtype 3. It implements [bson.ValueMarshaler] and never
// fails.
func (u CSharpLegacyUUID) MarshalBSONValue() (byte, []byte, error) {
	return marshalValue(u.UUID, CSharpLegacy)
}

// MarshalBSONValue returns u as binary subtype 3. It implements [bson.ValueMarshaler] and never
// fails.
func (u JavaLegacyUUID) MarshalBSONValue() (byte, []byte, error) {
	return marshalValue(u.UUID, JavaLegacy)
}

// MarshalBSONValue returns u as binary subtype 3. It implements [bson.ValueMarshaler] and never
// fails.
func (u PythonLegacyUUID) MarshalBSONValue() (byte, []byte, error) {
	return marshalValue(u.UUID, PythonLegacy)
}

// UnmarshalBSONValue sets u from binary subtype 4, null or undefined. After an error u is
// unchanged. It implements [bson.ValueUnmarshaler].
func (u *StandardUUID) UnmarshalBSONValue(typ byte, data []byte) error {
	return unmarshalValue(&u.UUID, Standard, typ, data)
}

// UnmarshalBSONValue sets u from binary subtype 3, null or undefined. After an error u is
// unchanged. It implements [bson.ValueUnmarshaler].
func (u *CSharpLegacyUUID) UnmarshalBSONValue(typ byte, data []byte) error {
	return unmarshalValue(&u.UUID, CSharpLegacy, typ, data)
}

// UnmarshalBSONValue sets u from binary subtype 3, null or undefined. After an error u is
// unchanged. It implements [bson.ValueUnmarshaler].
func (u *JavaLegacyUUID) UnmarshalBSONValue(typ byte, data []byte) error {
	return unmarshalValue(&u.UUID, JavaLegacy, typ, data)
}

// UnmarshalBSONValue sets u from binary subtype 3, null or undefined. After an error u is
// unchanged. It implements [bson.ValueUnmarshaler].
func (u *PythonLegacyUUID) UnmarshalBSONValue(typ byte, data []byte) error {
	return unmarshalValue(&u.UUID, PythonLegacy, typ, data)
}

// unmarshalText sets u to the UUID that text holds. [uuid.UUID.UnmarshalText] takes any two characters for braces.
func unmarshalText(u *uuid.UUID, text []byte) error {
	parsed, err := uuidtext.Parse(string(text))
	if err != nil {
		return fmt.Errorf("uuidrep: cannot parse a UUID: %w", err)
	}
	*u = parsed
	return nil
}

// binaryLength is the length of a UUID as a BSON binary value: an int32 length, the subtype, and the bytes.
const binaryLength = 4 + 1 + 16

// marshalValue returns u as a binary value. The representation is one that has a subtype.
func marshalValue(u uuid.UUID, r Representation) (byte, []byte, error) {
	subtype, _ := r.Subtype()
	bytes := r.Permute(u)
	value := append(make([]byte, 0, binaryLength), 16, 0, 0, 0, subtype)
	return byte(bson.TypeBinary), append(value, bytes[:]...), nil
}

func unmarshalValue(u *uuid.UUID, r Representation, typ byte, data []byte) error {
	rv := bson.RawValue{Type: bson.Type(typ), Value: data}
	switch rv.Type {
	case bson.TypeNull, bson.TypeUndefined:
		*u = uuid.Nil
		return nil
	case bson.TypeBinary:
		subtype, bytes, ok := rv.BinaryOK()
		if !ok {
			return fmt.Errorf("uuidrep: truncated binary value of %d bytes", len(data))
		}
		v, err := AsWithRepresentation[uuid.UUID](bson.Binary{Subtype: subtype, Data: bytes}, r)
		if err != nil {
			return err
		}
		*u = v
		return nil
	}
	wayOut := ""
	if rv.Type == bson.TypeString {
		wayOut = ": a StringUUID reads a UUID that is stored as text"
	}
	return fmt.Errorf("uuidrep: cannot decode a BSON %v into a UUID in the representation %v%s", rv.Type, r, wayOut)
}
