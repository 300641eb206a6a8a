// Package ranges looks for documents by the time in their ids. // want package:`driver: `
package ranges

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

type Order struct {
	ID       uuid.UUID                `bson:"_id"`
	Customer uuidrep.JavaLegacyUUID   `bson:"customer"`
	Old      uuidrep.CSharpLegacyUUID `bson:"old"`
}

func connect(uri string) (*mongo.Client, error) {
	return clientopt.Connect(uri, clientopt.WithDefaultRepresentation(uuidrep.JavaLegacy))
}

func find(ctx context.Context, orders *mongo.Collection, from, to time.Time, last uuid.UUID) (all []Order, err error) {
	made, err := uuidgen.HalfOpenV7(from, to)
	if err != nil {
		return nil, err
	}
	filter, err := made.Filter("_id", uuidrep.Standard) // want `no client of this module stores UUIDs as uuidrep.Standard, so that the range finds nothing; ids of version 7 are in the order of time in the representations standard and pythonLegacy alone`
	if err != nil {
		return nil, err
	}
	orders.Find(ctx, filter)
	made.Filter("_id", uuidrep.JavaLegacy)                                                // want `uuidrep.JavaLegacy does not keep the order of ids of version 7, so that Filter returns ErrOrder: use version 8`
	orders.Find(ctx, bson.M{"_id": bson.M{"$gte": made.Min, "$lt": made.Max}})            // want `do not store ids of version 7 in the order of time` `do not store ids of version 7`
	cursor, err := orders.Find(ctx, bson.M{"_id": bson.M{"$gt": last}, "customer": last}) // pages of any order
	if err != nil {
		return nil, err
	}
	orders.Find(ctx, bson.M{"old": last}) // want `the field ranges.Order.Old is csharpLegacy`
	v8, err := uuidgen.HalfOpenV8(from, to, uuidrep.JavaLegacy)
	if err != nil {
		return nil, err
	}
	v8.Filter("_id", uuidrep.JavaLegacy)
	return all, cursor.All(ctx, &all)
}
