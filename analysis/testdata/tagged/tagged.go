// Command tagged connects, and stores through an interface what a struct with tags says. // want package:`connects true, registry false, documents .. .example.com/shop/tagged.User.`
package main

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// User is a document.
type User struct {
	ID uuid.UUID `bson:"_id"`
}

type store interface {
	Insert(ctx context.Context, doc any) error
}

type users struct{ coll *mongo.Collection }

func (u users) Insert(ctx context.Context, doc any) error { // want Insert:"parameters .1."
	_, err := u.coll.InsertOne(ctx, doc)
	return err
}

func main() {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost")) // want `no client of this program has a registry, and documents hold UUIDs \(tagged.User\)`
	if err != nil {
		panic(err)
	}
	var s store = users{client.Database("app").Collection("users")}
	s.Insert(context.Background(), User{})
}
