package servertest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// If the second of three collections cannot be renamed in, all old ones are in place again, without what
// was deleted in the meantime. What was written in the meantime to the first new one is there, and in a file.
func TestCutoverRollsBack(t *testing.T) {
	c := startCut(t, 30, "a", "b", "c")
	settings := c.settingsOf("a")
	want := map[string]map[string]bson.Raw{}
	for _, name := range c.names {
		want[name] = c.docs(name)
	}
	delete(want["a"], marshalValue(t, in(cutID(3), uuidrep.JavaLegacy)).String())
	var once sync.Once
	p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		if r.rename() != c.db.Name()+".b_new to "+c.db.Name()+".b" {
			return pass()
		}
		once.Do(func() {
			c.delete("a", 3, uuidrep.Standard)
			c.put("a", cutDoc(3001, 0))
			c.set("a", 1, uuidrep.Standard, "n", int32(7))
		})
		return r.fail(20, "not today")
	})
	command(t, p, c.line("cutover", "--write")...).want(t, failure.ExitFailed).
		says(t, "not today; the cutover was rolled back").prints(t, "was rolled back", "2 documents that were inserted or changed", "a.written.jsonl").lacks(t, "to undo:")
	c.wantFiles(c.dir, "a.written.jsonl")
	c.wantCollections("a a_new b b_new c c_new")
	c.wantSettings(settings, "a", "a_new", "b", "b_new", "c", "c_new")
	for _, name := range c.names {
		equal(t, c.docs(name), want[name])
	}
	// It can be done again.
	c.cutover(c.s, failure.ExitOK, "--write").is(t, "switched")
	for _, name := range c.names {
		equal(t, c.docs(name), converted(t, want[name]))
	}
}

// A collection that a program creates between the two renames is kept aside, and its documents are
// merged, or reported.
func TestCutoverBetween(t *testing.T) {
	c := startCut(t, 20, "a")
	p := justBefore(t, c.s, func(r request) bool { return r.rename() == c.db.Name()+".a_new to "+c.db.Name()+".a" },
		func() { insert(t, c.db.Collection("a"), []any{cutDoc(100, 1), cutDoc(3, 33), cutDoc(4, 0)}) })
	b := c.cutover(p, failure.ExitIncomplete, "--write").is(t, "switched").Collections[0].CreatedBetween
	if len(b) != 1 || b[0].Collection != "a_between_1" || b[0].Documents != 3 || b[0].Conflicts != 1 {
		t.Errorf("%+v", b)
	}
	docs := c.docs("a")
	if n := docs[marshalValue(t, in(cutID(3), uuidrep.Standard)).String()].Lookup("n").Int32(); len(docs) != 21 || n != 0 {
		t.Errorf("%d documents, n is %d", len(docs), n)
	}
	if got := docs[marshalValue(t, in(cutID(100), uuidrep.Standard)).String()]; got == nil {
		t.Error("the document written between the renames is missing")
	}
	if len(all(t, c.db.Collection("a_between_1"))) != 3 {
		t.Error("the collection created between the renames was changed")
	}
	c.cutover(c.s, failure.ExitIncomplete, "--write")
	for _, flags := range [][]string{nil, {"--write"}} {
		c.run(failure.ExitUsage, "release", flags...).says(t, "1 documents", "--allow-changed")
	}
	c.release()
}

// A document that a program writes between two renames is in the old collection, too, and so in the one that is put back.
func TestCutoverBetweenPutBack(t *testing.T) {
	c := startCut(t, 20, "a")
	want := c.docs("a")
	note(want, cutDoc(100, 1))
	p := justBefore(t, c.s, func(r request) bool { return r.rename() == c.db.Name()+".a_new to "+c.db.Name()+".a" },
		func() { insert(t, c.db.Collection("a"), []any{cutDoc(100, 1)}) })
	c.cutover(p, failure.ExitOK, "--write").is(t, "switched")
	equal(t, c.docs("a"), converted(t, want))
	c.run(failure.ExitOK, "undo", "--write")
	equal(t, c.docs("a"), want)
}

// A cutover is refused, before anything is changed, if it would fail later or lose something.
func TestCutoverRefused(t *testing.T) {
	c := startCut(t, 5, "a")
	db, dir := c.db, c.dir
	refused := func(want string, flags ...string) {
		t.Helper()
		for _, write := range [][]string{nil, {"--write"}} {
			command(t, c.s, slices.Concat([]string{"cutover", c.dir, "--retry-for", "0s"}, write, flags)...).want(t, failure.ExitUsage).says(t, want)
		}
	}
	run := func(cmd ...bson.E) {
		t.Helper()
		check(t, db.RunCommand(t.Context(), bson.D(cmd)).Err())
	}
	insert(t, db.Collection("none"), cutDocs(20))
	c.planFrom("none", "none_new", "javaLegacy")
	refused("has no copy none_new")
	command(t, c.s, "apply", c.dir, "--write").want(t, failure.ExitOK)
	drop(t, db.Collection("none_new"))
	refused("has no copy none_new")
	drop(t, db.Collection("none"))
	refused("does not exist")
	c.dir = dir
	refused("there was no cutover", "--roll-back")
	refused("--with-skipped x", "--with-skipped", "x")
	refused("--allow-changed is for --roll-back", "--allow-changed")
	insert(t, db.Collection("a_before_cutover"), []any{cutDoc(1, 1)})
	refused("exists already")
	long := strings.Repeat("x", 255-len("_before_cutover")-len(db.Name()))
	insert(t, db.Collection(long), []any{cutDoc(1, 1), cutDoc(2, 1), cutDoc(3, 1), cutDoc(4, 1), cutDoc(5, 1), cutDoc(6, 1), cutDoc(7, 1), cutDoc(8, 1)})
	c.copyFrom(long, "short", "javaLegacy")
	refused("too long")
	for _, name := range []string{"a_before_cutover", long, "short"} {
		drop(t, db.Collection(name))
	}
	c.dir = dir

	// A copy that is not finished, or has skipped values.
	set := func(field string, value any) {
		t.Helper()
		did(t)(db.Collection(record.Name).UpdateMany(t.Context(), bson.D{{Key: "collection", Value: "a"}}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}))
	}
	set("outcome", "stopped")
	refused("is not finished")
	set("outcome", "done")
	set("progress.skipped", int64(2))
	refused("left values in 2 documents")
	command(t, c.s, "cutover", c.dir, "--with-skipped", "a").want(t, failure.ExitOK)
	set("progress.skipped", int64(0))

	// An index that the copy lacks.
	run(bson.E{Key: "createIndexes", Value: "a"}, bson.E{Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: int32(1)}}}, {Key: "name", Value: "n_1"}}}})
	refused("has indexes that a_new does not have: n_1")
	run(bson.E{Key: "createIndexes", Value: "a_new"}, bson.E{Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: int32(1)}}}, {Key: "name", Value: "n_1"}}}})

	// Another copy of the same collection is another migration's.
	c.copyFrom("a", "a_other", "javaLegacy")
	again := c.dir
	c.dir = dir
	c.run(failure.ExitOK, "cutover")
	drop(t, db.Collection("a_other"))
	c.wantCollections("a a_new")

	// What else would change a fenced collection is refused, until the release.
	c.cutover(c.s, failure.ExitOK, "--write")
	command(t, c.s, "apply", again, "--write").want(t, failure.ExitUsage).says(t, "is fenced by a cutover")
	command(t, c.s, "release", again, "--write").want(t, failure.ExitUsage).says(t, "there was no cutover")
	// A validator that another program sets stays.
	run(append(bson.D{{Key: "collMod", Value: "a"}}, cutSettings...)...)
	run(bson.E{Key: "collMod", Value: "a"}, bson.E{Key: "validator", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: int32(-5)}}}}})
	was := c.settingsOf("a")
	c.run(failure.ExitIncomplete, "release", "--write").prints(t, "another program has changed the validator")
	c.wantSettings(was, "a")
	c.run(failure.ExitOK, "release", "--write").prints(t, "was released at")
}

// A server without the command that sets validators is refused.
func TestCutoverWithoutCollMod(t *testing.T) {
	s, db := started(t)
	s.Refuse(t, mongotest.CollMod)
	c := &cut{TB: t, s: s, db: db}
	insert(t, db.Collection("a"), cutDocs(20))
	c.copy("a")
	for _, write := range [][]string{nil, {"--write"}} {
		command(t, s, append([]string{"cutover", c.dir}, write...)...).want(t, failure.ExitUsage).says(t, "collMod")
	}
	command(t, s, "release", c.dir, "--write").want(t, failure.ExitUsage)
}

// Two cutovers of the same collections do not run at the same time.
func TestCutoverTwice(t *testing.T) {
	c := startCut(t, 20, "a", "b")
	reached, others := make(chan struct{}), make(chan struct{})
	p := justBefore(t, c.s, func(r request) bool { return r.rename() != "" }, func() { close(reached); <-others })
	ended := make(chan result, 1)
	go func() { ended <- command(t, p, c.line("cutover", "--write")...) }()
	<-reached
	for _, flags := range [][]string{nil, {"--roll-back"}} {
		c.run(failure.ExitUsage, "cutover", append(flags, "--write")...).says(t, "has not ended; wait for it")
	}
	c.run(failure.ExitUsage, "release", "--write")
	close(others)
	(<-ended).want(t, failure.ExitOK)
}

// A cutover goes on if answers of the server are lost, whatever the server has done.
func TestCutoverLostAnswers(t *testing.T) {
	c := startCut(t, 30, "a", "-b c")
	for _, name := range c.names {
		did(t)(c.db.Collection(name).DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{in(cutID(1), uuidrep.JavaLegacy), in(cutID(2), uuidrep.JavaLegacy)}}}}}))
		insert(t, c.db.Collection(name), []any{cutDoc(50, 1)})
	}
	before := map[string]map[string]bson.Raw{}
	for _, name := range c.names {
		before[name] = c.docs(name)
	}
	var mu sync.Mutex
	seen := make(map[string]int)
	lost := 0
	p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		answer := pass()
		mu.Lock()
		defer mu.Unlock()
		seen[r.name()]++
		switch r.name() {
		case "renameCollection", "collMod", "delete", "insert", "update", "aggregate":
			if seen[r.name()]%3 == 1 {
				lost++
				return nil
			}
		}
		return answer
	})
	t.Setenv("MONGODB_URI", p.URI())
	r := command(t, nil, c.line("cutover", "--write", "-o", "json")...)
	if r.code != failure.ExitOK || lost < 6 {
		t.Fatalf("%d answers lost: %v, exit code %d\n%s%s", lost, seen, r.code, r.stdout, r.stderr)
	}
	t.Logf("%d answers lost: %v", lost, seen)
	for _, name := range c.names {
		equal(t, c.docs(name), converted(t, before[name]))
	}
}
