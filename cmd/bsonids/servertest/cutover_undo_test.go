package servertest

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// Between the exchange and the release, undo and cutover --roll-back put the old collections back as they were, without what was
// deleted from the new ones. They refuse if documents were inserted or changed there in spite of the fence, and name a file that
// has them.
func TestPutBack(t *testing.T) {
	for name, tt := range map[string]struct {
		line func(c *cut, flags ...string) []string
		dir  bool
	}{
		"undo":            {func(c *cut, flags ...string) []string { return c.line("undo", flags...) }, true},
		"roll back":       {func(c *cut, flags ...string) []string { return c.line("cutover", append(flags, "--roll-back")...) }, true},
		"undo by id":      {func(c *cut, flags ...string) []string { return c.lineByID("undo", flags...) }, false},
		"roll back by id": {func(c *cut, flags ...string) []string { return c.lineByID("cutover", append(flags, "--roll-back")...) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCut(t, 40, "a", "b")
			old := c.db.Collection("a")
			want, other, settings := all(t, old), c.docs("b"), c.settingsOf("a")
			c.cutover(c.s, failure.ExitOK, "--write")
			c.delete("a", 0, uuidrep.Standard)
			delete(want, marshalValue(t, in(cutID(0), uuidrep.JavaLegacy)).String())
			command(t, c.s, tt.line(c)...).want(t, failure.ExitOK)
			c.put("a", cutDoc(3001, 0)) // by a service that was not switched
			c.set("a", 1, uuidrep.Standard, "n", int32(7))
			inSpite := c.docs("a")
			wd := t.TempDir()
			t.Chdir(wd)
			if tt.dir {
				wd = c.dir
			}
			for range 2 {
				command(t, c.s, tt.line(c)...).want(t, failure.ExitUsage).says(t, "2 documents were inserted or changed", "--allow-changed")
				c.wantFiles(wd)
			}
			r := command(t, c.s, tt.line(c, "--write")...).want(t, failure.ExitUsage).says(t, "2 documents were inserted or changed", "--allow-changed", "nothing was exchanged")
			r.says(t, "a.written.jsonl")
			c.wantFiles(wd, "a.written.jsonl")
			c.wantSettings(fencedSettings, "a", "a_before_cutover")
			equal(t, c.docs("a"), inSpite)
			command(t, c.s, tt.line(c, "--write", "--allow-changed")...).want(t, failure.ExitOK).prints(t, "a.written.2.jsonl")
			c.wantFiles(wd, "a.written.jsonl", "a.written.2.jsonl")
			c.wantCollections("a a_new b b_new")
			equal(t, c.docs("a"), want)
			equal(t, c.docs("b"), other)
			equal(t, c.docs("a_new"), inSpite)
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			insert(t, c.db.Collection("a"), []any{cutDoc(4000, 1)})
		})
	}
}

// wantFiles fails the test unless the directory has these files of documents, and each has the two that were written in spite of
// the fence.
func (c *cut) wantFiles(dir string, names ...string) {
	c.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.written*"))
	if err != nil || len(found) != len(names) {
		c.Errorf("%q, %v, want %q", found, err, names)
	}
	for _, name := range names {
		docs := make(map[string]bson.Raw)
		for _, line := range lines(c, filepath.Join(dir, name)) {
			var doc bson.Raw
			check(c, bson.UnmarshalExtJSON([]byte(line), true, &doc))
			docs[doc.Lookup("_id").String()] = doc
		}
		want := make(map[string]bson.Raw)
		note(want, cutDoc(3001, 0))
		note(want, bson.D{{Key: "_id", Value: in(cutID(1), uuidrep.Standard)}, {Key: "customer", Value: in(cutID(1), uuidrep.Standard)}, {Key: "n", Value: int32(7)}})
		equal(c, docs, want)
	}
}

// Nothing of what a service writes while a cutover is rolled back is lost: what it deletes is deleted, and what it inserts or changes
// in a new collection in spite of the fence is there, and in a file.
func TestPutBackWithWriter(t *testing.T) {
	c := startCut(t, 100, "a", "b")
	settings := c.settingsOf("a")
	c.cutover(c.s, failure.ExitOK, "--write")
	w := c.writing(func(i, n int) bson.D {
		return append(cutBy(i, uuidrep.Standard), bson.E{Key: "customer", Value: in(cutID(i), uuidrep.Standard)}, bson.E{Key: "n", Value: int32(n)})
	})
	w.until(20)
	command(t, w.proxy(), c.line("undo", "--write", "--allow-changed")...).want(t, failure.ExitOK)
	w.end()
	t.Logf("%v", w.counts)
	c.wantSettings(settings, "a", "b")
	for _, name := range c.names {
		docs, fresh := c.docs(name), c.docs(name+"_new")
		written := make(map[string]bson.Raw)
		paths, err := filepath.Glob(filepath.Join(c.dir, name+".written*"))
		check(t, err)
		for _, path := range paths {
			for _, line := range lines(t, path) {
				var doc bson.Raw
				check(t, bson.UnmarshalExtJSON([]byte(line), true, &doc))
				written[doc.String()] = doc
			}
		}
		old := converted(t, docs)
		for id, doc := range w.truth[name] {
			want := converted(t, map[string]bson.Raw{id: doc})
			for key, doc := range want {
				is := written[doc.String()] != nil && fresh[key] != nil
				if got := old[key]; !is && (got == nil || got.String() != doc.String()) {
					t.Errorf("%s: %s is lost: %s", name, doc, got)
				}
			}
		}
		for key := range old {
			if !slices.ContainsFunc(slices.Collect(maps.Values(w.truth[name])), func(doc bson.Raw) bool {
				_, is := converted(t, map[string]bson.Raw{"": doc})[key]
				return is
			}) {
				t.Errorf("%s: %s was deleted", name, key)
			}
		}
	}
}

// undo refuses if there was no cutover that it knows, and if an old collection was dropped.
func TestUndoRefused(t *testing.T) {
	c := startCut(t, 20, "a")
	for _, verb := range []string{"undo", "cutover", "release"} {
		command(t, c.s, verb, "--db", c.db.Name(), "0123", "--write").want(t, failure.ExitUsage).says(t, "has no cutover 0123; bsonids status --db")
		command(t, c.s, verb, "--db", c.db.Name(), "a", "b", "--write").want(t, failure.ExitUsage)
	}
	c.cutover(c.s, failure.ExitOK, "--write")
	before := c.docs("a")
	drop(t, c.db.Collection("a_before_cutover"))
	c.run(failure.ExitUsage, "undo").says(t, "was dropped")
	c.run(failure.ExitFailed, "undo", "--write").says(t, "collections are missing")
	equal(t, c.docs("a"), before)
}

// Copies of text and of Go structs are exchanged, also if _ids are text, which may be spelled in several ways, and put back.
func TestCutoverForms(t *testing.T) {
	goStruct := func(i int) any {
		u := cutID(i)
		return []bson.D{{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}, {{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: true}},
			{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}[i%3]
	}
	text := func(i int) any { return spelling(cutID(i), []int{0, 4, 2, 3}[i%4]) }
	c := startCut(t, 0)
	for name, tt := range map[string]struct {
		form  func(int) any
		kind  string
		field string
	}{"text": {text, "text", "ref"}, "structs": {goStruct, "goStruct", "ref"}, "ids": {text, "text", "_id"}} {
		t.Run(name, func(t *testing.T) {
			old := c.db.Collection(name)
			doc := func(i int, n int32) bson.D {
				if tt.field == "_id" {
					return bson.D{{Key: "_id", Value: tt.form(i)}, {Key: "i", Value: int32(i)}, {Key: "n", Value: n}}
				}
				return bson.D{{Key: "_id", Value: int32(i)}, {Key: "ref", Value: tt.form(i)}, {Key: "i", Value: int32(i)}, {Key: "n", Value: n}}
			}
			var docs []any
			for i := range 24 {
				docs = append(docs, doc(i, 0))
			}
			insert(t, old, docs)
			c.copyFrom(name, name+"_new", tt.kind, tt.field)
			deleted(t, old, bson.D{{Key: "i", Value: int32(3)}})
			did(t)(old.UpdateOne(t.Context(), bson.D{{Key: "i", Value: int32(4)}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(9)}}}}))
			insert(t, old, []any{doc(100, 0)})
			want := all(t, old)
			c.cutover(c.s, failure.ExitOK, "--write")
			fresh := all(t, old)
			if len(fresh) != len(want) {
				t.Errorf("%d documents, want %d", len(fresh), len(want))
			}
			for id, doc := range fresh {
				i := int(doc.Lookup("i").Int32())
				is, null := doc.Lookup(tt.field), name == "structs" && i%3 == 2
				if value := marshalValue(t, in(cutID(i), uuidrep.Standard)); null != (is.Type == bson.TypeNull) || !null && !is.Equal(value) {
					t.Errorf("%s: %v", id, is)
				}
			}
			deleted(t, old, bson.D{{Key: "i", Value: int32(7)}})
			for id, doc := range want {
				if doc.Lookup("i").Int32() == 7 {
					delete(want, id)
				}
			}
			c.run(failure.ExitOK, "undo", "--write")
			equal(t, all(t, old), want)
		})
	}
}

// A collection is migrated again, into a copy of the same name. Each directory is about its own cutover.
func TestCutoverAgain(t *testing.T) {
	c := startCut(t, 0)
	insert(t, c.db.Collection("a"), cutDocs(20))
	first := c.planFrom("a", "a_new", "javaLegacy", "customer")
	run := func(want int, args ...string) result {
		t.Helper()
		return command(c, c.s, args...).want(t, want)
	}
	run(failure.ExitOK, "apply", first, "--write")
	run(failure.ExitOK, "cutover", first, "--write")
	run(failure.ExitOK, "release", first, "--write")
	run(failure.ExitOK, "verify", first)
	between := c.docs("a")
	second := c.planFrom("a", "a_new", "javaLegacy", "_id")
	run(failure.ExitUsage, "undo", second, "--write").says(t, "nothing was converted by the plan")
	equal(t, c.docs("a"), between)
	for range 2 { // the second time, the copy was dropped
		run(failure.ExitOK, "apply", second, "--write")
		run(failure.ExitOK, "verify", second).prints(t, "proven")
		drop(t, c.db.Collection("a_new"))
	}
	run(failure.ExitOK, "apply", second, "--write")
	drop(t, c.db.Collection("a_before_cutover"))
	run(failure.ExitOK, "cutover", second, "--write")
	run(failure.ExitOK, "release", first, "--write").prints(t, "was released at")
	if state := statusCutovers(t, c.s, "--db", c.db.Name()); state != "switched" {
		t.Errorf("the state is %q", state)
	}
	c.wantCollections("a a_before_cutover")
	run(failure.ExitOK, "verify", second)
	run(failure.ExitIncomplete, "verify", first, "--allow-changed").says(t, "was dropped")
	after := c.docs("a")
	run(failure.ExitUsage, "undo", first, "--write").says(t, "point of no return")
	equal(t, c.docs("a"), after)
	run(failure.ExitOK, "undo", second, "--write")
	equal(t, c.docs("a"), between)
}

// The new collection, or the old one, was dropped after the cutover, and another program has made one of its name. undo would
// delete from the old one what that lacks, and lose every document.
func TestUndoOfReplaced(t *testing.T) {
	for _, gone := range []string{"a", "a_before_cutover"} {
		c := startCut(t, 20, "a")
		c.cutover(c.s, failure.ExitOK, "--write")
		drop(t, c.db.Collection(gone))
		insert(t, c.db.Collection(gone), []any{bson.D{{Key: "_id", Value: "theirs"}}})
		before := []any{c.docs("a"), c.docs("a_before_cutover")}
		for _, flags := range [][]string{nil, {"--allow-changed"}} {
			c.run(failure.ExitFailed, "undo", append(flags, "--write")...).says(t, "another program renamed, dropped or created one of them")
		}
		for i, name := range []string{"a", "a_before_cutover"} {
			equal(t, c.docs(name), before[i].(map[string]bson.Raw))
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
