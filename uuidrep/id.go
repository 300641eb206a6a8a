package uuidrep

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/uuidtext"
)

// ID is a UUID with a type parameter T, so that the ids of orders and of customers have different Go
// types: passing an ID[Customer] where an ID[Order] is expected does not compile.
//
//	type Order struct {
//		ID       uuidrep.ID[Order]    `bson:"_id,omitempty"`
//		Customer uuidrep.ID[Customer] `bson:"customer"`
//	}
//
//	id := uuidrep.ID[Order](uuid.New()) // and uuid.UUID(id) is the way back
//
// It is 16 bytes in network order. It can be compared with == and can be the key of a map in Go and
// in BSON. Its text, in JSON too, is that of the UUID. T is not used otherwise. The zero value is the zero UUID, which
// the struct tag omitempty omits.
//
// An ID is stored in the [Standard] representation, binary subtype 4, with any registry, the
// driver's default one included, and reads subtype 4 only, as a [StandardUUID] does. Nothing needs to
// be registered. A registry of package bsoncodec decides instead for each ID type that is registered
// with its RegisterUUIDType, which also encodes and decodes such an ID faster.
type ID[T any] [16]byte

// ParseID returns the ID whose text is s, in any form that [uuid.Validate] accepts. Other text is an
// error.
func ParseID[T any](s string) (ID[T], error) {
	u, err := uuidtext.Parse(s)
	if err != nil {
		return ID[T]{}, fmt.Errorf("uuidrep: cannot parse an ID: %w", err)
	}
	return ID[T](u), nil
}

// String returns the UUID as 36 characters in lower case.
func (id ID[T]) String() string { return uuid.UUID(id).String() }

// IsZero reports whether all bits of id are zero. It implements [bson.Zeroer].
func (id ID[T]) IsZero() bool { return id == ID[T]{} }

// MarshalText returns what [ID.String] returns. It implements [encoding.TextMarshaler] and never
// fails.
func (id ID[T]) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText sets id to the ID that text holds, as [ParseID] reads it, with the same errors.
// After an error id is unchanged. It implements [encoding.TextUnmarshaler].
func (id *ID[T]) UnmarshalText(text []byte) error {
	parsed, err := ParseID[T](string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// MarshalBSONValue returns id as binary subtype 4. It implements [bson.ValueMarshaler] and never
// fails.
func (id ID[T]) MarshalBSONValue() (byte, []byte, error) {
	return marshalValue(uuid.UUID(id), Standard)
}

// UnmarshalBSONValue sets id from binary subtype 4, null or undefined. After an error id is
// unchanged. It implements [bson.ValueUnmarshaler].
func (id *ID[T]) UnmarshalBSONValue(typ byte, data []byte) error {
	return unmarshalValue((*uuid.UUID)(id), Standard, typ, data)
}
