package servertest

import (
	"errors"
	"math/rand/v2"
	"os/exec"
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
	fresh := c.db.Collection("a")
	by := func(i int) bson.D { return bson.D{{Key: "_id", Value: in(cutID(i), uuidrep.Standard)}} }
	key := func(i int) string { return marshalValue(t, in(cutID(i), uuidrep.JavaLegacy)).String() }
	set := func(doc bson.D) {
		note(want, doc)
	}
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(fresh.DeleteOne(t.Context(), by(0)))
	delete(want, key(0))
	check(fresh.UpdateOne(t.Context(), by(1), bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(7)}}}}))
	set(cutDoc(1, 7))
	check(fresh.UpdateOne(t.Context(), by(2002), bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(7)}}}}))
	set(mixed(cutID(2002), uuidrep.JavaLegacy, 7))
	check(fresh.UpdateOne(t.Context(), by(2), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: in(cutID(3000), uuidrep.Standard)}}}}))
	set(bson.D{{Key: "_id", Value: in(cutID(2), uuidrep.JavaLegacy)}, {Key: "customer", Value: in(cutID(3000), uuidrep.JavaLegacy)}, {Key: "n", Value: int32(0)}})
	check(fresh.InsertOne(t.Context(), bson.D{{Key: "_id", Value: in(cutID(3001), uuidrep.Standard)}, {Key: "customer", Value: in(cutID(3001), uuidrep.Standard)}, {Key: "n", Value: int32(0)}}))
	set(cutDoc(3001, 0))
	return c, want
}

// undo puts the old collections of a released cutover back: unchanged documents as they were, changed
// ones with their old values, and new ones converted back.
func TestUndoReleased(t *testing.T) {
	c, want := released(t, 40, "a", "b")
	other := all(t, c.db.Collection("b_before_cutover"))
	settings := c.settingsOf("a")
	for range 2 {
		command(t, c.s, c.line("undo")...).want(t, failure.ExitOK).prints(t, "dry run")
	}
	c.wantSettings(settings, "a", "b")
	command(t, c.s, append(c.line("undo", "--write"), "x")...).want(t, failure.ExitUsage)
	command(t, c.s, c.line("undo", "--write", "-o", "json")...).want(t, failure.ExitOK)
	if got := c.collections(); got != "a a_new b b_new" {
		t.Fatal(got)
	}
	equal(t, all(t, c.db.Collection("a")), want)
	equal(t, all(t, c.db.Collection("b")), other)
	c.wantSettings(settings, "a", "b", "a_new", "b_new")
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitUsage)
	if _, err := c.db.Collection("a").InsertOne(t.Context(), cutDoc(4000, 1)); err != nil {
		t.Error(err)
	}
}

// Nothing of what a service writes while a cutover is undone is lost.
func TestUndoReleasedWithWriter(t *testing.T) {
	c := startCut(t, 100, "a", "b")
	settings := c.settingsOf("a")
	c.cutover(c.s, failure.ExitOK, "--write")
	c.release()
	w := c.writing(func(i, n int) bson.D {
		return bson.D{{Key: "_id", Value: in(cutID(i), uuidrep.Standard)}, {Key: "customer", Value: in(cutID(i), uuidrep.Standard)}, {Key: "n", Value: int32(n)}}
	})
	w.until(20)
	command(t, w.proxy(nil), c.line("undo", "--write")...).want(t, failure.ExitOK)
	w.until(10)
	w.check()
	c.wantSettings(settings, "a", "b")
	for _, name := range c.names {
		docs, old := all(t, c.db.Collection(name)), 0
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
	kills := 2
	for range kills {
		cmd, out := start(t, c.s, c.line("undo", "--write")...)
		timer := time.AfterFunc(rand.N(600*time.Millisecond), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		var exit *exec.ExitError
		if err == nil {
			break
		}
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if names := c.collections(); names != "a a_new" {
		command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitOK)
	} else {
		command(t, c.s, c.line("undo", "--write")...) // it may have ended
	}
	equal(t, all(t, c.db.Collection("a")), want)
	if got := c.collections(); got != "a a_new" {
		t.Error(got)
	}
}

// undo refuses if an old collection was dropped, and if the old values of a document cannot be known.
// It lists such documents, and changes nothing.
func TestUndoReleasedRefused(t *testing.T) {
	c := startCut(t, 20)
	c.names = []string{"c"}
	var docs []any
	for i := range 20 {
		docs = append(docs, cutDoc(i, 0))
	}
	insert(t, c.db.Collection("c"), docs)
	command(t, c.s, "apply", c.planFrom("csharpLegacy", "c", "c_new", "javaLegacy"), "--write").want(t, failure.ExitOK)
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitUsage) // no cutover
	c.cutover(c.s, failure.ExitOK, "--write")
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitUsage).says(t, "it was not released")
	c.release()
	fresh := c.db.Collection("c")
	opaque := bson.D{{Key: "_id", Value: "x"}, {Key: "customer", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}
	if _, err := fresh.InsertOne(t.Context(), opaque); err != nil {
		t.Fatal(err)
	}
	before, kept := all(t, fresh), all(t, c.db.Collection("c_before_cutover"))
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitUsage).says(t, "nothing shows whether it is a UUID", "nothing was changed")
	equal(t, all(t, fresh), before)
	equal(t, all(t, c.db.Collection("c_before_cutover")), kept)
	drop(t, c.db.Collection("c_before_cutover"))
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitUsage).says(t, "was dropped")
	equal(t, all(t, fresh), before)
}
