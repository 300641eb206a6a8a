package servertest

import (
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A unique value moves from one document to another during the copy, so that both copies hold it.
// They are brought up to date before the unique index is given up.
func TestUniqueValuePassesOn(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old, fresh := db.Collection("old"), db.Collection("old_standard")
	insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "seat", Value: "a"}}, bson.D{{Key: "_id", Value: 2}, {Key: "seat", Value: "b"}}})
	if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "seat", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	set := func(coll *mongo.Collection, id int, seat string) {
		if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "seat", Value: seat}}}}); err != nil {
			t.Error(err)
		}
	}
	converted := carrier(t, old)
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("u"), intoNew("old"))
	var refused atomic.Int32
	var created, changed atomic.Bool
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "create":
			if name, _ := r.command.Lookup("create").StringValueOK(); name == "old_standard" {
				created.Store(true)
			}
		case "find":
			if _, err := r.command.LookupErr("filter", "_id", "$gt"); err == nil && created.Load() && !changed.Swap(true) { // after the first document
				set(old, 1, "c")
				set(old, 2, "a")
			}
		case "createIndexes":
			n, err := fresh.CountDocuments(t.Context(), bson.D{{Key: "seat", Value: "a"}})
			if err != nil {
				t.Error(err)
			}
			if n > 1 {
				refused.Add(1)
				return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(11000)}, {Key: "codeName", Value: "DuplicateKey"}, {Key: "errmsg", Value: "E11000 duplicate key error collection: db.new index: seat_1 dup key"}})
			}
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write", "--batch", "1").want(t, failure.ExitOK)
	if n := refused.Load(); n != 1 {
		t.Errorf("the index was refused %d times", n)
	}
	want := all(t, old)
	note(want, converted)
	equal(t, all(t, fresh), want)
	specs, err := fresh.Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 || specs[1].Unique == nil || !*specs[1].Unique {
		t.Errorf("%+v, %v", specs, err)
	}
}

// The value moves after the unique index was created. The copy that needs a value of another copy
// is replaced after that copy.
func TestUniqueValueIsAwaited(t *testing.T) {
	for _, swap := range []bool{false, true} {
		s := mongotest.Start(t)
		db := connect(t, s)
		old, fresh := db.Collection("old"), db.Collection("old_standard")
		insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "seat", Value: "a"}}, bson.D{{Key: "_id", Value: 2}, {Key: "seat", Value: "b"}}})
		if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "seat", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
			t.Fatal(err)
		}
		set := func(coll *mongo.Collection, id int, seat string) {
			if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "seat", Value: seat}}}}); err != nil {
				t.Error(err)
			}
		}
		converted := carrier(t, old)
		dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("u"), intoNew("old"))
		var updates atomic.Int32
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if name, _ := r.command.Lookup(r.name()).StringValueOK(); name != "old_standard" {
				return pass()
			}
			switch r.name() {
			case "createIndexes":
				answer := pass()
				set(old, 2, "c")
				set(old, 1, "b")
				if swap {
					set(old, 2, "a")
				}
				return answer
			case "update":
				if updates.Add(1) == 1 && !swap { // FerretDB refuses the whole command instead of its first update
					set(fresh, 2, "c")
					return r.reply(bson.D{{Key: "n", Value: int32(1)}, {Key: "nModified", Value: int32(1)}, {Key: "ok", Value: 1.0},
						{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: int32(0)}, {Key: "code", Value: int32(11000)}, {Key: "errmsg", Value: "E11000 duplicate key error"}}}}})
				}
				if swap {
					return r.refuse(11000, "E11000 duplicate key error")
				}
			}
			return pass()
		})
		// If each of two copies waits for the other, both are written anew.
		command(t, p, "apply", dir, "--write").want(t, failure.ExitOK)
		want := all(t, old)
		note(want, converted)
		equal(t, all(t, fresh), want)
	}
}

// If a killed run copied a document and the source changed since, the copy is brought up to date.
// It is then not a conflict.
func TestNoConflictOfStaleCopy(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("old"), 8, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := prepared(t, s, "standard", intoNew("old"))
	var inserted atomic.Bool
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "old_standard" && !inserted.Swap(true) {
			insert(t, db.Collection("old_standard"), []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: int32(7)}}})
		}
		return pass()
	})
	r := command(t, p, "apply", dir, "--write").want(t, failure.ExitOK)
	if strings.Contains(r.stdout, "another document") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("old_standard")), want)
}
