// Package sources has autoid collections whose source does not fit the _id of the documents. // want package:`driver: `
package sources

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"

	"example.com/shop/ids"
)

type User struct {
	ID uuid.UUID `bson:"_id,omitempty"`
}

type Order struct {
	ID bson.ObjectID `bson:"_id,omitempty"`
}

type Base struct {
	ID *uuid.UUID `bson:"_id,omitempty"`
}

type Invoice struct {
	Base `bson:",inline"`
}

type Legacy struct {
	ID uuidrep.JavaLegacyUUID `bson:"_id,omitempty"`
}

type Free struct {
	ID any `bson:"_id,omitempty"`
}

type Named struct {
	ID string `bson:"_id,omitempty"`
}

type Counted struct {
	ID int64 `bson:"_id,omitempty"`
}

type Own struct {
	ID opaque `bson:"_id,omitempty"`
}

type opaque [16]byte

func (opaque) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

type Untagged struct {
	ID   bson.ObjectID
	Name string
}

type Tagged struct {
	Key uuid.UUID `bson:"id"`
}

func direct(ctx context.Context, coll *mongo.Collection) {
	autoid.Wrap(coll, objectidgen.Default()).InsertOne(ctx, User{}) // want `the source makes an ObjectID, and the _id of User is a UUID`
	orders := autoid.Wrap(coll, uuidgen.DefaultV7())
	orders.InsertOne(ctx, &Order{})                          // want `the source makes a UUID, and the _id of Order is an ObjectID`
	orders.InsertMany(ctx, []Order{{}, {}})                  // want `the source makes a UUID` `the source makes a UUID`
	orders.InsertMany(ctx, []any{User{}, Order{}, bson.M{}}) // want `the source makes a UUID, and the _id of Order`
	orders.InsertMany(ctx, make([]Order, 2))                 // want `the source makes a UUID, and the _id of Order`
	orders.InsertOne(ctx, Invoice{})
	orders.InsertOne(ctx, Legacy{})
	orders.InsertOne(ctx, Free{})
	orders.InsertOne(ctx, Named{})
	orders.InsertOne(ctx, Own{})
	orders.InsertOne(ctx, bson.D{})
	orders.InsertOne(ctx, Counted{})  // want `the source makes a UUID, and the _id of Counted is a number`
	orders.InsertOne(ctx, Untagged{}) // the kinds differ
	orders.InsertOne(ctx, Tagged{})   // want `the field Key of Tagged has the key id`
}

func functions(ctx context.Context, coll *mongo.Collection) {
	a := autoid.Wrap(coll, autoid.SourceFunc(func() (any, error) { return bson.NewObjectID(), nil }))
	a.InsertOne(ctx, Invoice{})  // want `the source makes an ObjectID, and the _id of Invoice is a UUID`
	a.InsertOne(ctx, Untagged{}) // want `the field ID of Untagged has the key id`
	a.InsertOne(ctx, Named{})    // a client can read it as hexadecimal text
	b := autoid.Wrap(coll, autoid.SourceFunc(ids.Random))
	b.InsertOne(ctx, Order{}) // want `the source makes a UUID`
	d := autoid.Wrap(coll, autoid.SourceFunc(ids.Either(true)))
	d.InsertOne(ctx, Order{})
	autoid.Wrap(coll, new(ids.Numbers)).InsertOne(ctx, Order{}) // want `the source makes a number, and the _id of Order is an ObjectID`
	autoid.Wrap(coll, autoid.SourceFunc(mixed)).InsertOne(ctx, Order{})
}

func mixed() (any, error) {
	if uuid.Nil == (uuid.UUID{}) {
		return int64(1), nil
	}
	return uuid.New(), nil
}

func documents(ctx context.Context, coll *mongo.Collection, src autoid.Source) {
	var u User
	_ = autoid.Assign(objectidgen.Default(), &u)                        // want `the source makes an ObjectID`
	coll.InsertOne(ctx, autoid.Document(objectidgen.Default(), User{})) // want `the source makes an ObjectID`
	coll.InsertOne(ctx, autoid.Document(src, User{}))
}

type store struct {
	users  *autoid.Collection
	either *autoid.Collection
	given  *autoid.Collection
	Public *autoid.Collection
}

func newStore(db *mongo.Database, src autoid.Source, coll *autoid.Collection, opts ...autoid.Option) *store {
	s := &store{users: wrapped(db), given: coll, Public: wrapped(db)}
	s.either = autoid.Wrap(db.Collection("either"), src)
	s.either = wrapped(db)
	ids := autoid.Wrap(db.Collection("o"), objectidgen.Default(), opts...)
	ids.InsertOne(context.Background(), User{})
	return s
}

func wrapped(db *mongo.Database) *autoid.Collection {
	ids := objectidgen.Default()
	return autoid.Wrap(db.Collection("users"), ids, autoid.WithWriteBack())
}

func (s *store) insert(ctx context.Context, u User, coll *autoid.Collection) {
	s.users.InsertOne(ctx, u) // want `the source makes an ObjectID`
	s.either.InsertOne(ctx, u)
	s.given.InsertOne(ctx, u)
	s.Public.InsertOne(ctx, u)
	coll.InsertOne(ctx, u)
}
