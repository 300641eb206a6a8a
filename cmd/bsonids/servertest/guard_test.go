package servertest

import (
	"path/filepath"
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

// own is a validator that a collection has before it is guarded.
var own = bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "bsonType", Value: "object"},
	{Key: "properties", Value: bson.D{{Key: "n", Value: bson.D{{Key: "bsonType", Value: bson.A{"int", "long"}}}}}}}}}

// guarded is a collection with old values in customer and items[].sku.
type guarded struct {
	testing.TB
	server *mongotest.Server
	s      target // the server, which orders binary values as MongoDB does
	db     *mongo.Database
	coll   *mongo.Collection
}

// startGuarded starts a server that can change validators, or skips the test.
func startGuarded(t testing.TB, opts ...options.Lister[options.CreateCollectionOptions]) *guarded {
	t.Helper()
	s := mongotest.Start(t)
	s.Require(t, mongotest.CollMod)
	g := &guarded{TB: t, server: s, db: connect(t, s)}
	g.s = orders(g)
	g.create(opts...)
	return g
}

func (g *guarded) create(opts ...options.Lister[options.CreateCollectionOptions]) {
	g.Helper()
	check(g, g.db.CreateCollection(g.Context(), "c", opts...))
	g.coll = g.db.Collection("c")
	var docs []any
	for i := range 60 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(i)}, {Key: "customer", Value: in(v4(2*i), uuidrep.JavaLegacy)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: in(v4(2*i+1), uuidrep.JavaLegacy)}}}}})
	}
	insert(g, g.coll, docs)
}

// orders answers the question whether the server orders binary values as MongoDB does, which the second
// server does not.
func orders(g *guarded) target {
	return startProxy(g, host(g, g.server), func(r request, pass func() []byte) []byte {
		if r.name() == "aggregate" && strings.Contains(r.command.String(), "bsonids probe") {
			return r.cursor(g.db.Name()+".c", bson.D{{Key: "all", Value: bson.A{}}, {Key: "old", Value: bson.A{}}}) // as for an empty collection
		}
		return pass()
	})
}

// plan makes a plan in which the collection has the guard.
func (g *guarded) plan(level string) (dir string) {
	g.Helper()
	file := planned(g, g.server)
	edit(g, file, "guard: none", "guard: "+level)
	return filepath.Dir(file)
}

// apply applies a plan.
func (g *guarded) apply(dir string, args ...string) result {
	g.Helper()
	return command(g, g.s, append([]string{"apply", dir, "--batch-timeout", "1s"}, args...)...)
}

// release lets the guard go, without the directory.
func (g *guarded) release(args ...string) result {
	g.Helper()
	return command(g, g.s, append([]string{"release", "--db", g.db.Name(), "--guards", g.coll.Name()}, args...)...)
}

// settings returns the validator in extended JSON, the level and the action of the collection. The
// defaults of a server are filled in.
func (g *guarded) settings() [3]string {
	g.Helper()
	specs, err := g.db.ListCollectionSpecifications(g.Context(), bson.D{{Key: "name", Value: g.coll.Name()}})
	if err != nil || len(specs) != 1 {
		g.Fatal(specs, err)
	}
	s := [3]string{"", "strict", "error"}
	if v, ok := specs[0].Options.Lookup("validator").DocumentOK(); ok && len(v) > 5 {
		b, err := bson.MarshalExtJSON(v, true, false)
		if err != nil {
			g.Fatal(err)
		}
		s[0] = string(b)
	}
	for i, name := range []string{"validationLevel", "validationAction"} {
		if v, ok := specs[0].Options.Lookup(name).StringValueOK(); ok {
			s[i+1] = v
		}
	}
	return s
}

func (g *guarded) uuid(name string) *bson.Binary {
	g.Helper()
	specs, err := g.db.ListCollectionSpecifications(g.Context(), bson.D{{Key: "name", Value: name}})
	if err != nil || len(specs) != 1 {
		g.Fatal(specs, err)
	}
	return specs[0].UUID
}

func (g *guarded) modify(fields ...bson.E) {
	g.Helper()
	check(g, g.db.RunCommand(g.Context(), append(bson.D{{Key: "collMod", Value: "c"}}, fields...)).Err())
}

// recorded returns the number of guards in the record.
func (g *guarded) recorded() int64 {
	g.Helper()
	n, err := g.db.Collection(record.Name).CountDocuments(g.Context(), bson.D{{Key: "kind", Value: "guard"}})
	if err != nil {
		g.Fatal(err)
	}
	return n
}

// skip gives a document a value that is not converted, or takes it back.
func (g *guarded) skip(v bson.Binary) {
	g.Helper()
	update := bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: v}}}}
	did(g)(g.coll.UpdateByID(g.Context(), int32(7), update, options.UpdateOne().SetBypassDocumentValidation(true)))
}

// is fails the test unless the collection has the settings, and the record as many guards.
func (g *guarded) is(settings [3]string, guards int64) {
	g.Helper()
	if now, recorded := g.settings(), g.recorded(); now != settings || recorded != guards {
		g.Errorf("settings %v and %d guards, want %v and %d", now, recorded, settings, guards)
	}
}

func (g *guarded) wantLevel(level string, guards int64) {
	g.Helper()
	if now := g.settings(); now[1] != level || g.recorded() != guards {
		g.Fatalf("level %s, want %s; %d guards are recorded", now[1], level, g.recorded())
	}
}

// The validator, the level and the action of a collection are kept in force, saved, and restored.
func TestGuardKeepsValidator(t *testing.T) {
	for _, tt := range []struct {
		name          string
		validator     any
		level, action string
		kept          bool
		warns         string
	}{
		{"none", nil, "", "", false, ""},
		{"none, other settings", nil, "moderate", "warn", false, ""},
		{"schema", own, "", "", true, "has level strict"},
		{"schema, moderate", own, "moderate", "error", true, ""},
		{"query", bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: int32(0)}}}}, "strict", "error", true, "has level strict"},
		{"off", own, "off", "error", false, "has level off"},
		{"warn", own, "strict", "warn", false, "action warn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := options.CreateCollection()
			if tt.validator != nil {
				opts.SetValidator(tt.validator)
			}
			if tt.level != "" {
				opts.SetValidationLevel(tt.level).SetValidationAction(tt.action)
			}
			g := startGuarded(t, opts)
			before := g.settings()
			dir := g.plan("moderate")
			g.apply(dir).want(t, failure.ExitOK).prints(t, "runCommand(EJSON.deserialize({\"collMod\":\"c\"")
			g.is(before, 0)
			r := g.apply(dir, "--write").want(t, failure.ExitOK).says(t, tt.warns)
			if tt.warns == "" {
				r.lacks(t, "the validator of ")
			}
			now, prefix := g.settings(), `{"$nor":`
			if tt.kept {
				prefix = `{"$and":[` + before[0] + `,` + prefix
			}
			if now[1] != "moderate" || now[2] != "error" || !strings.HasPrefix(now[0], prefix) {
				t.Errorf("settings %v, before %v", now, before)
			}
			g.apply(dir, "--write").want(t, failure.ExitOK)
			g.is(now, 1)
			g.release().want(t, failure.ExitOK)
			g.is(now, 1)
			g.release("--write").want(t, failure.ExitOK)
			g.is(before, 0)
			g.release("--write").want(t, failure.ExitUsage)
			command(t, g.s, "release", dir, "--guards", "--write").want(t, failure.ExitOK) // nothing is left to do
		})
	}
}

// A guard is raised to level strict when two passes find no old value, and only then. The undo takes it down
// before it restores the values.
func TestGuardLevels(t *testing.T) {
	g := startGuarded(t)
	before := all(t, g.coll)
	g.skip(bson.Binary{Subtype: 3, Data: []byte("no UUID, I think")})
	odd := all(t, g.coll)
	dir := g.plan("strict")
	g.apply(dir, "--write").want(t, failure.ExitIncomplete).prints(t, "stays at level moderate: 1 old values are left in 1 documents (customer)")
	g.wantLevel("moderate", 1)
	g.apply(dir, "--write", "-o", "json").want(t, failure.ExitIncomplete).prints(t, `"staysModerate": "1 old values`)
	command(t, g.s, "undo", dir, "--write").want(t, failure.ExitOK)
	g.wantLevel("strict", 0) // the default, before the guard
	equal(t, all(t, g.coll), odd)

	_, old := before[`{"$numberInt":"7"}`].Lookup("customer").Binary()
	g.skip(bson.Binary{Subtype: 3, Data: old})
	dir = g.plan("strict")
	g.apply(dir, "--write", "-o", "json").want(t, failure.ExitOK).lacks(t, "staysModerate")
	g.wantLevel("strict", 1)
	for _, args := range [][]string{{"--db", g.db.Name()}, {dir}} {
		r := command(t, g.s, append([]string{"status"}, args...)...).want(t, failure.ExitOK)
		if !strings.Contains(r.stdout, "The guard of c, at level strict, refuses subtype 3 in customer, subtype 3 in items.sku") ||
			!strings.Contains(r.stdout, "Let it go with: bsonids release --db "+g.db.Name()+" --guards --write --uri ") {
			t.Error(r.stdout)
		}
		command(t, g.s, append([]string{"status", "-o", "json"}, args...)...).want(t, failure.ExitOK)
	}
	// A value that was written in spite of the validator is found, and the level goes back.
	g.skip(bson.Binary{Subtype: 3, Data: []byte("no UUID, I think")})
	g.apply(dir, "--write").want(t, failure.ExitIncomplete)
	g.wantLevel("moderate", 1)
	g.skip(bson.Binary{Subtype: 4, Data: old})
	g.apply(dir, "--write").want(t, failure.ExitOK).prints(t, "the second pass found no old value")
	g.wantLevel("strict", 1)
	command(t, g.s, "undo", dir).want(t, failure.ExitIncomplete)
	g.wantLevel("strict", 1)
	command(t, g.s, "undo", dir, "--write").want(t, failure.ExitIncomplete) // of a value that was written anew
	g.wantLevel("strict", 0)
}

// At level strict, the collection's own validator would apply to documents to which it did not apply.
func TestGuardStrictAppliesOwnValidator(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own).SetValidationLevel("moderate"))
	did(t)(g.coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "older"}, {Key: "n", Value: "text"}}, options.InsertOne().SetBypassDocumentValidation(true)))
	g.apply(g.plan("strict"), "--write").want(t, failure.ExitIncomplete).prints(t, "refuses 1 documents")
	g.wantLevel("moderate", 1)
}
