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

// Deep embeds a struct that loses a field.
type Deep struct { // want `refuses Deep, a struct with the method MarshalBSONValue of the field Address.StandardUUID, which it embeds, so that the driver stores that field alone and not Street`
	Address `bson:"address"` // want `refuses Address`
}

// Read loses its name when it is read.
type Read struct { // want `refuses Read, a struct with the method UnmarshalBSONValue of the field StandardUUID`
	uuidrep.StandardUUID `bson:"id"`
	Name                 string `bson:"name"`
}

func (r Read) MarshalBSONValue() (byte, []byte, error) { return Own(r).MarshalBSONValue() }

// Nothing else would be stored.
type Nothing struct {
	uuidrep.StandardUUID `bson:"id"`
	Skipped              string `bson:"-"`
	Func                 func()
	Empty                struct{}
	hidden               int
}

// Two have the methods at one depth, so that the struct has none.
type Two struct {
	uuidrep.StandardUUID   `bson:"a"`
	uuidrep.JavaLegacyUUID `bson:"b"`
}
