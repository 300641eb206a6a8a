// Package upserted asserts the type of ids of upserts. // want package:`driver: `
package upserted

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
)

func upsert(ctx context.Context, coll *mongo.Collection, users *autoid.Collection, filter, update any) (uuid.UUID, error) { // want upsert:`documents`
	res, err := coll.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return uuid.Nil, err
	}
	id := res.UpsertedID.(uuid.UUID)              // want `the driver decodes the id of an upsert without the registry of the client`
	if id, ok := res.UpsertedID.(uuid.UUID); ok { // want `the driver decodes the id of an upsert`
		return id, nil
	}
	res, err = users.Collection.ReplaceOne(ctx, filter, update)
	_ = res
	other, err := users.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return uuid.Nil, err
	}
	_ = other.UpsertedID.(uuid.UUID)
	return id, nil
}

func bulk(ctx context.Context, coll *mongo.Collection, models []mongo.WriteModel) any {
	res, err := coll.BulkWrite(ctx, models)
	if err != nil {
		return err
	}
	return res.UpsertedIDs[0].(uuid.UUID) // want `the driver decodes the id of an upsert`
}

func both(ctx context.Context, coll *mongo.Collection, filter, update any) any { // want both:`documents`
	res, err := coll.UpdateOne(ctx, filter, update)
	if err != nil {
		return err
	}
	if b, ok := res.UpsertedID.(bson.Binary); ok {
		return b
	}
	id, _ := res.UpsertedID.(uuid.UUID)
	return id
}
