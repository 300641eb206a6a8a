// Package untagged stores structs without tags, and generic ones of its own. // want package:`driver: `
package untagged

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type ID [16]byte

type Order struct {
	ID       ID // want `refuses ID`
	Customer []byte
}

type store[T any] struct{ coll *mongo.Collection } // want store:"type parameters .0."

func (s store[T]) all(ctx context.Context) ([]T, error) {
	cursor, err := s.coll.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	var all []T
	return all, cursor.All(ctx, &all)
}

type Read struct {
	ID ID // want `refuses ID`
}

type Other struct{ ID ID }

type Model struct {
	ID ID // want `refuses ID`
}

type tree struct {
	Left, Right *tree
	Nodes       []tree
	IDs         map[string][]ID // want `refuses ID`
}

var models = mongo.NewInsertOneModel().SetDocument(Model{})

var later = func(ctx context.Context, coll *mongo.Collection) {
	coll.FindOne(ctx, bson.M{}).Decode(&tree{})
}

func insert(ctx context.Context, coll *mongo.Collection, u uuid.UUID, other any) { // want insert:"parameters .3."
	coll.InsertOne(ctx, Order{Customer: u[:]}) // want `the bytes of a UUID in the field Customer`
	_ = store[Read]{}
	_ = Other{}
	coll.InsertOne(ctx, other)
	coll.InsertMany(ctx, []any{Order{}, &Order{}})
}

type customer struct {
	ID uuid.UUID `bson:"_id"`
}

func maps(ctx context.Context, coll *mongo.Collection, u uuid.UUID) {
	coll.FindOne(ctx, map[string]any{"_id": u.String()})                            // want `the text of a UUID`
	coll.FindOne(ctx, map[string]any{"a": map[string]any{"b": u[:]}})               // want `the bytes of a UUID in a document`
	coll.FindOne(ctx, map[string]any{"_id": map[string]any{"$in": []any{u[:], u}}}) // want `the bytes of a UUID in a document`
	filter := map[string]any{"_id": u, "name": u.String(), "raw": u[:]}             // want `the bytes of a UUID in a document`
	coll.FindOne(ctx, filter)
	_ = map[string]any{"_id": u.String(), "raw": u[:]} // is sent nowhere
}
