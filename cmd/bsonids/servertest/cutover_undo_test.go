package servertest

import (
	"testing"

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
	c.wantCollections("a a_new b b_new")
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

// undo refuses if there is no cutover, and if an old collection was dropped.
func TestUndoReleasedRefused(t *testing.T) {
	c := startCut(t, 0)
	c.names = []string{"c"}
	for i := range 20 {
		c.put("c", cutDoc(i, 0))
	}
	c.copy("c")
	c.run(failure.ExitUsage, "undo", "--write")
	c.cutover(c.s, failure.ExitOK, "--write")
	c.release()
	before := c.docs("c")
	drop(t, c.db.Collection("c_before_cutover"))
	c.run(failure.ExitUsage, "undo", "--write").says(t, "was dropped")
	equal(t, c.docs("c"), before)
}

// Copies of text and of Go structs are exchanged, and their cutover is undone. What did not change has its old bytes,
// also a document that says that there is no UUID; new text has the usual spelling; a new value that no document of a
// Go struct shows is named before anything is changed. Text in _id is refused.
func TestCutoverForms(t *testing.T) {
	goStruct := func(i int) any {
		u := cutID(i)
		return []bson.D{{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}, {{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: true}},
			{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}[i%3]
	}
	c := startCut(t, 0)
	doc := func(i int, ref any, n int32) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "ref", Value: ref}, {Key: "n", Value: n}}
	}
	for name, form := range map[string]func(int) any{"text": func(i int) any { return spelling(cutID(i), []int{0, 4, 2, 3}[i%4]) }, "goStruct": goStruct} {
		t.Run(name, func(t *testing.T) {
			old := c.db.Collection(name)
			var docs []any
			for i := range 24 {
				docs = append(docs, doc(i, form(i), 0))
			}
			insert(t, old, docs)
			want := all(t, old)
			c.copyFrom(name, name+"_new", name, "ref")
			c.names = []string{name}
			c.cutover(c.s, failure.ExitOK, "--write")
			for id, doc := range all(t, old) {
				i := int(doc.Lookup("_id").Int32())
				is, null := doc.Lookup("ref"), name == "goStruct" && i%3 == 2
				if fresh := marshalValue(t, in(cutID(i), uuidrep.Standard)); null != (is.Type == bson.TypeNull) || !null && !is.Equal(fresh) {
					t.Errorf("%s: %v", id, is)
				}
			}
			c.release()
			for _, i := range []int{3, 4, 5} {
				set(t, old, int32(i), "n", int32(9))
				note(want, doc(i, form(i), 9))
			}
			set(t, old, int32(6), "ref", in(cutID(600), uuidrep.Standard))
			insert(t, old, []any{doc(100, in(cutID(100), uuidrep.Standard), 0)})
			if name == "text" {
				note(want, doc(6, cutID(600).String(), 0))
				note(want, doc(100, cutID(100).String(), 0))
			}
			for _, i := range []int32{6, 100} {
				if name == "text" {
					break
				}
				c.run(failure.ExitUsage, "undo", "--write").says(t, "nothing shows which fields the document of its Go struct would have")
				did(c)(old.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: i}}))
				delete(want, marshalValue(t, i).String())
			}
			c.run(failure.ExitOK, "undo", "--write")
			equal(t, all(t, old), want)
		})
	}
	insert(t, c.db.Collection("ids"), []any{bson.D{{Key: "_id", Value: cutID(1).String()}}, bson.D{{Key: "_id", Value: cutID(2).String()}}})
	c.copyFrom("ids", "ids_new", "text", "_id")
	c.names = []string{"ids"}
	c.run(failure.ExitUsage, "cutover", "--write").says(t, "its _ids are text")
}

// A collection is migrated again, into a copy of the same name. Each directory is about its own cutover.
func TestCutoverAgain(t *testing.T) {
	c := startCut(t, 0)
	c.names = []string{"a"}
	insert(t, c.db.Collection("a"), cutDocs(20))
	first := c.planFrom("a", "a_new", "javaLegacy", "customer")
	run := func(want int, args ...string) result {
		t.Helper()
		return command(c, c.s, args...).want(t, want)
	}
	exchange := func(dir string) {
		t.Helper()
		run(failure.ExitOK, "cutover", dir, "--write")
		run(failure.ExitOK, "release", dir, "--write")
	}
	run(failure.ExitOK, "apply", first, "--write")
	exchange(first)
	run(failure.ExitOK, "verify", first)
	between := c.docs("a")
	second := c.planFrom("a", "a_new", "javaLegacy", "_id")
	run(failure.ExitUsage, "undo", second, "--write").says(t, "no plan was applied")
	equal(t, c.docs("a"), between)
	for range 2 { // the second time, the copy was dropped
		run(failure.ExitOK, "apply", second, "--write")
		run(failure.ExitOK, "verify", second).prints(t, "proven")
		drop(t, c.db.Collection("a_new"))
	}
	run(failure.ExitOK, "apply", second, "--write")
	drop(t, c.db.Collection("a_before_cutover"))
	exchange(second)
	c.wantCollections("a a_before_cutover")
	run(failure.ExitOK, "verify", second)
	run(failure.ExitIncomplete, "verify", first, "--allow-changed").says(t, "was dropped")
	after := c.docs("a")
	run(failure.ExitOK, "undo", first, "--write").says(t, "stay as they are")
	equal(t, c.docs("a"), after)
	run(failure.ExitOK, "undo", second, "--write")
	equal(t, c.docs("a"), between)
}

// The new collection, or the old one, was dropped after the cutover, and another program has made one of its name. undo would
// make the old one equal to that, and lose every document.
func TestUndoOfReplaced(t *testing.T) {
	for _, gone := range []string{"a", "a_before_cutover"} {
		for _, released := range []bool{false, true} {
			c := startCut(t, 20, "a")
			c.cutover(c.s, failure.ExitOK, "--write")
			if released {
				c.release()
			}
			drop(t, c.db.Collection(gone))
			insert(t, c.db.Collection(gone), []any{bson.D{{Key: "_id", Value: "theirs"}}})
			before := []any{c.docs("a"), c.docs("a_before_cutover")}
			c.run(failure.ExitFailed, "undo", "--write").says(t, "another program renamed, dropped or created one of them")
			for i, name := range []string{"a", "a_before_cutover"} {
				equal(t, c.docs(name), before[i].(map[string]bson.Raw))
			}
		}
	}
}

// The copy was dropped before it was renamed, and another program has made a collection of its name. A roll-back does not give
// that the validator of the copy.
func TestRollBackOfReplaced(t *testing.T) {
	c := startCut(t, 20, "a")
	lost := lostAfter(t, c.s, 0, func(r request) bool { return r.name() == "renameCollection" })
	command(t, lost, c.line("cutover", "--write", "--retry-for", "0s")...).want(t, failure.ExitUnreachable)
	fresh := c.db.Collection("a_new")
	drop(t, fresh)
	theirs := []any{bson.D{{Key: "_id", Value: "theirs"}, {Key: "n", Value: int32(-1)}}, bson.D{{Key: "_id", Value: "more"}, {Key: "n", Value: int32(-2)}}}
	insert(t, fresh, theirs[:1])
	c.cutover(c.s, failure.ExitOK, "--roll-back", "--write").is(t, "rolled back")
	insert(t, fresh, theirs[1:])
}
