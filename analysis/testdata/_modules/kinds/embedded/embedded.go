// Package embedded has structs that embed a UUID. // want package:`driver: `
package embedded

import (
	"reflect"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/bsoncodec"
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
