// Package setregistry replaces the registry that it has asked for. // want package:`driver: `
package setregistry

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
)

type Money struct{ cents int64 }

func connect(uri string, codec bson.ValueEncoder) (*mongo.Client, error) {
	opts, err := clientopt.ApplyURI(uri)
	if err != nil {
		return nil, err
	}
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.TypeFor[Money](), codec)
	return mongo.Connect(opts.SetRegistry(reg)) // want `SetRegistry replaces the registry that clientopt.ApplyURI made`
}

func right(uri string, codec bson.ValueEncoder) (*mongo.Client, error) {
	return clientopt.Connect(uri, clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) {
		b.With(func(reg *bson.Registry) { reg.RegisterTypeEncoder(reflect.TypeFor[Money](), codec) })
	}))
}

func other(uri string) (*mongo.Client, error) {
	return mongo.Connect(options.Client().ApplyURI(uri).SetRegistry(bson.NewRegistry()))
}
