// Package connect connects with the driver alone. // want package:`connects true, registry false`
package connect

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func save(ctx context.Context) error {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost")) // want `this client has no registry, and a document of it holds a UUID`
	if err != nil {
		return err
	}
	_, err = client.Database("app").Collection("users").InsertOne(ctx, bson.M{"_id": uuid.New()})
	return err
}

func without(ctx context.Context) error {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost"))
	if err != nil {
		return err
	}
	_, err = client.Database("app").Collection("users").InsertOne(ctx, bson.M{"_id": 1})
	return err
}
