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

// own is a validator that a collection has before it is guarded.
var own = bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "bsonType", Value: "object"},
	{Key: "properties", Value: bson.D{{Key: "n", Value: bson.D{{Key: "bsonType", Value: bson.A{"int", "long"}}}}}}}}}

// guarded is a collection with old values in customer and items[].sku.
type guarded struct {
	testing.TB
	s    target
	db   *mongo.Database
	coll *mongo.Collection
}

// startGuarded starts a server that can change validators, or skips the test.
func startGuarded(t testing.TB, opts ...options.Lister[options.CreateCollectionOptions]) *guarded {
	t.Helper()
	s := mongotest.Start(t)
	s.Require(t, mongotest.CollMod)
	g := &guarded{TB: t, s: s, db: connect(t, s)}
	g.create(opts...)
	return g
}

func (g *guarded) create(opts ...options.Lister[options.CreateCollectionOptions]) {
	g.Helper()
	if err := g.db.CreateCollection(g.Context(), "c", opts...); err != nil {
		g.Fatal(err)
	}
	g.coll = g.db.Collection("c")
	var docs []any
	for i := range 60 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(i)}, {Key: "customer", Value: in(v4(2*i), uuidrep.JavaLegacy)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: in(v4(2*i+1), uuidrep.JavaLegacy)}}}}})
	}
	insert(g, g.coll, docs)
}

// run runs guard. --confirm-unordered makes the tests run on servers that do not order binary values
// as MongoDB does.
func (g *guarded) run(args ...string) result {
	g.Helper()
	args = append([]string{"guard", "--db", g.db.Name(), "--collection", "c"}, args...)
	if !slices.Contains(args, "--remove") {
		args = append(args, "--from", "javaLegacy", "--confirm-unordered")
	}
	return command(g, g.s, args...)
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

// rename gives the collection another name.
func (g *guarded) rename(name string) {
	g.Helper()
	rename := bson.D{{Key: "renameCollection", Value: g.db.Name() + "." + g.coll.Name()}, {Key: "to", Value: g.db.Name() + "." + name}}
	if err := g.db.Client().Database("admin").RunCommand(g.Context(), rename).Err(); err != nil {
		g.Fatal(err)
	}
	g.coll = g.db.Collection(name)
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
	if err := g.db.RunCommand(g.Context(), append(bson.D{{Key: "collMod", Value: "c"}}, fields...)).Err(); err != nil {
		g.Fatal(err)
	}
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

// convertWithout converts the collection as convert does, on servers whose validators would refuse
// new values, too.
func (g *guarded) convertWithout() {
	g.Helper()
	for _, doc := range all(g, g.coll) {
		old := doc.Lookup("customer")
		_, data := old.Binary()
		sku := doc.Lookup("items", "0", "sku")
		_, other := sku.Binary()
		_, err := g.coll.UpdateOne(g.Context(), bson.D{{Key: "_id", Value: doc.Lookup("_id")}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: bson.Binary{Subtype: 4, Data: data}}, {Key: "items.0.sku", Value: bson.Binary{Subtype: 4, Data: other}}}}},
			options.UpdateOne().SetBypassDocumentValidation(true))
		if err != nil {
			g.Fatal(err)
		}
	}
}

// The validator, the level and the action of a collection are kept in force, saved, and restored.
func TestGuardKeepsValidator(t *testing.T) {
	for _, tt := range []struct {
		name          string
		validator     any
		level, action string
		kept          bool
		actionNow     string
		warns         string
	}{
		{"none", nil, "", "", false, "error", ""},
		{"none, other settings", nil, "moderate", "warn", false, "error", ""},
		{"schema", own, "", "", true, "error", "has level strict"},
		{"schema, moderate", own, "moderate", "error", true, "error", ""},
		{"query", bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: int32(0)}}}}, "strict", "error", true, "error", "has level strict"},
		{"off", own, "off", "error", false, "error", "has level off"},
		{"warn", own, "strict", "warn", false, "error", "action warn"},
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
			r := g.run().want(t, failure.ExitOK)
			if !strings.Contains(r.stdout, "dry run") || !strings.Contains(r.stdout, "runCommand(EJSON.deserialize({\"collMod\":\"c\"") || g.settings() != before || g.recorded() != 0 {
				t.Fatalf("the dry run changed something, or printed no validator\n%s", r.stdout)
			}
			r = g.run("--write").want(t, failure.ExitOK)
			if !strings.Contains(r.stderr, tt.warns) || tt.warns == "" && strings.Contains(r.stderr, "the validator of ") {
				t.Errorf("warnings: %s", r.stderr)
			}
			if !strings.Contains(r.stdout, "To remove it: bsonids guard --db "+g.db.Name()+" --collection c --remove --write") {
				t.Errorf("no way back:\n%s", r.stdout)
			}
			now := g.settings()
			if now[1] != "moderate" || now[2] != tt.actionNow || strings.HasPrefix(now[0], `{"$and":[`+before[0]+`,{"$nor":`) != tt.kept || !tt.kept && !strings.HasPrefix(now[0], `{"$nor":`) {
				t.Errorf("settings %v, before %v", now, before)
			}
			g.run("--write").want(t, failure.ExitOK)
			if g.settings() != now || g.recorded() != 1 {
				t.Errorf("the second run changed something: %v", g.settings())
			}
			g.run("--remove").want(t, failure.ExitOK)
			if g.settings() != now {
				t.Error("the dry run of --remove changed something")
			}
			g.run("--remove", "--write").want(t, failure.ExitOK)
			if g.settings() != before || g.recorded() != 0 {
				t.Errorf("settings %v, before %v, %d guards", g.settings(), before, g.recorded())
			}
			g.run("--remove", "--write").want(t, failure.ExitUsage)
		})
	}
}

// Level strict needs a pass that finds nothing, and a second one.
func TestGuardLevels(t *testing.T) {
	g := startGuarded(t)
	wantLevel := func(level string) {
		t.Helper()
		if now := g.settings(); now[1] != level {
			t.Fatalf("level %s, want %s", now[1], level)
		}
	}
	// In the wrong order: nothing is converted yet.
	r := g.run("--level", "strict", "--write").want(t, failure.ExitIncomplete)
	if !strings.Contains(r.stdout, "stays at level moderate: 120 old values are left in 60 documents") {
		t.Errorf("%s", r.stdout)
	}
	wantLevel("moderate")
	g.convertWithout()
	one := bson.D{{Key: "_id", Value: int32(7)}}
	skip := func(v bson.Binary) {
		t.Helper()
		if _, err := g.coll.UpdateOne(t.Context(), one, bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: v}}}}, options.UpdateOne().SetBypassDocumentValidation(true)); err != nil {
			t.Fatal(err)
		}
	}
	skip(bson.Binary{Subtype: 3, Data: make([]byte, 16)})
	r = g.run("--level", "strict", "--write").want(t, failure.ExitIncomplete)
	if !strings.Contains(r.stdout, "stays at level moderate: 1 old values are left in 1 documents") {
		t.Errorf("%s", r.stdout)
	}
	wantLevel("moderate")
	skip(bson.Binary{Subtype: 4, Data: make([]byte, 16)})
	g.run("--level", "strict").want(t, failure.ExitOK)
	wantLevel("moderate")
	r = g.run("--level", "strict", "--write", "-o", "json").want(t, failure.ExitOK)
	checkSchema(t, "guard", r.stdout)
	if strings.Count(r.stdout, `"oldValues": 0`) != 2 {
		t.Errorf("there were not two passes without old values:\n%s", r.stdout)
	}
	wantLevel("strict")
	// Without --level, the level stays.
	g.run("--write").want(t, failure.ExitOK)
	wantLevel("strict")
	// A value that was written in spite of the validator is found, and the level goes back.
	skip(bson.Binary{Subtype: 3, Data: make([]byte, 16)})
	g.run("--write").want(t, failure.ExitIncomplete)
	wantLevel("moderate")
	skip(bson.Binary{Subtype: 4, Data: make([]byte, 16)})
	g.run("--level", "strict", "--write").want(t, failure.ExitOK)
	g.run("--level", "moderate", "--write").want(t, failure.ExitOK)
	wantLevel("moderate")
	r = g.run("--remove", "--write", "-o", "json").want(t, failure.ExitOK)
	checkSchema(t, "guard", r.stdout)
	wantLevel("strict") // the default, before the guard
}

// At level strict, the collection's own validator would apply to documents to which it did not apply.
func TestGuardStrictAppliesOwnValidator(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own).SetValidationLevel("moderate"))
	if _, err := g.coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "older"}, {Key: "n", Value: "text"}}, options.InsertOne().SetBypassDocumentValidation(true)); err != nil {
		t.Fatal(err)
	}
	g.run("--write").want(t, failure.ExitOK)
	if _, err := g.coll.DeleteMany(t.Context(), bson.D{{Key: "n", Value: bson.D{{Key: "$type", Value: "int"}}}}); err != nil {
		t.Fatal(err)
	}
	r := g.run("--level", "strict", "--write").want(t, failure.ExitIncomplete)
	if !strings.Contains(r.stdout, "refuses 1 documents") || g.settings()[1] != "moderate" {
		t.Errorf("%v\n%s", g.settings(), r.stdout)
	}
}
