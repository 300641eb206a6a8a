package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A plan with a guard that a collection cannot have is refused with the reason, and nothing is changed.
func TestGuardRefuses(t *testing.T) {
	g := startGuarded(t)
	refuse := func(dir, why string) {
		t.Helper()
		before, docs, guards := g.settings(), all(t, g.coll), g.recorded()
		for _, args := range [][]string{nil, {"--write"}} {
			g.apply(dir, args...).want(t, failure.ExitUsage).says(t, why)
			g.is(before, guards)
			equal(t, all(t, g.coll), docs)
		}
	}
	var docs []any
	for i := range 60 {
		docs = append(docs, bson.D{{Key: "_id", Value: i + 1000}, {Key: "deep", Value: bson.A{bson.A{in(v4(i), uuidrep.JavaLegacy)}}},
			{Key: "by", Value: bson.D{{Key: v4(i).String(), Value: in(v4(i), uuidrep.JavaLegacy)}}}})
	}
	insert(t, g.coll, docs)
	refuse(g.plan("moderate"), `"c": cannot be guarded: deep[][]: an array in an array`)
	did(t)(g.coll.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$unset", Value: bson.D{{Key: "deep", Value: ""}, {Key: "by", Value: ""}}}}))
	// The fields of another guard.
	g.apply(g.without("items[].sku", "moderate"), "--write").want(t, failure.ExitOK)
	refuse(g.plan("moderate"), "is guarded already, against subtype 3 in customer; to guard other values, let the guard go first")
	g.release("--write").want(t, failure.ExitOK)

	encrypted := bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "properties", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "encrypt", Value: bson.D{}}}}}}}}}
	drop(t, g.coll)
	if err := g.db.CreateCollection(t.Context(), "c", options.CreateCollection().SetValidator(encrypted)); err == nil {
		seed(t, g.coll, 40, uuidrep.JavaLegacy, uuidrep.Standard)
		refuse(g.plan("moderate"), "encrypt or encryptMetadata")
	}
}

// without makes a plan that leaves a field.
func (g *guarded) without(path, level string) (dir string) {
	g.Helper()
	dir = g.plan(level)
	field := "      - path: \"" + path + "\"\n        stored: subtype 3\n        decision: "
	edit(g, filepath.Join(dir, "plan.yaml"), field+"convert from javaLegacy", field+"leave")
	return dir
}

// A field that is converted by a later edit of the plan is guarded, too.
func TestGuardGrows(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own))
	before, docs := g.settings(), all(t, g.coll)
	dir := g.without("items[].sku", "strict")
	g.apply(dir, "--write").want(t, failure.ExitOK)
	field := "      - path: \"items[].sku\"\n        stored: subtype 3\n        decision: "
	edit(t, filepath.Join(dir, "plan.yaml"), field+"leave", field+"convert from javaLegacy")
	one := g.settings()
	if r := g.apply(dir).want(t, failure.ExitOK); g.settings() != one || !strings.Contains(r.stdout, "items.sku") {
		t.Errorf("%v %s", g.settings(), r.stdout)
	}
	g.apply(dir, "--write").want(t, failure.ExitOK)
	g.wantLevel("strict", 1)
	if now := g.settings(); len(now[0]) <= len(one[0]) || !strings.HasPrefix(now[0], `{"$and":[`+before[0]+`,{"$nor":`) {
		t.Errorf("%v", now)
	}
	command(t, g.s, "undo", dir, "--write").want(t, failure.ExitOK)
	g.is(before, 0)
	equal(t, all(t, g.coll), docs)
}

// Commands that would write what the guard refuses, or copy the guard, are refused before they write.
func TestGuardRefusesOthers(t *testing.T) {
	g := startGuarded(t)
	dir := g.plan("moderate")
	original := all(t, g.coll)
	g.apply(dir, "--write").want(t, failure.ExitOK)
	before := all(t, g.coll)
	back := convertFields("standard", "")
	for _, args := range [][]string{
		{"apply", prepared(t, g.server, "javaLegacy", back, copiedInto("c", "new")), "--write"},
		{"apply", prepared(t, g.server, "javaLegacy", back), "--write"},
	} {
		command(t, g.s, args...).want(t, failure.ExitUsage).says(t, "is guarded against subtype 3 in customer, subtype 3 in items.sku",
			"bsonids release --db "+g.db.Name()+" --guards --write", "this command changed nothing")
	}
	equal(t, all(t, g.coll), before)
	g.release("--write").want(t, failure.ExitOK)
	command(t, g.s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, g.coll), original)
}

// A server without the command that sets validators is refused, also by a dry run.
func TestGuardWithoutValidators(t *testing.T) {
	s := mongotest.Start(t)
	s.Refuse(t, mongotest.CollMod)
	db := connect(t, s)
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, db.Collection("c"))
	file := planned(t, s)
	edit(t, file, "guard: none", "guard: moderate")
	for _, args := range [][]string{nil, {"--write"}} {
		command(t, s, append([]string{"apply", filepath.Dir(file)}, args...)...).want(t, failure.ExitUsage).says(t, "does not know the command collMod")
		equal(t, all(t, db.Collection("c")), before)
	}
}

// So is a server on which the validator would have another effect.
func TestGuardUnordered(t *testing.T) {
	g := startGuarded(t)
	g.server.Refuse(t, mongotest.BinaryOrder)
	dir, before := g.plan("moderate"), all(t, g.coll)
	g.s = g.server
	for _, args := range [][]string{nil, {"--write"}} {
		g.apply(dir, args...).want(t, failure.ExitUsage).says(t, "does not order binary values as MongoDB does")
	}
	g.wantLevel("strict", 0)
	equal(t, all(t, g.coll), before)
}

// A plan that is brought up to date keeps its guards.
func TestGuardInPlanAgain(t *testing.T) {
	s, db := started(t)
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	file := planned(t, s)
	edit(t, file, "guard: none", "guard: strict")
	seed(t, db.Collection("b"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	command(t, s, "plan", filepath.Dir(file), "--db", s.Database()).want(t, failure.ExitOK)
	if got := text(t, file); strings.Count(got, "guard: strict") != 1 || strings.Count(got, "guard: none") != 1 {
		t.Error(got)
	}
}

// What another program does to the settings in between is found, and not undone.
func TestGuardChangedInBetween(t *testing.T) {
	theirs := bson.D{{Key: "n", Value: bson.D{{Key: "$exists", Value: true}}}}
	validator := func(v any) bson.E { return bson.E{Key: "validator", Value: v} }
	for name, change := range map[string]func(t *testing.T, g *guarded, dir string, before [3]string){
		"another validator": func(t *testing.T, g *guarded, dir string, _ [3]string) {
			g.modify(validator(theirs))
			now := g.settings()
			g.apply(dir, "--write").want(t, failure.ExitFailed).says(t, "another program changed the settings", `before the guard, it had the validator {"$jsonSchema"`)
			g.release("--write").want(t, failure.ExitIncomplete).prints(t, "left as it is")
			g.is(now, 0)
		},
		"the guard is part of another validator": func(t *testing.T, g *guarded, _ string, _ [3]string) {
			specs, err := g.db.ListCollectionSpecifications(t.Context(), bson.D{{Key: "name", Value: "c"}})
			if err != nil {
				t.Fatal(err)
			}
			g.modify(validator(bson.D{{Key: "$and", Value: bson.A{theirs, specs[0].Options.Lookup("validator")}}}))
			now := g.settings()
			g.release("--write").want(t, failure.ExitFailed).says(t, "still has the guard")
			g.is(now, 1)
			g.modify(validator(theirs))
			g.release("--write").want(t, failure.ExitIncomplete)
		},
		"removed by another program": func(t *testing.T, g *guarded, dir string, before [3]string) {
			now := g.settings()
			remove := func() { g.modify(validator(bson.D{}), bson.E{Key: "validationLevel", Value: "strict"}) }
			remove()
			g.apply(dir, "--write").want(t, failure.ExitOK).says(t, "another program removed the guard")
			g.is(now, 1)
			remove()
			g.release("--write").want(t, failure.ExitOK)
			g.is(before, 0)
		},
		"level off": func(t *testing.T, g *guarded, dir string, before [3]string) {
			g.modify(bson.E{Key: "validationLevel", Value: "off"})
			g.apply(dir, "--write").want(t, failure.ExitFailed)
			g.release("--write").want(t, failure.ExitOK).says(t, "they were off and error")
			g.is(before, 0)
		},
		"dropped and created, and released": func(t *testing.T, g *guarded, _ string, _ [3]string) {
			drop(t, g.coll)
			g.create(options.CreateCollection().SetValidator(own))
			before := g.settings()
			g.release("--write").want(t, failure.ExitOK)
			g.is(before, 0)
		},
		"dropped and created, and applied": func(t *testing.T, g *guarded, _ string, _ [3]string) {
			drop(t, g.coll)
			g.create(options.CreateCollection().SetValidator(own))
			before := g.settings()
			g.apply(g.plan("moderate"), "--write").want(t, failure.ExitOK).says(t, "was dropped")
			if now := g.settings(); !strings.HasPrefix(now[0], `{"$and":[`+before[0]) || g.recorded() != 1 {
				t.Errorf("%v", now)
			}
		},
		"renamed": func(t *testing.T, g *guarded, _ string, _ [3]string) {
			uuid := g.uuid("c")
			rename(t, g.db, "c", "other")
			g.coll = g.db.Collection("other")
			if other := g.uuid("other"); uuid == nil || other == nil || !uuid.Equal(*other) {
				t.Skip("the server does not keep the UUID of a collection that is renamed")
			}
			g.release("--write").want(t, failure.ExitOK)
			if g.recorded() != 0 {
				t.Error("the guard is still recorded")
			}
		},
		"record dropped": func(t *testing.T, g *guarded, dir string, _ [3]string) {
			drop(t, g.db.Collection(record.Name))
			now := g.settings()
			g.apply(dir, "--write").want(t, failure.ExitFailed).says(t, "--restore-record")
			g.is(now, 0)
			command(t, g.s, "plan", dir, "--restore-record").want(t, failure.ExitOK) // but for the guard
			g.apply(dir, "--write").want(t, failure.ExitUsage).says(t, "by hand")
			g.is(now, 0)
			g.release("--write").want(t, failure.ExitUsage)
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options.CreateCollection()
			if name == "another validator" {
				opts.SetValidator(own)
			}
			g := startGuarded(t, opts)
			before, dir := g.settings(), g.plan("moderate")
			g.apply(dir, "--write").want(t, failure.ExitOK)
			change(t, g, dir, before)
		})
	}
}
