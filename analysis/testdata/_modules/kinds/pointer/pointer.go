// Package pointer has methods for BSON that belong to the pointer. // want package:`driver: `
package pointer

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/uuidrep"
)

type OrderID struct{ value uuid.UUID }

func (id *OrderID) MarshalBSONValue() (byte, []byte, error) {
	return uuidrep.StandardUUID{UUID: id.value}.MarshalBSONValue()
}

func (id *OrderID) UnmarshalBSONValue(typ byte, data []byte) error {
	var u uuidrep.StandardUUID
	err := u.UnmarshalBSONValue(typ, data)
	id.value = u.UUID
	return err
}

type Order struct {
	ID    OrderID            `bson:"_id"`
	Parts []OrderID          `bson:"parts"`
	By    map[string]OrderID `bson:"by"` // want `refuses OrderID, .* whose methods for BSON belong to the pointer, so that the driver does not call them for a value: give MarshalBSONValue the receiver of a value`
	To    *OrderID           `bson:"to"`
}

type Line struct {
	Order OrderID `bson:"order"`
}

type Item struct {
	Order OrderID `bson:"order"` // want `refuses OrderID`
}

func find(ctx context.Context, orders *mongo.Collection, id OrderID) {
	orders.FindOne(ctx, bson.M{"_id": id}) // want `refuses OrderID, .* whose methods for BSON belong to the pointer`
	orders.FindOne(ctx, bson.M{"_id": &id})
	orders.FindOne(ctx, bson.M{"parts": []OrderID{id}})
	orders.InsertOne(ctx, Item{})
	orders.InsertOne(ctx, &Line{})
	orders.InsertMany(ctx, []Line{{}})
}
