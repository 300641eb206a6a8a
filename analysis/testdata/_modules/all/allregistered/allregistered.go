// Package allregistered has a registry that accepts every type of kind [16]byte. // want package:`driver: `
package allregistered

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type ID [16]byte

type Document struct {
	ID ID `bson:"_id"`
}

func registry() (*bson.Registry, error) {
	return bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsUUID().Build()
}
