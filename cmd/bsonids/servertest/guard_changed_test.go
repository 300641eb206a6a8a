package servertest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

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
