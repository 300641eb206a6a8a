// Command configured gives the database a registry. // want package:`connects true, registry true`
package main

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"example.com/shop/program/db"
	"example.com/shop/program/users"
)

func registry() *bson.Registry { return nil }

func main() {
	client, err := db.Connect("mongodb://localhost")
	if err != nil {
		panic(err)
	}
	var c *mongo.Client = client
	_ = c.Database("app", options.Database().SetRegistry(registry()))
	users.New(c).Insert(context.Background(), users.User{})
}
