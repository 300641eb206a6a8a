package servertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The documents that the driver writes for structs without a codec become UUIDs and null, and are
// restored. Others are left and listed.
func TestGoStruct(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	type embeds struct{ uuid.UUID }
	var docs []any
	want := make(map[string]bson.Raw)
	for i := range 60 {
		u, v := uuid.New(), uuid.New()
		var user any = uuid.NullUUID{UUID: u, Valid: true}
		var now any = in(u, uuidrep.Standard)
		switch i % 5 {
		case 1:
			user = embeds{u}
		case 2:
			user, now = uuid.NullUUID{}, nil
		case 3:
			user = bson.D{{Key: "uuid", Value: in(u, uuidrep.Standard)}, {Key: "valid", Value: true}} // its value was converted
		}
		doc := func(user, friend any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: user}, {Key: "friends", Value: bson.A{friend, nil, "x"}},
				{Key: "other", Value: embeds{u}}}
		}
		docs = append(docs, doc(user, embeds{v}))
		raw := marshal(t, doc(now, in(v, uuidrep.Standard)))
		want[raw.Lookup("_id").String()] = raw
	}
	insert(t, coll, docs)
	before := all(t, coll)
	if r := command(t, s, "scan", "--db", s.Database(), "--all").want(t, failure.ExitOK); !strings.Contains(r.stdout, "Go structs") || !strings.Contains(r.stdout, "user.uuid") {
		t.Error(r.stdout)
	}
	if r := command(t, s, "scan", "--db", s.Database(), "--all", "--output", "json").want(t, failure.ExitOK); !strings.Contains(r.stdout, `"goStructs": 48`) {
		t.Error(r.stdout)
	}
	dir := prepared(t, s, "standard", convertFields("goStruct", "", "user", "friends"), accepted)
	apply := append([]string{"apply", dir}, gentle...)
	r := command(t, s, apply...).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "goStruct to standard") || !strings.Contains(r.stdout, "dry run") {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), before)
	r = command(t, s, append(apply, "--write", "--output", "json")...).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, `"values": 120`) || !strings.Contains(r.stdout, `"documents": 60`) {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), want)
	if r := command(t, s, "verify", dir).want(t, failure.ExitOK); !strings.Contains(r.stdout, "60") {
		t.Error(r.stdout)
	}

	// Another program removes a field in which undo would restore a document instead of null.
	if _, err := coll.UpdateByID(t.Context(), int32(2), bson.D{{Key: "$unset", Value: bson.D{{Key: "user", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitIncomplete)
	got := all(t, coll)
	key := `{"$numberInt":"2"}`
	if _, err := got[key].LookupErr("user"); err == nil {
		t.Error("a field that was removed is there again")
	}
	delete(got, key)
	delete(before, key)
	equal(t, got, before)
}

func TestGoStructLeft(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	u := uuid.New()
	id := bson.E{Key: "uuid", Value: in(u, uuidrep.Unspecified)}
	odd := []any{
		bson.D{id, {Key: "name", Value: "x"}}, bson.D{id, {Key: "valid", Value: false}}, bson.D{{Key: "uuid", Value: in(u, uuidrep.JavaLegacy)}},
		bson.D{{Key: "uuid", Value: bson.Binary{Data: u[1:]}}},
	}
	var docs []any
	for i, v := range append(odd, bson.D{{Key: "valid", Value: true}}, bson.D{}, "text", nil, in(u, uuidrep.Unspecified), bson.D{id}) {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: v}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	dir := prepared(t, s, "standard", convertFields("goStruct", "", "user"))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if lines := skipLines(t, skipList(t, dir)); len(lines) != len(odd) || slices.ContainsFunc(lines, func(l skipLine) bool { return l.Value[0] != '{' }) {
		t.Errorf("%+v", lines)
	}
	want := marshal(t, bson.D{{Key: "_id", Value: int32(len(docs) - 1)}, {Key: "user", Value: in(u, uuidrep.Standard)}})
	before[want.Lookup("_id").String()] = want
	equal(t, all(t, coll), before)
	changePlan(t, dir, trusted("user"))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete) // no trust makes a UUID of these
	equal(t, all(t, coll), before)
}

// A document in _id is converted into a new collection.
func TestGoStructInID(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := make(map[string]bson.Raw)
	var docs []any
	for range 20 {
		u := uuid.New()
		docs = append(docs, bson.D{{Key: "_id", Value: uuid.NullUUID{UUID: u, Valid: true}}, {Key: "v", Value: "a"}})
		raw := marshal(t, bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "v", Value: "a"}})
		want[raw.Lookup("_id").String()] = raw
	}
	insert(t, db.Collection("c"), docs)
	before := all(t, db.Collection("c"))
	dir := prepared(t, s, "standard", convertFields("goStruct", "", "_id"), intoNew("c"))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), before)
	equal(t, all(t, db.Collection("c_standard")), want)
}
