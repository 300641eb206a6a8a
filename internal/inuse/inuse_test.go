package inuse

import (
	"context"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
)

// The driver keeps the registry and the options in fields of these names.
func TestDriverKeepsItsSettingsInFields(t *testing.T) {
	for name, at := range map[string]places{
		"Client": found().client, "Database": found().database, "Collection": found().collection,
		"Cursor": found().cursor, "SingleResult": found().singleResult, "ChangeStream": found().changeStream,
	} {
		if !at.known {
			t.Errorf("the fields of %s are not known", name)
		}
	}
	if unknown := found().unknown; len(unknown) > 0 {
		t.Errorf("package bsoncodec lacks the options %v of BSONOptions", unknown)
	}
}

func TestOf(t *testing.T) {
	reg, other := bson.NewRegistry(), bson.NewRegistry()
	all := reflect.TypeFor[options.BSONOptions]()
	for i := -1; i < all.NumField(); i++ {
		bsonOpts, want := &options.BSONOptions{}, bsoncodec.Options{}
		if i >= 0 {
			reflect.ValueOf(bsonOpts).Elem().Field(i).SetBool(true)
			reflect.ValueOf(&want).Elem().FieldByName(all.Field(i).Name).SetBool(true)
		}
		c, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1").SetRegistry(reg).SetBSONOptions(bsonOpts))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
		check := func(what string, got, want *bson.Registry, opts, wantOpts bsoncodec.Options, ok bool) {
			t.Helper()
			if !ok || got != want || opts != wantOpts {
				t.Errorf("%s with option %d: got %p, %+v, %t", what, i, got, opts, ok)
			}
		}
		db := c.Database("d", options.Database().SetRegistry(other))
		r, o, ok := Of(c)
		check("a client", r, reg, o, want, ok)
		r, o, ok = Of(db)
		check("a database", r, other, o, want, ok)
		r, o, ok = Of(db.Collection("c"))
		check("a collection", r, other, o, want, ok)
		r, o, ok = Of(db.Collection("c", options.Collection().SetRegistry(reg)))
		check("a collection of its own", r, reg, o, want, ok)
	}
	// A cursor tells before its first document, on one and at its end, and does not move.
	cur, err := mongo.NewCursorFromDocuments([]any{bson.D{}, bson.D{}}, nil, reg)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		if r, o, ok := Of(cur); !ok || r != reg || o != (bsoncodec.Options{}) {
			t.Errorf("a cursor: got %p, %v, %t", r, o, ok)
		}
		if !cur.Next(context.Background()) {
			if n != 2 {
				t.Errorf("the cursor ended after %d documents", n)
			}
			break
		}
	}
	if r, o, ok := Of(mongo.NewSingleResultFromDocument(bson.D{}, nil, reg)); !ok || r != reg || o != (bsoncodec.Options{}) {
		t.Errorf("a single result: got %p, %v, %t", r, o, ok)
	}
}

func TestOfNothing(t *testing.T) {
	_, _, nilOK := Of((*mongo.Cursor)(nil))
	_, _, zeroOK := Of(new(mongo.Cursor))
	_, _, resultOK := Of(new(mongo.SingleResult))
	_, _, streamOK := Of(new(mongo.ChangeStream))
	if nilOK || zeroOK || resultOK || streamOK {
		t.Error("what has no registry is known")
	}
}
