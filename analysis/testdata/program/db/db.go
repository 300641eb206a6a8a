// Package db makes the client, which its caller can give to a database with a registry. // want package:`connects true, registry false`
package db

import (
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Connect connects.
func Connect(uri string) (*mongo.Client, error) { return mongo.Connect(options.Client().ApplyURI(uri)) }
