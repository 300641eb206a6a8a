package servertest

import (
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// alone leaves all fields except those of the collection with the name.
func alone(name string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		for i := range p.Collections {
			c := &p.Collections[i]
			for j := range c.Fields {
				if c.Name != name {
					c.Fields[j].Decision, c.Fields[j].Trust = plan.Leave, false
				}
			}
		}
	}
}

// Values of one subtype are not converted a second time in a collection that was renamed, in a copy, or in one that a
// person has put in place, although a person vouches for them.
func TestConvertedElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		into   string // of the first plan
		move   []string
		is     string // the collection that has the values
		refuse bool
	}{
		"renamed":                      {"", []string{"c", "d"}, "d", true},
		"a copy":                       {"new", nil, "new", true},
		"a copy that was put in place": {"new", []string{"c", "old", "new", "c"}, "c", true},
		"the source of a copy":         {"new", nil, "c", false},
	} {
		t.Run(name, func(t *testing.T) {
			vouched := decided([]string{"javaLegacy"}, "javaLegacy")
			c := inField(t, "csharpLegacy", map[string][]uuid.UUID{"javaLegacy": odd(20)}, vouched, copiedInto("c", tt.into))
			c.ok(applyBatches)
			for m := tt.move; len(m) > 0; m = m[2:] {
				is := identity(t, c.db.Collection(m[0]))
				rename(t, c.db, m[0], m[1])
				if !identity(t, c.db.Collection(m[1])).Equal(is) {
					mongotest.Skip(t, "the server gives a collection that is renamed another UUID, and nothing tells that it was")
				}
			}
			before := all(t, c.db.Collection(tt.is))
			again := c.in(prepared(t, c.s, "csharpLegacy", vouched, alone(tt.is), accepted))
			if !tt.refuse {
				again.ok(applyBatches)
				return
			}
			again.run(failure.ExitUsage, applyBatches).says(t, "would convert again")
			equal(t, all(t, c.db.Collection(tt.is)), before)
		})
	}
}

// identity returns the UUID of a collection.
func identity(t *testing.T, coll *mongo.Collection) bson.Binary {
	t.Helper()
	spec, err := server.FindCollection(t.Context(), coll)
	if err != nil || spec.UUID == nil {
		t.Fatalf("%+v, %v", spec, err)
	}
	return *spec.UUID
}

// A cutover puts a copy in place. What it converted within one subtype, and what was converted before it in place, is not
// converted again, and is converted on from what it is.
func TestConvertedBeforeCutover(t *testing.T) {
	c := startCut(t, 0)
	c.names = []string{"a"}
	coll := c.db.Collection("a")
	var docs []any
	want := make(map[string]bson.Raw)
	x, y := odd(20), odd(20)
	for i := range x {
		doc := func(x, y any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "x", Value: x}, {Key: "y", Value: y}}
		}
		docs = append(docs, doc(ofKind(x[i], "javaLegacy"), ofKind(y[i], "javaLegacy")))
		note(want, doc(ofKind(x[i], "standard"), ofKind(y[i], "standard")))
	}
	insert(t, coll, docs)
	apply := func(code int, to, into, from string, fields ...string) string {
		t.Helper()
		dir := c.planFrom(to, "a", into, from, fields...)
		changePlan(t, dir, trusted(fields...))
		command(t, c.s, "apply", dir, "--write").want(t, code)
		return dir
	}
	first := apply(failure.ExitOK, "csharpLegacy", "", "javaLegacy", "x")
	second := apply(failure.ExitOK, "csharpLegacy", "a_new", "javaLegacy", "y")
	command(t, c.s, "cutover", second, "--write").want(t, failure.ExitOK)
	command(t, c.s, "release", second, "--write").want(t, failure.ExitOK)
	before := c.docs("a")
	for _, field := range []string{"x", "y"} {
		apply(failure.ExitUsage, "csharpLegacy", "", "javaLegacy", field)
		apply(failure.ExitUsage, "standard", "a_again", "javaLegacy", field)
	}
	equal(t, c.docs("a"), before)
	third, fourth := apply(failure.ExitOK, "standard", "", "csharpLegacy", "x"), apply(failure.ExitOK, "standard", "", "csharpLegacy", "y")
	equal(t, c.docs("a"), want)
	command(t, c.s, "undo", first, "--write").want(t, failure.ExitUsage).says(t, third, "undo that one first")
	equal(t, c.docs("a"), want)
	command(t, c.s, "undo", third, "--write").want(t, failure.ExitOK)
	command(t, c.s, "undo", fourth, "--write").want(t, failure.ExitOK)
	equal(t, c.docs("a"), before)
}

// A conversion is not undone before a later one of another plan that has taken its values: its undo would restore
// nothing, and that of the later one would bring its values back. Nothing is marked.
func TestUndoInOrder(t *testing.T) {
	for _, later := range []string{"javaLegacy", "standard"} {
		t.Run(later, func(t *testing.T) {
			c := inField(t, "csharpLegacy", map[string][]uuid.UUID{"javaLegacy": odd(20)}, decided([]string{"javaLegacy"}, "javaLegacy"))
			c.ok(applyBatches)
			between := all(t, c.coll)
			second := c.in(prepared(t, c.s, later, decided([]string{"csharpLegacy"}, "csharpLegacy")))
			second.ok(applyBatches)
			after := all(t, c.coll)
			for _, line := range []string{"undo", undoBatches, undoBatches + " --allow-changed"} {
				c.run(failure.ExitUsage, line).says(t, second.dir+"; undo that one first")
			}
			equal(t, all(t, c.coll), after)
			c.ok("status")
			second.ok("verify", undoBatches)
			equal(t, all(t, c.coll), between)
			c.ok("verify", undoBatches)
			c.unchanged()
		})
	}
}

// Two migrations take turns: the first was stopped before it wrote, and went on when the second was done. It has taken the
// values of the second one, and is undone before it.
func TestUndoOfTurns(t *testing.T) {
	values := odd(20)
	c := pairs(t, len(values), func(i int) (old, converted bson.D) {
		kind := []string{"javaLegacy", "standard"}[i%2]
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: ofKind(values[i], kind)}}, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: ofKind(values[i], "csharpLegacy")}}
	})
	c = c.in(prepared(t, c.s, "csharpLegacy", decided([]string{"standard"})))
	c.through(lostAfter(t, c.s, 2, asks("update", record.Name))).run(failure.ExitUnreachable, applyBatches+" --retry-for 0s --batch-timeout 1s")
	second := c.in(prepared(t, c.s, "standard", decided([]string{"javaLegacy"}, "javaLegacy")))
	second.ok(applyBatches)
	c.ok(applyBatches)
	c.converted()
	second.run(failure.ExitUsage, undoBatches).says(t, c.dir+"; undo that one first")
	c.converted()
	c.ok(undoBatches)
	second.ok(undoBatches)
	c.unchanged()
}

// A conversion was killed, and its collection restored from a backup. What it has converted is gone, and its files say
// nothing about the new collection: another migration converts that.
func TestKilledAndRestored(t *testing.T) {
	c := opaque(t, 30)
	var lost atomic.Bool
	c.through(lostAfter(t, c.s, 0, func(r request) bool {
		return lost.Load() || writesTo("c")(r) && lost.Swap(true)
	})).run(failure.ExitUnreachable, apply+" --retry-for 0s --batch-timeout 1s")
	if runs := recorded(t, c.db); len(runs) != 1 || runs[0].Ended != nil {
		t.Fatalf("%+v", runs)
	}
	drop(t, c.coll)
	var docs []any
	for _, d := range c.before {
		docs = append(docs, d)
	}
	insert(t, c.coll, docs)
	other := c.in(c.another())
	other.ok(apply)
	c.converted()
	other.ok("undo --write")
	c.unchanged()
}

// A later conversion whose directory was given up for lost does not forbid an undo.
func TestUndoBeforeAbandoned(t *testing.T) {
	c := inField(t, "csharpLegacy", map[string][]uuid.UUID{"javaLegacy": odd(20)}, decided([]string{"javaLegacy"}, "javaLegacy"))
	c.ok(applyBatches)
	second := c.in(prepared(t, c.s, "standard", decided([]string{"csharpLegacy"}, "csharpLegacy")))
	second.ok(applyBatches)
	var status struct {
		Migrations []struct{ ID, Directory string }
	}
	decode(t, command(t, c.s, "status", "--db", c.db.Name(), "-o", "json").want(t, failure.ExitOK).stdout, &status)
	for _, m := range status.Migrations {
		if m.Directory == second.dir {
			command(t, c.s, "plan", second.dir+".new", "--db", c.db.Name(), "--to", "standard", "--abandon", m.ID).want(t, failure.ExitOK)
		}
	}
	c.run(failure.ExitIncomplete, undoBatches)
	c.ok(undoBatches + " --allow-changed")
}

// A copy was dropped, and another program made a collection of its name. Its documents are neither replaced nor deleted, by a
// run that goes on and by a cutover.
func TestCopyReplaced(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy, uuidrep.Standard, intoNew("c"))
	var made atomic.Bool
	c.through(lostAfter(t, c.s, 0, func(r request) bool {
		return r.name() == "createIndexes" && made.Swap(true) || asks("insert", "c_standard")(r) && made.Swap(true)
	})).run(failure.ExitUnreachable, "apply --write --batch-timeout 1s --batch 10 --workers 1")
	drop(t, c.result)
	insert(t, c.result, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "of", Value: "others"}}, bson.D{{Key: "_id", Value: int32(100)}}})
	theirs := all(t, c.result)
	c.run(failure.ExitFailed, "apply --write --batch-timeout 1s").says(t, "was dropped or renamed", "c_standard is not empty")
	equal(t, all(t, c.result), theirs)
	drop(t, c.result)
	c.ok("apply --write --batch-timeout 1s", "verify")
	c.converted()
}

// The same, of a copy that was finished: it is not done any more, also if the record was dropped and restored, and when a
// field is added to the plan.
func TestFinishedCopyReplaced(t *testing.T) {
	for name, then := range map[string]func(c *scene){
		"goes on": func(c *scene) {},
		"restored": func(c *scene) {
			drop(c, c.db.Collection(record.Name))
			c.ok("plan --restore-record")
		},
		"edited": func(c *scene) { setDecision(c, c.file("plan.yaml"), "id", "convert from javaLegacy") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newScene(t, 30, uuidrep.JavaLegacy, uuidrep.Standard, intoNew("c"))
			setDecision(t, c.file("plan.yaml"), "id", "leave")
			c.ok("apply --write")
			drop(t, c.result)
			insert(t, c.result, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "of", Value: "others"}}, bson.D{{Key: "_id", Value: int32(100)}}})
			theirs := all(t, c.result)
			then(c)
			for _, args := range [][]string{c.args("status"), {"status", "--db", c.db.Name()}} {
				command(t, c.s, append(args, "--output", "json")...).want(t, failure.ExitOK).prints(t, `"status": "stopped"`).lacks(t, `"status": "done"`)
			}
			c.run(failure.ExitFailed, "apply --write").says(t, "was dropped or renamed", "c_standard is not empty")
			equal(t, all(t, c.result), theirs)
			drop(t, c.result)
			c.ok("apply --write", "verify")
		})
	}
}

// The same, for a cutover, which says what to do. What it says works.
func TestCutoverOfReplaced(t *testing.T) {
	c := startCut(t, 0)
	c.names = []string{"a"}
	insert(t, c.db.Collection("a"), cutDocs(20))
	dir := c.planFrom("standard", "a", "a_new", "javaLegacy")
	command(t, c.s, "apply", dir, "--write").want(t, failure.ExitOK)
	fresh := c.db.Collection("a_new")
	drop(t, fresh)
	insert(t, fresh, []any{bson.D{{Key: "_id", Value: "theirs"}}})
	theirs := all(t, fresh)
	for _, line := range [][]string{c.line("cutover"), c.line("cutover", "--write"), {"cutover", dir, "--write"}} {
		command(t, c.s, line...).want(t, failure.ExitUsage).says(t, "a_new is another collection than the copy of a")
		equal(t, all(t, fresh), theirs)
	}
	rename(t, c.db, "a_new", "theirs")
	command(t, c.s, "apply", dir, "--write").want(t, failure.ExitOK)
	command(t, c.s, "cutover", dir, "--write").want(t, failure.ExitOK)
}

// A directory whose migration was abandoned writes nothing to the record: its runs would hold up others again.
func TestRestoreOfAbandoned(t *testing.T) {
	c := opaque(t, 30)
	c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, apply)
	older := snapshot(t, c.db)
	c.ok(apply)
	drop(t, c.db.Collection(record.Name))
	insert(t, c.db.Collection(record.Name), older)
	var status struct{ Migrations []struct{ ID string } }
	decode(t, command(t, c.s, "status", "--db", c.db.Name(), "-o", "json").want(t, failure.ExitOK).stdout, &status)
	command(t, c.s, "plan", c.dir+".new", "--db", c.db.Name(), "--abandon", status.Migrations[0].ID).want(t, failure.ExitOK)
	before := all(t, c.db.Collection(record.Name))
	c.run(failure.ExitFailed, "plan --restore-record").says(t, "was abandoned")
	equal(t, all(t, c.db.Collection(record.Name)), before)
}

// The record was dropped, and two directories restore it, the later one first. What the last conversion has made is known, and
// the first one is not undone before it.
func TestRestoredInAnyOrder(t *testing.T) {
	c := inField(t, "csharpLegacy", map[string][]uuid.UUID{"javaLegacy": odd(20)}, decided([]string{"javaLegacy"}, "javaLegacy"))
	c.ok(applyBatches)
	second := c.in(prepared(t, c.s, "javaLegacy", decided([]string{"csharpLegacy"}, "csharpLegacy")))
	second.ok(applyBatches)
	c.unchanged()
	drop(t, c.db.Collection(record.Name))
	second.ok("plan --restore-record")
	c.ok("plan --restore-record")
	wrong := c.in(prepared(t, c.s, "standard", decided([]string{"csharpLegacy"}, "csharpLegacy")))
	wrong.run(failure.ExitUsage, applyBatches).says(t, "would convert again")
	c.unchanged()
	c.run(failure.ExitUsage, undoBatches).says(t, "undo that one first")
	right := c.in(prepared(t, c.s, "standard", decided([]string{"javaLegacy"}, "javaLegacy")))
	right.ok(applyBatches, undoBatches)
	second.ok(undoBatches)
	c.ok(undoBatches)
	c.unchanged()
}
