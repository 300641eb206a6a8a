// Package unregistered has types for UUIDs that no registry knows. // want package:`driver: `
package unregistered

import (
	"context"
	"reflect"

	gofrs "github.com/gofrs/uuid/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"

	"example.com/shop/model"
)

type OrderID [16]byte

type Order struct {
	ID      OrderID           `bson:"_id"`     // want `refuses OrderID, which is of kind \[16\]byte and not registered: call RegistryBuilder.RegisterUUIDType; if that is done elsewhere, write //bsonids:registered above its declaration, or name it in the flag -registered \(golangci-lint: registered\)`
	Session gofrs.UUID        `bson:"session"` // want `refuses github.com/gofrs/uuid/v5.UUID`
	Known   model.Known       `bson:"known"`
	Typed   uuidrep.ID[Order] `bson:"typed"`
}

func configure(b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(reflect.TypeFor[model.Known]()) }

func find(ctx context.Context, coll *mongo.Collection, id OrderID, known model.Known) {
	coll.FindOne(ctx, bson.M{"_id": id}) // want `refuses OrderID`
	coll.FindOne(ctx, bson.M{"_id": known})
}
