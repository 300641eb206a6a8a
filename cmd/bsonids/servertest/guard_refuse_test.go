package servertest

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Collections and fields that cannot be guarded are refused with the reason, and not changed.
func TestGuardRefuses(t *testing.T) {
	g := startGuarded(t)
	refuse := func(why string, args ...string) {
		t.Helper()
		before := g.settings()
		r := g.run(args...).want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, why) || g.settings() != before {
			t.Errorf("%q: %v\n%s", args, g.settings(), r.stderr)
		}
	}
	refuse("a validator cannot distinguish them", "--to", "csharpLegacy", "--write")
	refuse("map keys", "--field", "by.*.id", "--write")
	refuse("a number", "--field", "items.0.sku", "--write")
	refuse("_id cannot be converted in place", "--field", "_id", "--write")
	refuse("has no such field", "--field", "custumer", "--write")
	refuse("dollar sign", "--field", "ref.$id", "--write")
	id := func(n int) any {
		return bson.D{{Key: "_id", Value: in(v4(n), uuidrep.JavaLegacy)}, {Key: "deep", Value: bson.A{bson.A{in(v4(n), uuidrep.JavaLegacy)}}}}
	}
	var docs []any
	for i := range 60 {
		docs = append(docs, id(i))
	}
	insert(t, g.coll, docs)
	refuse("_id: _id cannot be converted in place, only into a new collection; deep[][]: an array in an array; a validator tests only the elements of the outer one; "+
		"to guard only the others, give --field customer,items.sku", "--write")
	refuse("deep[][]: arrays in arrays", "--field", "deep", "--write")
	g.run("--field", "customer,items[].sku", "--write").want(t, failure.ExitOK)
	refuse("is guarded already, against subtype 3 in customer, items.sku; to guard other fields, remove the guard first: bsonids guard", "--field", "customer", "--write")

	if err := g.db.CreateView(t.Context(), "view", "c", mongo.Pipeline{}); err == nil {
		r := command(t, g.s, "guard", "--db", g.db.Name(), "--collection", "view", "--from", "javaLegacy", "--write").want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "because it is a view") {
			t.Errorf("%s", r.stderr)
		}
	}
	encrypted := bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "properties", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "encrypt", Value: bson.D{}}}}}}}}}
	if err := g.db.CreateCollection(t.Context(), "encrypted", options.CreateCollection().SetValidator(encrypted)); err == nil {
		r := command(t, g.s, "guard", "--db", g.db.Name(), "--collection", "encrypted", "--from", "javaLegacy", "--write").want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "encrypt or encryptMetadata") {
			t.Errorf("%s", r.stderr)
		}
	}
	command(t, g.s, "guard", "--db", g.db.Name(), "--collection", "absent", "--from", "javaLegacy", "--write").want(t, failure.ExitUsage)
	command(t, g.s, "guard", "--db", g.db.Name(), "--collection", record.Name, "--from", "javaLegacy").want(t, failure.ExitUsage)
	command(t, g.s, "guard", "--db", "admin", "--collection", "system.users", "--from", "javaLegacy").want(t, failure.ExitUsage)
	command(t, g.s, "guard", "--db", g.db.Name(), "--collection", "c").want(t, failure.ExitUsage)
	g.run("--remove", "--level", "strict").want(t, failure.ExitUsage)
}

// Commands that would write what the guard refuses, or copy the guard, are refused before they write.
func TestGuardRefusesOthers(t *testing.T) {
	g := startGuarded(t)
	files := []string{"--state", t.TempDir() + "/state", "--undo-log", t.TempDir() + "/undo"}
	conv := []string{"convert", "--db", g.db.Name(), "--collection", "c", "--from", "javaLegacy", "--write"}
	command(t, g.s, append(slices.Clone(conv), files...)...).want(t, failure.ExitOK)
	before := all(t, g.coll)
	// No old value is left, so that the fields are those of the decision in the record.
	if r := g.run("--write").want(t, failure.ExitOK); !strings.Contains(r.stdout, " customer ") || !strings.Contains(r.stdout, " items.sku ") {
		t.Errorf("%s", r.stdout)
	}
	for _, args := range [][]string{
		{"undo", files[3], "--write"},
		append(slices.Clone(conv), "--into", "new"),
		{"convert", "--db", g.db.Name(), "--collection", "c", "--from", "standard", "--to", "javaLegacy", "--write"},
	} {
		r := command(t, g.s, args...).want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "is guarded against subtype 3") || !strings.Contains(r.stderr, "--collection c --remove --write") || !strings.Contains(r.stderr, "this command changed nothing") {
			t.Errorf("%q: %s", args, r.stderr)
		}
	}
	for id, doc := range all(t, g.coll) {
		if !slices.Equal(doc, before[id]) {
			t.Errorf("%s was changed", id)
		}
	}
	g.run("--remove", "--write").want(t, failure.ExitOK)
	command(t, g.s, "undo", files[3], "--write").want(t, failure.ExitOK)
}

// A server without the command that sets validators is refused, also by a dry run.
func TestGuardWithoutValidators(t *testing.T) {
	s := mongotest.Start(t)
	s.Refuse(t, mongotest.CollMod)
	db := connect(t, s)
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	for _, args := range [][]string{nil, {"--write"}} {
		r := command(t, s, append([]string{"guard", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}, args...)...).want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "does not know the command collMod") {
			t.Errorf("%s", r.stderr)
		}
	}
}
