// Package forms2 writes Go in its less usual forms: dot imports, aliases, embedded types, method values. // want package:`driver: `
package forms2

import (
	"context"
	"reflect"

	"github.com/google/uuid"
	b "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	o "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	. "github.com/bsonids/bsonids/autoid"
	oid "github.com/bsonids/bsonids/objectidgen"
)

type User struct {
	ID uuid.UUID `bson:"_id,omitempty"`
}

type (
	UserAlias = User
	CollAlias = *mongo.Collection
	Embedding struct{ *Wrapped }
	Wrapped   = autoid.Collection
)

func dot(ctx context.Context) {
	client, err := mongo.Connect(o.Client().ApplyURI("mongodb://localhost")) // want `this client has no registry`
	if err != nil {
		return
	}
	(client.Database("a")).Collection("b").InsertOne(ctx, UserAlias{})
	Wrap(nil, (oid.Default())).InsertOne(ctx, (&UserAlias{})) // want `the source makes an ObjectID`
	w := Wrap(nil, oid.Default(), WithWriteBack())
	e := Embedding{w}
	e.InsertOne(ctx, User{})
	f := w.InsertOne
	f(ctx, User{})
	Wrap(nil, SourceFunc(oid.Default().NewID)).InsertOne(ctx, []User{}[0]) // want `the source makes an ObjectID`
	Wrap(nil, Source(oid.Default())).InsertMany(ctx, make([]*User, 2))     // want `the source makes an ObjectID`
	Wrap(nil, source{}).InsertOne(ctx, User{})                             // want `the source makes an ObjectID`
	Wrap(nil, &source{}).InsertOne(ctx, User{})                            // want `the source makes an ObjectID`
	var s Source = oid.Default()
	s = source{}
	Wrap(nil, s).InsertOne(ctx, User{}) // want `the source makes an ObjectID`
}

// source is a Source by an embedded type.
type source struct{ *oid.Generator }

type Rec struct {
	Next *Rec
	All  map[string]Rec
	Fn   func(Rec) Rec
	Ch   chan Rec
	Any  any
	ID   [16]byte // want `refuses \[16\]byte`
}

type generic[T any] interface {
	Put(ctx context.Context, v T)
}

type impl[T any, C interface {
	InsertOne(context.Context, any, ...o.Lister[o.InsertOneOptions]) (*mongo.InsertOneResult, error)
}] struct{ coll C }

func (i impl[T, C]) Put(ctx context.Context, v T) { i.coll.InsertOne(ctx, v) }

type self[T any] struct { // want self:`type parameters .0.`
	coll *mongo.Collection
	next *self[T]
	deep *self[int]
}

func (s *self[T]) put(ctx context.Context, vs ...T) { s.coll.InsertMany(ctx, vs) }

func recursive[T any](ctx context.Context, n int, v T) { // want recursive:`type parameters .0.`
	if n > 0 {
		recursive(ctx, n-1, v)
	}
	(&self[T]{}).put(ctx, v)
}

func run(ctx context.Context, coll *mongo.Collection, vs ...any) { // want run:`parameters .2.`
	recursive(ctx, 1, Rec{})
	coll.InsertMany(ctx, vs)
	_ = reflect.TypeOf(b.D{})
}

func loop(x any) any { return loop2(x) }
func loop2(x any) any {
	y := loop(x)
	x = y
	return x
}

// Variables that are given what they are part of.
func circular(ctx context.Context, coll *mongo.Collection) {
	var doc any
	doc = map[string]any{"next": doc}
	coll.InsertOne(ctx, doc)
	var raw []byte
	raw = []byte(raw)
	coll.InsertOne(ctx, b.M{"raw": raw})
	var src Source
	src = Source(src)
	Wrap(coll, src).InsertOne(ctx, User{})
	var users *autoid.Collection
	users = users.Clone()
	users.InsertOne(ctx, User{})
	opts := o.Client()
	opts = opts.SetAppName(*opts.AppName)
	opts, client := opts.ApplyURI("a"), new(mongo.Client)
	client, _ = mongo.Connect(opts)
	client.Database("a").Collection("b").InsertOne(ctx, User{})
	_ = raw
}
