package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// legacyDocs returns documents with UUIDs of a field in the Java representation.
func legacyDocs(field string, n int) (docs []any) {
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: field, Value: in(v4(i), uuidrep.JavaLegacy)}})
	}
	return docs
}

// What has changed since the plan was made is found before the first write.
func TestApplyOfChangedData(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, db *mongo.Database)
		want   string
	}{
		{"a field appears", func(t *testing.T, db *mongo.Database) {
			insert(t, db.Collection("orders"), []any{bson.D{{Key: "_id", Value: "new"}, {Key: "late", Value: in(v4(1), uuidrep.JavaLegacy)}}})
		}, `"orders": the field "late" (subtype 3) is not in the plan`},
		{"the evidence changes", func(t *testing.T, db *mongo.Database) {
			var docs []any
			for i := range 30 {
				docs = append(docs, bson.D{{Key: "_id", Value: fmt.Sprint(i)}, {Key: "order", Value: in(v4(i), uuidrep.CSharpLegacy)}})
			}
			insert(t, db.Collection("invoices"), docs)
		}, `"invoices": the evidence of "order" (subtype 3) for javaLegacy was {order: javaLegacy, by: evidence, versions: [4]} and is {order: javaLegacy, by: evidence, versions: [4], against: ["csharpLegacy"]}`},
		{"a collection is dropped", func(t *testing.T, db *mongo.Database) {
			drop(t, db.Collection("invoices"))
		}, `the collection "invoices" is not there any more`},
		{"a collection is created again", func(t *testing.T, db *mongo.Database) {
			drop(t, db.Collection("invoices"))
			insert(t, db.Collection("invoices"), legacyDocs("order", 20))
		}, `"invoices" is another collection of this name`},
		{"a collection appears", func(t *testing.T, db *mongo.Database) {
			insert(t, db.Collection("more"), legacyDocs("x", 20))
		}, `the collection "more" appeared, with "x" (subtype 3)`},
		{"the new collection has documents", func(t *testing.T, db *mongo.Database) {
			insert(t, db.Collection("customers_standard"), []any{bson.D{{Key: "_id", Value: 1}}})
		}, `the new collection "customers_standard" has documents already`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, db := started(t)
			shop(t, db, 20)
			file := planned(t, s)
			dir := filepath.Dir(file)
			edit(t, file, left...)
			tt.change(t, db)
			before := make(map[string]map[string]bson.Raw)
			for _, name := range []string{"customers", "orders", "sessions", "files"} {
				before[name] = all(t, db.Collection(name))
			}
			for _, extra := range [][]string{nil, {"--write"}} {
				command(t, s, append([]string{"apply", dir, "--batch", "10"}, extra...)...).want(t, failure.ExitUsage).says(t, tt.want)
			}
			whole(t, db, before)
			// The same directory serves a new plan, because nothing was converted.
			again(t, planned(t, s), dir)
			edit(t, file, left...)
			if strings.Contains(text(t, file), "unknown, because") {
				return
			}
			if r := command(t, s, "apply", dir, "--batch", "10", "--write"); r.code != failure.ExitOK && r.code != failure.ExitIncomplete {
				t.Errorf("exit code %d: %s", r.code, r.stderr)
			}
		})
	}
}

// An edit of what was converted is refused, and the other verbs go by the record.
func TestApplyOfEditedPlan(t *testing.T) {
	s := mongotest.Start(t)
	m := newMixedShop(t, s, 20)
	edit(t, m.file, "    fields: [\"device\", \"token\"]\n", "    fields: [\"device\", \"token\"]\n    accepted: true\n")
	args := []string{"apply", m.dir, "--batch", "10", "--write"}
	command(t, s, args...).want(t, failure.ExitOK)
	edit(t, m.file, "# 20 values", "# a note: 20 values") // comments do not matter
	command(t, s, args...).want(t, failure.ExitOK)
	edit(t, m.file, "decision: convert from generic", "decision: leave")
	for _, args := range [][]string{args, {"apply", m.dir}} {
		command(t, s, args...).want(t, failure.ExitUsage).
			says(t, `the collection "sessions": the field "token" (subtype 0): decision was convert from generic and is leave; put this back`)
	}
	command(t, s, "verify", m.dir).want(t, failure.ExitOK)
	for _, verb := range []string{"verify", "status", "undo"} {
		command(t, s, verb, m.dir).want(t, failure.ExitOK)
	}
	for _, args := range [][]string{{"verify", m.file}, {"verify", m.dir, "--db", "x"}, {"verify"},
		{"apply", m.dir, "--write"}, {"apply", filepath.Join(m.dir, "nothing")}, {"verify", t.TempDir()}, {"undo", t.TempDir(), "--write"},
		{"status", t.TempDir()}, {"status"}, {"apply"}, {"plan"}, {"plan", "--db", s.Database()},
		{"plan", t.TempDir(), "--db", "nowhere"}} {
		command(t, s, args...).want(t, failure.ExitUsage)
	}
	whole(t, m.db, m.want)
}

// Two commands at once on one directory, and on two, convert everything once.
func TestApplyTwiceAtOnce(t *testing.T) {
	for _, second := range []string{"a", "b"} {
		s := mongotest.Start(t)
		m := newMixedShop(t, s, 30)
		top := t.TempDir()
		dirs := []string{filepath.Join(top, "a"), filepath.Join(top, second)}
		results := make(chan result, 2)
		for _, d := range dirs {
			again(t, m.file, d)
		}
		for _, d := range dirs {
			go func() {
				results <- command(t, s, "apply", d, "--batch", "10", "--collections-at-once", "2", "--write")
			}()
		}
		for range 2 {
			if r := <-results; r.code != failure.ExitOK && r.code != failure.ExitUsage && r.code != failure.ExitFailed {
				t.Errorf("exit code %d: %s", r.code, r.stderr)
			}
		}
		for _, d := range dirs { // each of them may have stopped because of the other one
			command(t, s, "apply", d, "--batch", "10", "--write")
		}
		whole(t, m.db, m.want)
	}
}

// Names that a database allows and YAML, file systems and terminals give a meaning. Some servers do
// not allow all of them.
func TestApplyOfUglyNames(t *testing.T) {
	s, db := started(t)
	names := []string{"a.b", "yes", "null", "a: b", "# c", "- d", "Case", "case", "ä€😀", "new\nline", "tab\there", "\u202ebidi", "../up", "a/b", "{x}", "*", "q\"uo'te", "back\\slash"}
	var made []string
	for _, name := range names {
		if _, err := db.Collection(name).InsertMany(t.Context(), legacyDocs("x", 12)); err != nil {
			t.Logf("the server refuses %q: %v", name, err)
			continue
		}
		made = append(made, name)
	}
	if len(made) < 5 {
		t.Fatalf("only %q could be made", made)
	}
	dir := filepath.Dir(planned(t, s))
	r := command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	for _, c := range r.stdout + r.stderr {
		if c != '\n' && c < ' ' || c == 0x202e {
			t.Errorf("the output has %q", c)
		}
	}
	for _, name := range made {
		wantNew(t, db.Collection(name), "x")
	}
	for _, args := range [][]string{{"verify", dir}, {"status", dir}, {"undo", dir, "--write"}} {
		command(t, s, args...).want(t, failure.ExitOK)
	}
}

// A database without UUIDs, and one with views and many collections.
func TestPlanOfOtherDatabases(t *testing.T) {
	s, db := started(t)
	insert(t, db.Collection("plain"), []any{bson.D{{Key: "_id", Value: 1}}})
	check(t, db.CreateCollection(t.Context(), "empty"))
	command(t, s, "apply", filepath.Dir(planned(t, s))).want(t, failure.ExitUsage).says(t, "nothing to convert")
	n := 300
	if testing.Short() {
		n = 20
	}
	for i := range n {
		insert(t, db.Collection(fmt.Sprintf("c%03d", i)), legacyDocs("x", 8))
	}
	if err := db.CreateView(t.Context(), "view", "c000", mongo.Pipeline{}); err != nil {
		t.Logf("without a view: %v", err)
	}
	command(t, s, "apply", filepath.Dir(planned(t, s)), "--batch", "10", "--write").want(t, failure.ExitOK)
	for i := range n {
		wantNew(t, db.Collection(fmt.Sprintf("c%03d", i)), "x")
	}
	if runs, err := db.Collection(record.Name).CountDocuments(t.Context(), bson.D{{Key: "kind", Value: record.Convert}}); err != nil || runs != int64(n) {
		t.Errorf("%d runs in the record, %v", runs, err)
	}
}

// A directory that is none stops the commands before the first write.
func TestApplyWithoutDirectory(t *testing.T) {
	s := mongotest.Start(t)
	m := newMixedShop(t, s, 12)
	taken := filepath.Join(t.TempDir(), "file")
	put(t, taken, "")
	for _, dir := range []string{taken, filepath.Join(taken, "below"), "/dev/full"} {
		if r := command(t, s, "apply", dir, "--write").says(t, "changed nothing"); r.code == failure.ExitOK {
			t.Error(dir)
		}
		command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitUsage)
	}
	whole(t, m.db, m.before)
}

// If a user lacks a privilege, the command says so in one sentence, and the data is not changed.
func TestDenied(t *testing.T) {
	s, err := embedded.Start(embedded.WithFront())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db := connectTo(t, s, "d")
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy)
	did(t)(db.Collection("c").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}))
	before := all(t, db.Collection("c"))

	var denied atomic.Pointer[string]
	var sampled atomic.Bool
	p := startProxy(t, s.Addr(), func(r request, pass func() []byte) []byte {
		if r.name() != *denied.Load() {
			if r.name() == "count" && sampled.Load() {
				return ofMany(r)
			}
			return pass()
		}
		return r.fail(13, "not authorized on d to execute command "+r.command.String())
	})

	want := func(what string, r result) {
		t.Helper()
		_, r.stderr, _ = strings.Cut(r.stderr, " ERROR ") // behind the progress and what was not read
		if r.code != failure.ExitDenied || strings.Count(strings.Split(r.stderr, " changed: ")[0], "\n") != 1 || !strings.Contains(r.stderr, "the user lacks a privilege: (Unauthorized) not authorized on d to execute command") ||
			strings.Contains(r.stderr, "{") {
			t.Errorf("%s: exit code %d\n%s%s", what, r.code, r.stdout, r.stderr)
		}
	}
	plan := func(into string) []string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "d.d")
		command(t, s, "plan", dir, "--db", "d").want(t, failure.ExitOK)
		changePlan(t, dir, convertFields("javaLegacy"), copiedInto("c", into))
		return []string{"apply", dir}
	}
	done := plan("")[1]
	ns := []string{"--db", "d", "--collection", "c"}
	check := func(args []string, commands ...string) {
		t.Helper()
		for _, name := range commands {
			denied.Store(&name)
			want(fmt.Sprintf("%q without %s", args, name), command(t, p, args...))
			equal(t, all(t, db.Collection("c")), before)
			// Indexes are created after the documents. Every other missing privilege is found before.
			if n := len(all(t, db.Collection("new"))); n > 0 && name != "createIndexes" {
				t.Errorf("%q without %s: %d documents in the new collection", args, name, n)
			}
			drop(t, db.Collection("new"))
		}
	}
	sampled.Store(true)
	check(append([]string{"scan"}, ns...), "listCollections", "count", "aggregate")
	sampled.Store(false)
	check(append([]string{"scan", "--all"}, ns...), "listCollections", "count", "find")
	check([]string{"scan"}, "listDatabases")
	check([]string{"plan", filepath.Join(t.TempDir(), "other.d"), "--db", "d"}, "listCollections")
	check(plan(""), "listCollections", "count", "find")
	check(append(plan(""), "--write"), "listCollections", "update", "count", "find")
	check(append(plan("new"), "--write"), "listCollections", "count", "find", "listIndexes", "create", "insert", "createIndexes")
	command(t, s, append([]string{"apply", done, "--write"}, gentle...)...).want(t, failure.ExitOK)
	before = all(t, db.Collection("c"))
	check([]string{"verify", done}, "listCollections", "count", "find")
	check([]string{"undo", done, "--write"}, "find", "update")
}
