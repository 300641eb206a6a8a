package servertest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// released returns collections whose cutover was released, and that services have changed since, with
// what undo must restore. Some values were standard before the conversion.
func released(t *testing.T, documents int, names ...string) (c *cut, want map[string]bson.Raw) {
	t.Helper()
	c = startCut(t, documents, names...)
	old := c.db.Collection("a")
	mixed := func(id uuid.UUID, r uuidrep.Representation, n int32) bson.D {
		return bson.D{{Key: "_id", Value: in(id, r)}, {Key: "customer", Value: in(id, uuidrep.Standard)}, {Key: "n", Value: n}}
	}
	insert(t, old, []any{mixed(cutID(2001), uuidrep.JavaLegacy, 1), mixed(cutID(2002), uuidrep.JavaLegacy, 1)})
	want = all(t, old)
	c.cutover(c.s, failure.ExitOK, "--write")
	c.release()
	key := func(i int) string { return marshalValue(t, in(cutID(i), uuidrep.JavaLegacy)).String() }
	c.delete("a", 0, uuidrep.Standard)
	delete(want, key(0))
	c.set("a", 1, uuidrep.Standard, "n", int32(7))
	note(want, cutDoc(1, 7))
	c.set("a", 2002, uuidrep.Standard, "n", int32(7))
	note(want, mixed(cutID(2002), uuidrep.JavaLegacy, 7))
	c.set("a", 2, uuidrep.Standard, "customer", in(cutID(3000), uuidrep.Standard))
	note(want, bson.D{{Key: "_id", Value: in(cutID(2), uuidrep.JavaLegacy)}, {Key: "customer", Value: in(cutID(3000), uuidrep.JavaLegacy)}, {Key: "n", Value: int32(0)}})
	c.put("a", mixed(cutID(3001), uuidrep.Standard, 0))
	note(want, cutDoc(3001, 0))
	return c, want
}

// undo puts the old collections of a released cutover back: unchanged documents as they were, changed
// ones with their old values, and new ones converted back.
func TestUndoReleased(t *testing.T) {
	c, want := released(t, 40, "a", "b")
	other := c.docs("b_before_cutover")
	settings := c.settingsOf("a")
	for range 2 {
		c.run(failure.ExitOK, "undo").prints(t, "dry run")
	}
	c.wantSettings(settings, "a", "b")
	command(t, c.s, append(c.line("undo", "--write"), "x")...).want(t, failure.ExitUsage)
	c.run(failure.ExitOK, "undo", "--write", "-o", "json")
	if got := c.collections(); got != "a a_new b b_new" {
		t.Fatal(got)
	}
	equal(t, c.docs("a"), want)
	equal(t, c.docs("b"), other)
	c.wantSettings(settings, "a", "b", "a_new", "b_new")
	c.run(failure.ExitUsage, "undo", "--write")
	insert(t, c.db.Collection("a"), []any{cutDoc(4000, 1)})
}

// Nothing of what a service writes while a cutover is undone is lost.
func TestUndoReleasedWithWriter(t *testing.T) {
	c := startCut(t, 100, "a", "b")
	settings := c.settingsOf("a")
	c.cutover(c.s, failure.ExitOK, "--write")
	c.release()
	w := c.writing(func(i, n int) bson.D {
		return append(cutBy(i, uuidrep.Standard), bson.E{Key: "customer", Value: in(cutID(i), uuidrep.Standard)}, bson.E{Key: "n", Value: int32(n)})
	})
	w.until(20)
	command(t, w.proxy(), c.line("undo", "--write")...).want(t, failure.ExitOK)
	w.until(10)
	w.check()
	c.wantSettings(settings, "a", "b")
	for _, name := range c.names {
		docs, old := c.docs(name), 0
		for i := range 100 {
			if _, ok := docs[marshalValue(t, in(cutID(i), uuidrep.JavaLegacy)).String()]; ok {
				old++
			}
		}
		if old == 0 {
			t.Errorf("%s has no document in the old representation", name)
		}
	}
}

// After a kill at any moment, the same command continues, and nothing is lost.
func TestUndoReleasedKilled(t *testing.T) {
	c, want := released(t, 60, "a")
	r := result{code: killed}
	for i := 0; i < 2 && r.code == killed; i++ {
		r = runFor(t, c.s, rand.N(600*time.Millisecond), c.line("undo", "--write")...)
	}
	ended := c.collections() == "a a_new"
	if r = command(t, c.s, c.line("undo", "--write")...); !ended {
		r.want(t, failure.ExitOK)
	}
	equal(t, c.docs("a"), want)
	if got := c.collections(); got != "a a_new" {
		t.Error(got)
	}
}

// undo refuses if an old collection was dropped, and if the old values of a document cannot be known.
// It lists such documents, and changes nothing.
func TestUndoReleasedRefused(t *testing.T) {
	c := startCut(t, 0)
	c.names = []string{"c"}
	for i := range 20 {
		c.put("c", cutDoc(i, 0))
	}
	dir := c.planFrom("csharpLegacy", "c", "c_new", "javaLegacy")
	command(t, c.s, "apply", dir, "--write").want(t, failure.ExitOK)
	c.run(failure.ExitUsage, "undo", "--write") // no cutover
	c.cutover(c.s, failure.ExitOK, "--write")
	c.release()
	c.put("c", bson.D{{Key: "_id", Value: "x"}, {Key: "customer", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}})
	before, kept := c.docs("c"), c.docs("c_before_cutover")
	for _, line := range [][]string{c.line("undo", "--write"), {"undo", dir}, {"undo", dir, "--write"}} {
		command(t, c.s, line...).want(t, failure.ExitUsage).says(t, "nothing shows whether it is a UUID", "nothing was changed")
		equal(t, c.docs("c"), before)
		equal(t, c.docs("c_before_cutover"), kept)
	}
	drop(t, c.db.Collection("c_before_cutover"))
	c.run(failure.ExitUsage, "undo", "--write").says(t, "was dropped")
	equal(t, c.docs("c"), before)
}
