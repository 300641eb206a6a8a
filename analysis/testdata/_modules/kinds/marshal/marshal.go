// Package marshal encodes without the registry of the client, through functions of its own, too. // want package:`driver: `
package marshal

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
)

type User struct {
	ID uuid.UUID `bson:"_id"`
}

type Page struct {
	N int `bson:"n"`
}

func encode(v any) []byte { // want encode:`without a registry: parameters .0.`
	data, _ := bson.Marshal(v)
	return data
}

func decode[T any](data []byte) (v T, err error) { // want decode:`without a registry: parameters .., type parameters .0.`
	err = bson.Unmarshal(data, &v)
	return v, err
}

func again(v any) []byte { return encode(v) } // want again:`without a registry: parameters .0.`

func choose(reg *bson.Registry, v any) ([]byte, error) { // want choose:`documents`
	if reg == nil {
		return bson.Marshal(v)
	}
	return bsoncodec.Marshal(reg, v)
}

func use(reg *bson.Registry, u User) {
	bson.Marshal(u)   // want `bson.Marshal does not use the registry`
	encode(u)         // want `encode encodes or decodes with a function of package bson that does not use the registry`
	again(&u)         // want `again encodes or decodes`
	decode[User](nil) // want `decode encodes or decodes`
	encode(Page{})
	decode[Page](nil)
	choose(reg, u)
	bsoncodec.Marshal(reg, u)
}
