package servertest

import (
	"bytes"
	"os"
	"path/filepath"
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
	dir := t.TempDir()
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
	named := []string{"--db", s.Database(), "--collection", "c", "--from", "goStruct", "--field", "user,friends"}
	undo, state := filepath.Join(dir, "undo"), filepath.Join(dir, "state")

	if r := command(t, s, "scan", "--db", s.Database(), "--all").want(t, failure.ExitOK); !strings.Contains(r.stdout, "Go structs") || !strings.Contains(r.stdout, "user.uuid") {
		t.Error(r.stdout)
	}
	if r := command(t, s, "scan", "--db", s.Database(), "--all", "--output", "json").want(t, failure.ExitOK); !strings.Contains(r.stdout, `"goStructs": 48`) {
		t.Error(r.stdout)
	}
	for _, wrong := range [][]string{
		{"convert", "--db", s.Database(), "--collection", "c", "--from", "goStruct", "--write"},
		{"convert", "--db", s.Database(), "--collection", "c", "--from", "standard", "--to", "goStruct", "--write"},
		{"convert", "--db", s.Database(), "--collection", "c", "--from", "goStruct", "--field", "user.uuid2", "--write"},
	} {
		command(t, s, wrong...).want(t, failure.ExitUsage)
	}
	command(t, s, append([]string{"convert", "--output", "json", "--examples", "-1"}, named...)...).want(t, failure.ExitOK)
	r := command(t, s, append([]string{"convert"}, named...)...).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "goStruct to standard (subtype 4); dry run") || !strings.Contains(r.stdout, "120 values in 60 documents to change") {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), before)
	write := append(append([]string{"convert", "--write", "--state", state, "--undo-log", undo}, gentle...), named...)
	command(t, s, write...).want(t, failure.ExitOK)
	equal(t, all(t, coll), want)
	verify := append([]string{"verify"}, named...)
	if r := command(t, s, append(verify, "--undo-log", undo, "--state", state)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the undo log: 60 documents") {
		t.Error(r.stdout)
	}
	if r := command(t, s, verify...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the types alone") {
		t.Error(r.stdout)
	}

	// Another program removes a field in which undo would restore a document instead of null.
	if _, err := coll.UpdateByID(t.Context(), int32(2), bson.D{{Key: "$unset", Value: bson.D{{Key: "user", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, append(verify, "--undo-log", undo)...).want(t, failure.ExitIncomplete)
	command(t, s, "undo", undo, "--write").want(t, failure.ExitIncomplete)
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
	list := filepath.Join(t.TempDir(), "skipped")
	u := uuid.New()
	id := bson.E{Key: "uuid", Value: in(u, uuidrep.Unspecified)}
	odd := []any{
		bson.D{id, {Key: "name", Value: "x"}}, bson.D{id, {Key: "valid", Value: false}}, bson.D{{Key: "uuid", Value: in(u, uuidrep.JavaLegacy)}},
		bson.D{{Key: "uuid", Value: bson.Binary{Data: u[1:]}}}, bson.D{{Key: "valid", Value: true}}, bson.D{},
	}
	var docs []any
	for i, v := range append(odd, "text", nil, in(u, uuidrep.Unspecified), bson.D{id}) {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: v}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "goStruct", "--field", "user", "--write", "--skip-list", list).want(t, failure.ExitIncomplete)
	b, err := os.ReadFile(list)
	if err != nil || bytes.Count(b, []byte("\n")) != len(odd) || bytes.Count(b, []byte(`"value":{`)) != len(odd) {
		t.Errorf("%v\n%s", err, b)
	}
	want := marshal(t, bson.D{{Key: "_id", Value: int32(len(docs) - 1)}, {Key: "user", Value: in(u, uuidrep.Standard)}})
	before[want.Lookup("_id").String()] = want
	equal(t, all(t, coll), before)
	command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "goStruct", "--field", "user", "--write", "--retry", list, "--trust", "user").want(t, failure.ExitIncomplete)
	equal(t, all(t, coll), before)
}

// A document in _id is converted with --into.
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
	named := []string{"--db", s.Database(), "--collection", "c", "--from", "goStruct", "--field", "_id", "--into", "new"}
	command(t, s, append(append([]string{"convert", "--write"}, gentle...), named...)...).want(t, failure.ExitOK)
	command(t, s, append([]string{"verify"}, named...)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), before)
	equal(t, all(t, db.Collection("new")), want)
}
