package servertest

import (
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/uuidrep"
)

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

// A copy was dropped, and another program made a collection of its name. Its documents are neither replaced nor deleted, by a
// run that goes on and by a cutover.
func TestCopyReplaced(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy, intoNew("c"))
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

// The same, of a copy that was finished: it is not done any more, also when a field is added to the plan. If the record was
// dropped, apply finds it out.
func TestFinishedCopyReplaced(t *testing.T) {
	for name, then := range map[string]func(c *scene){
		"goes on": func(c *scene) {},
		"dropped": func(c *scene) { drop(c, c.db.Collection(record.Name)) },
		"edited":  func(c *scene) { setDecision(c, c.file("plan.yaml"), "id", "convert from javaLegacy") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newScene(t, 30, uuidrep.JavaLegacy, intoNew("c"))
			setDecision(t, c.file("plan.yaml"), "id", "leave")
			c.ok("apply --write")
			drop(t, c.result)
			insert(t, c.result, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "of", Value: "others"}}, bson.D{{Key: "_id", Value: int32(100)}}})
			theirs := all(t, c.result)
			then(c)
			for _, args := range [][]string{c.args("status"), {"status", "--db", c.db.Name()}} {
				if name == "dropped" {
					break
				}
				command(t, c.s, append(args, "--output", "json")...).want(t, failure.ExitOK).prints(t, `"status": "stopped"`).lacks(t, `"status": "done"`)
			}
			if name == "dropped" {
				c.run(failure.ExitUsage, "apply --write").says(t, `"c_standard" has documents already`)
			} else {
				c.run(failure.ExitFailed, "apply --write").says(t, "was dropped or renamed", "c_standard is not empty")
			}
			equal(t, all(t, c.result), theirs)
			drop(t, c.result)
			c.ok("apply --write", "verify")
		})
	}
}

// The same, for a cutover, which says what to do. What it says works.
func TestCutoverOfReplaced(t *testing.T) {
	c := startCut(t, 0)
	insert(t, c.db.Collection("a"), cutDocs(20))
	dir := c.planFrom("a", "a_new", "javaLegacy")
	command(t, c.s, "apply", dir, "--write").want(t, failure.ExitOK)
	fresh := c.db.Collection("a_new")
	drop(t, fresh)
	insert(t, fresh, []any{bson.D{{Key: "_id", Value: "theirs"}}})
	theirs := all(t, fresh)
	for _, line := range [][]string{c.line("cutover"), c.line("cutover", "--write")} {
		command(t, c.s, line...).want(t, failure.ExitUsage).says(t, "a_new is another collection than the copy of a")
		equal(t, all(t, fresh), theirs)
	}
	rename(t, c.db, "a_new", "theirs")
	command(t, c.s, "apply", dir, "--write").want(t, failure.ExitOK)
	command(t, c.s, "cutover", dir, "--write").want(t, failure.ExitOK)
}
