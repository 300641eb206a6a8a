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
	t.Run("another validator", func(t *testing.T) {
		g := startGuarded(t, options.CreateCollection().SetValidator(own))
		dir := g.plan("strict")
		g.apply(dir, "--write").want(t, failure.ExitOK)
		g.modify(bson.E{Key: "validator", Value: theirs})
		now := g.settings()
		r := g.apply(dir, "--write").want(t, failure.ExitFailed).says(t, "another program changed the settings", `before the guard, it had the validator {"$jsonSchema"`)
		r = g.release("--write").want(t, failure.ExitIncomplete)
		if !strings.Contains(r.stdout, "left as it is") || g.settings() != now || g.recorded() != 0 {
			t.Errorf("%v\n%s", g.settings(), r.stdout)
		}
	})
	t.Run("the guard is part of another validator", func(t *testing.T) {
		g := startGuarded(t)
		g.apply(g.plan("moderate"), "--write").want(t, failure.ExitOK)
		specs, err := g.db.ListCollectionSpecifications(t.Context(), bson.D{{Key: "name", Value: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		g.modify(bson.E{Key: "validator", Value: bson.D{{Key: "$and", Value: bson.A{theirs, specs[0].Options.Lookup("validator")}}}})
		now := g.settings()
		r := g.release("--write").want(t, failure.ExitFailed)
		if !strings.Contains(r.stderr, "still has the guard") || g.settings() != now || g.recorded() != 1 {
			t.Errorf("%v\n%s", g.settings(), r.stderr)
		}
		g.modify(bson.E{Key: "validator", Value: theirs})
		g.release("--write").want(t, failure.ExitIncomplete)
	})
	t.Run("removed by another program", func(t *testing.T) {
		g := startGuarded(t)
		before := g.settings()
		dir := g.plan("moderate")
		g.apply(dir, "--write").want(t, failure.ExitOK)
		now := g.settings()
		g.modify(bson.E{Key: "validator", Value: bson.D{}}, bson.E{Key: "validationLevel", Value: "strict"})
		r := g.apply(dir, "--write").want(t, failure.ExitOK)
		if !strings.Contains(r.stderr, "another program removed the guard") || g.settings() != now {
			t.Errorf("%v\n%s", g.settings(), r.stderr)
		}
		g.modify(bson.E{Key: "validator", Value: bson.D{}}, bson.E{Key: "validationLevel", Value: "strict"})
		g.release("--write").want(t, failure.ExitOK)
		if g.settings() != before || g.recorded() != 0 {
			t.Errorf("%v", g.settings())
		}
	})
	t.Run("level off", func(t *testing.T) {
		g := startGuarded(t)
		before := g.settings()
		dir := g.plan("moderate")
		g.apply(dir, "--write").want(t, failure.ExitOK)
		g.modify(bson.E{Key: "validationLevel", Value: "off"})
		g.apply(dir, "--write").want(t, failure.ExitFailed)
		if r := g.release("--write").want(t, failure.ExitOK); !strings.Contains(r.stderr, "they were off and error") || g.settings() != before {
			t.Errorf("%v\n%s", g.settings(), r.stderr)
		}
	})
	t.Run("dropped and created", func(t *testing.T) {
		for _, remove := range []bool{false, true} {
			g := startGuarded(t)
			g.apply(g.plan("moderate"), "--write").want(t, failure.ExitOK)
			drop(t, g.coll)
			g.create(options.CreateCollection().SetValidator(own))
			before := g.settings()
			if remove {
				g.release("--write").want(t, failure.ExitOK)
				if g.settings() != before || g.recorded() != 0 {
					t.Errorf("%v", g.settings())
				}
				continue
			}
			r := g.apply(g.plan("moderate"), "--write").want(t, failure.ExitOK)
			if now := g.settings(); !strings.Contains(r.stderr, "was dropped") || !strings.HasPrefix(now[0], `{"$and":[`+before[0]) || g.recorded() != 1 {
				t.Errorf("%v\n%s", now, r.stderr)
			}
		}
	})
	t.Run("renamed", func(t *testing.T) {
		g := startGuarded(t)
		g.apply(g.plan("moderate"), "--write").want(t, failure.ExitOK)
		uuid := g.uuid("c")
		g.rename("other")
		if other := g.uuid("other"); uuid == nil || other == nil || !uuid.Equal(*other) {
			t.Skip("the server does not keep the UUID of a collection that is renamed")
		}
		g.release("--write").want(t, failure.ExitOK)
		if g.recorded() != 0 {
			t.Error("the guard is still recorded")
		}
	})
	t.Run("record dropped", func(t *testing.T) {
		g := startGuarded(t)
		dir := g.plan("moderate")
		g.apply(dir, "--write").want(t, failure.ExitOK)
		drop(t, g.db.Collection(record.Name))
		now := g.settings()
		if r := g.apply(dir, "--write").want(t, failure.ExitFailed); !strings.Contains(r.stderr, "--restore-record") || g.settings() != now {
			t.Errorf("%v\n%s", g.settings(), r.stderr)
		}
		command(t, g.s, "plan", dir, "--restore-record").want(t, failure.ExitOK) // but for the guard
		if r := g.apply(dir, "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "by hand") || g.settings() != now {
			t.Errorf("%v\n%s", g.settings(), r.stderr)
		}
		g.release("--write").want(t, failure.ExitUsage)
	})
}
