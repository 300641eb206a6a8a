// Package embedded has structs that embed a UUID. // want package:`driver: `
package embedded

import (
	"reflect"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type OrderID struct{ uuid.UUID }

type ItemID struct{ uuid.UUID }

type Order struct {
	ID    OrderID            `bson:"_id"`   // want `refuses OrderID, a struct around a UUID, which the driver stores as a document: `
	Items []OrderID          `bson:"items"` // want `refuses OrderID`
	By    map[string]OrderID `bson:"by"`    // want `refuses OrderID`
	Item  ItemID             `bson:"item"`
	Skip  OrderID            `bson:"-"`
}

func configure(b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(reflect.TypeFor[ItemID]()) }

type pointed struct{ *uuid.UUID }

type Nested struct{ OrderID }

type Typed struct{ uuidrep.StandardUUID }

type Holder struct { // want `refuses Holder, a struct whose inline field Typed is a UUID with methods for BSON, which the driver does not call then`
	Pointed pointed `bson:"pointed"` // want `refuses pointed`
	Nested  Nested  `bson:"nested"`  // want `refuses Nested`
	Typed   Typed   `bson:",inline"`
	Own     Typed   `bson:"own"`
}
