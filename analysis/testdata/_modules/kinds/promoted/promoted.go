// Package promoted embeds types whose methods for BSON take the place of the whole struct. // want package:`driver: `
package promoted

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

type Customer struct { // want `refuses Customer, a struct with the method MarshalBSONValue of the field ID, which it embeds, so that the driver stores that field alone and not Name: give the embedded field a name`
	uuidrep.ID[Customer] `bson:"_id"`
	Name                 string `bson:"name"`
}

type Address struct {
	*uuidrep.StandardUUID
	Street string
}

type Order struct {
	ID      uuid.UUID `bson:"_id"`
	Address Address   `bson:"address"` // want `refuses Address, a struct with the method MarshalBSONValue of the field StandardUUID`
	Key     Key       `bson:"key"`
	Own     Own       `bson:"own"`
	Named   Named     `bson:"named"`
}

type marshaler interface{ MarshalBSON() ([]byte, error) }

type Document struct { // want `refuses Document, a struct with the method MarshalBSON of the field marshaler`
	marshaler
	Name string `bson:"name"`
}

// Key is the UUID.
type Key struct {
	uuidrep.StandardUUID
	cached string
}

// Own declares the methods itself.
type Own struct {
	uuidrep.StandardUUID `bson:"id"`
	Name                 string `bson:"name"`
}

func (o Own) MarshalBSONValue() (byte, []byte, error) {
	typ, data, err := bson.MarshalValue(bson.M{"id": o.StandardUUID, "name": o.Name})
	return byte(typ), data, err
}

func (o *Own) UnmarshalBSONValue(byte, []byte) error { return nil }

// Named is a document.
type Named struct {
	ID   uuidrep.StandardUUID `bson:"id"`
	Name string               `bson:"name"`
}
