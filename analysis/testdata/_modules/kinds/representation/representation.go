// Package representation looks for UUIDs in another representation than that of the field. // want package:`driver: `
package representation

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidrep"
)

type Order struct {
	ID       uuid.UUID                `bson:"_id"`
	Customer uuidrep.JavaLegacyUUID   `bson:"customer"`
	Items    []uuidrep.JavaLegacyUUID `bson:"items"`
	Fixed    uuidrep.StandardUUID     `bson:"fixed"`
}

func find(ctx context.Context, orders *mongo.Collection, u uuid.UUID) (order Order, err error) {
	err = orders.FindOne(ctx, bson.M{"customer": u}).Decode(&order)                 // want `this UUID is in the representation of the client, and the field representation.Order.Customer is javaLegacy: it finds nothing; use uuidrep.JavaLegacyUUID`
	filter := bson.D{{Key: "items", Value: bson.D{{Key: "$in", Value: bson.A{u}}}}} // want `the field representation.Order.Items is javaLegacy`
	if _, err := cursors.One[Order](orders.FindOne(ctx, filter)); err != nil {
		return order, err
	}
	orders.UpdateOne(ctx, bson.M{"_id": u}, bson.M{"$set": bson.M{"customer": u}})                               // want `the field representation.Order.Customer is javaLegacy`
	orders.UpdateOne(ctx, bson.M{"fixed": uuidrep.JavaLegacyUUID{UUID: u}}, bson.M{"$pull": bson.M{"items": u}}) // want `this UUID is javaLegacy, and the field representation.Order.Fixed is standard` `the field representation.Order.Items is javaLegacy`
	orders.FindOne(ctx, bson.M{"_id": uuidrep.JavaLegacyUUID{UUID: u}})                                          // want `this UUID is javaLegacy, and the field representation.Order.ID has the representation of the client`

	orders.FindOne(ctx, bson.M{"_id": u, "customer": uuidrep.JavaLegacyUUID{UUID: u}, "fixed": u, "other": u})
	return order, err
}

// The collection is told by its name.
func named(ctx context.Context, db *mongo.Database, u uuid.UUID) error {
	if _, err := db.Collection("orders").InsertOne(ctx, Order{ID: u}); err != nil {
		return err
	}
	return db.Collection("orders").FindOne(ctx, bson.M{"customer": u}).Err() // want `the field representation.Order.Customer is javaLegacy`
}

func other(ctx context.Context, db *mongo.Database, u uuid.UUID) error {
	return db.Collection("customers").FindOne(ctx, bson.M{"customer": u}).Err()
}
