// Package client connects and stores UUIDs. // want package:`connects true, registry false`
package client

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/uuidrep"
)

type user struct {
	ID uuid.UUID `bson:"_id"`
}

type fixed struct {
	ID uuidrep.StandardUUID `bson:"_id"`
}

func simple(ctx context.Context) error {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost")) // want `this client has no registry, and a document of it holds a UUID \(client.user\)`
	if err != nil {
		return err
	}
	_, err = client.Database("app").Collection("users").InsertOne(ctx, &user{})
	return err
}

type store struct {
	client *mongo.Client
	users  *mongo.Collection
}

func open(uri string) (*store, error) {
	opts := options.Client().ApplyURI(uri)
	opts.SetAppName("app")
	client, err := connect(opts.SetMaxPoolSize(3))
	if err != nil {
		return nil, err
	}
	s := &store{client: client}
	db := client.Database("app")
	s.users = db.Collection("users")
	return s, nil
}

func connect(opts *options.ClientOptions) (*mongo.Client, error) {
	return mongo.Connect(opts, options.Client().SetAppName("app")) // the options of a parameter can have a registry
}

func (s *store) find(ctx context.Context, u uuid.UUID) error {
	return s.users.FindOne(ctx, bson.M{"_id": u}).Err()
}

type second struct{ users *mongo.Collection }

func openSecond(uri string) (*second, error) {
	opts := options.Client()
	opts = opts.ApplyURI(uri)
	client, err := mongo.Connect(opts) // want `this client has no registry, and a document of it holds a UUID \(bson.M\)`
	if err != nil {
		return nil, err
	}
	db := client.Database("app")
	return &second{db.Collection("users")}, nil
}

func (s *second) find(ctx context.Context, u uuid.UUID) error {
	s.users.FindOne(ctx, bson.M{"_id": u}).Err()
	return s.users.FindOne(ctx, bson.D{{Key: "_id", Value: u}}).Err()
}

type third struct{ users *mongo.Collection }

func openThird(coll *mongo.Collection, opts ...*options.ClientOptions) (*third, error) {
	client, err := mongo.Connect(opts...)
	if err != nil {
		return nil, err
	}
	if coll == nil {
		coll = client.Database("app").Collection("users")
	}
	return &third{coll}, nil
}

func (s *third) find(ctx context.Context, u uuid.UUID) error {
	return s.users.FindOne(ctx, bson.M{"_id": u}).Err()
}

func withoutUUIDs(ctx context.Context) error {
	client, err := mongo.Connect()
	if err != nil {
		return err
	}
	_, err = client.Database("app").Collection("users").InsertOne(ctx, fixed{})
	return err
}

func options1(ctx context.Context, opts *options.CollectionOptionsBuilder) error {
	client, err := mongo.Connect()
	if err != nil {
		return err
	}
	_, err = client.Database("app").Collection("users", opts).InsertOne(ctx, user{})
	return err
}
