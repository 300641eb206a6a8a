// Package subtype0 has methods for BSON that store a UUID as subtype 0. // want package:`driver: `
package subtype0

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// Optional is a value that can be absent.
type Optional[T any] struct { // want Optional:`without a registry: parameters .., type parameters .0.`
	Value T
	Set   bool
}

func (o Optional[T]) MarshalBSONValue() (byte, []byte, error) {
	if !o.Set {
		return byte(bson.TypeNull), nil, nil
	}
	typ, data, err := bson.MarshalValue(o.Value)
	return byte(typ), data, err
}

func (o *Optional[T]) UnmarshalBSONValue(typ byte, data []byte) error {
	return bson.UnmarshalValue(bson.Type(typ), data, &o.Value)
}

type User struct {
	ID     uuid.UUID                      `bson:"_id"`
	Parent Optional[uuid.UUID]            `bson:"parent"` // want `Optional encodes or decodes with a function of package bson that does not use the registry`
	Age    Optional[int]                  `bson:"age"`
	Fixed  Optional[uuidrep.StandardUUID] `bson:"fixed"`
}

// SessionID is one UUID.
type SessionID struct{ value uuid.UUID }

func (id SessionID) MarshalBSONValue() (byte, []byte, error) {
	typ, data, err := bson.MarshalValue(id.value) // want `bson.MarshalValue does not use the registry`
	return byte(typ), data, err
}
