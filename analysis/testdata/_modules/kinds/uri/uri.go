// Package uri gives the driver an option that it ignores. // want package:`driver: `
package uri

import (
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
)

const uri = "mongodb://localhost/?uuidRepresentation=standard"

func connect() (*mongo.Client, error) {
	return mongo.Connect(options.Client().ApplyURI(uri)) // want `the driver ignores uuidRepresentation`
}

func right() (*mongo.Client, error) { return clientopt.Connect(uri) }
