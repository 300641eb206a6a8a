// Package given gives one of its clients a registry. // want package:`connects true, registry true`
package given

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type user struct {
	ID uuid.UUID `bson:"_id"`
}

func insert(ctx context.Context, reg *bson.Registry) error {
	opts := options.Client()
	set(opts, reg)
	client, err := mongo.Connect(opts)
	if err != nil {
		return err
	}
	_, err = client.Database("app").Collection("users").InsertOne(ctx, &user{})
	return err
}

func set(opts *options.ClientOptions, reg *bson.Registry) { opts.Registry = reg }
