// Package bytes gives documents the bytes of UUIDs without their type. // want package:`driver: `
package bytes

import (
	"context"
	"crypto/md5"
	"reflect"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// OrderID is registered.
type OrderID [16]byte

// Sum is registered as bytes.
type Sum [16]byte

func configure(b *bsoncodec.RegistryBuilder) {
	b.RegisterUUIDType(reflect.TypeFor[OrderID]()).RegisterBytesType(reflect.TypeFor[Sum]())
}

func find(ctx context.Context, coll *mongo.Collection, u uuid.UUID, id OrderID, typed uuidrep.ID[OrderID], sum Sum) {
	coll.FindOne(ctx, bson.M{"_id": u[:]})                                       // want `the bytes of a UUID in a document`
	coll.FindOne(ctx, bson.M{"_id": bson.Binary{Data: u[:]}})                    // want `the bytes of a UUID in a bson.Binary of subtype 0`
	coll.FindOne(ctx, bson.M{"_id": id[:]})                                      // want `the bytes of a UUID in a document`
	coll.FindOne(ctx, bson.M{"_id": typed[:]})                                   // want `the bytes of a UUID in a document`
	coll.FindOne(ctx, bson.D{{Key: "_id", Value: bson.M{"$in": bson.A{id[:]}}}}) // want `the bytes of a UUID in a document`
	filter := bson.M{}
	filter["_id"] = id[:] // want `the bytes of a UUID in a document`
	coll.FindOne(ctx, filter)

	hash := md5.Sum(nil)
	coll.FindOne(ctx, bson.M{"_id": u, "order": id, "typed": typed, "sum": sum[:], "hash": hash[:]})
}

// byID takes UUIDs of any type. Its bytes are those of its type arguments.
func byID[T ~[16]byte](ctx context.Context, coll *mongo.Collection, id T) *mongo.SingleResult { // want byID:`bytes of type parameters .0.`
	return coll.FindOne(ctx, bson.M{"_id": id[:]})
}

func bySession[T uuid.UUID | gofrs.UUID](ctx context.Context, coll *mongo.Collection, id T) *mongo.SingleResult { // want bySession:`bytes of type parameters .0.`
	return coll.FindOne(ctx, bson.M{"session": id[:]}) // want `the bytes of a UUID in a document`
}

func typed[T ~[16]byte](ctx context.Context, coll *mongo.Collection, id T) *mongo.SingleResult { // want typed:`type parameters .0.`
	return coll.FindOne(ctx, bson.M{"_id": id})
}

func generic(ctx context.Context, coll *mongo.Collection, u uuid.UUID, id OrderID, sum Sum) {
	byID(ctx, coll, id) // want `the bytes of a UUID get into a document`
	byID(ctx, coll, u)  // want `the bytes of a UUID get into a document`
	byID(ctx, coll, sum)
	typed(ctx, coll, u)
	typed(ctx, coll, id)
}
