// Package mistakes has code that compiles and does not do what it says. // want package:`driver: `
package mistakes

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/clientopt"
)

const uri = "mongodb://localhost/?uuidRepresentation=standard"

func connect(host string, reg *bson.Registry) {
	mongo.Connect(options.Client().ApplyURI(uri))                                                            // want `the driver ignores uuidRepresentation`
	mongo.Connect(options.Client().ApplyURI("mongodb://" + host + "/?UUIDREPRESENTATION=javaLegacy"))        // want `the driver ignores uuidRepresentation`
	mongo.Connect(options.Client().ApplyURI(fmt.Sprintf("mongodb://%s/?uuidRepresentation=standard", host))) // want `the driver ignores uuidRepresentation`
	mongo.Connect(options.Client().ApplyURI("mongodb://" + host))
	opts, err := clientopt.ApplyURI(uri)
	if err != nil {
		return
	}
	opts.SetAppName("shop").SetRegistry(reg) // want `SetRegistry replaces the registry`
	options.Client().SetRegistry(reg)
}

type Order struct {
	ID       bson.ObjectID `bson:"_id"`
	Customer uuid.UUID     `bson:"customer"`
}

type Invoice struct {
	ID bson.ObjectID `bson:"_id,omitempty"`
}

type Text struct {
	ID string `bson:"_id"`
}

func insert(ctx context.Context, coll *autoid.Collection) {
	coll.InsertOne(ctx, Order{})  // want `the _id of Order has no omitempty`
	coll.InsertOne(ctx, &Order{}) // want `the _id of Order has no omitempty`
	coll.InsertOne(ctx, Invoice{})
	coll.InsertOne(ctx, Text{})
}

func find(ctx context.Context, coll *mongo.Collection, u uuid.UUID, t Text, name fmt.Stringer) error {
	coll.FindOne(ctx, bson.M{"customer": u.String()})   // want `the text of a UUID`
	coll.FindOne(ctx, bson.D{{"customer", u.String()}}) // want `the text of a UUID`
	coll.FindOne(ctx, bson.D{{Key: "customer", Value: u}, {Key: "name", Value: name.String()}, {Key: "other", Value: u.String()}})
	res, err := coll.InsertOne(ctx, bson.M{"_id": u})
	if err != nil {
		return err
	}
	_ = res.InsertedID.(bson.Binary) // want `InsertedID is a UUID`
	_ = res.InsertedID.(uuid.UUID)
	var m bson.M
	if err := coll.FindOne(ctx, bson.M{}).Decode(&m); err != nil {
		return err
	}
	_ = m["address"].(bson.M) // want `decodes a document within a document into a bson.D`
	_ = m["address"].(bson.D)
	built := bson.M{"$or": bson.M{}}
	_ = built["$or"].(bson.M)
	_, err = bson.ObjectIDFromHex(t.ID) // want `does not decode an ObjectID into a string`
	return err
}

func encode(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	u := v.Interface().(uuid.UUID)
	return vw.WriteBinaryWithSubtype(u[:], 3) // want `a hand-written codec`
}

func decode(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	data, _, err := vr.ReadBinary() // want `a hand-written codec`
	if err != nil {
		return err
	}
	u, err := uuid.FromBytes(data)
	v.Set(reflect.ValueOf(u))
	return err
}

func decodeBlob(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	data, _, err := vr.ReadBinary()
	v.SetBytes(data)
	return err
}
