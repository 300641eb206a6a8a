package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
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
		{"a field is converted", func(t *testing.T, db *mongo.Database) {
			if _, err := db.Collection("invoices").UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$unset", Value: bson.D{{Key: "order", Value: ""}}}}); err != nil {
				t.Fatal(err)
			}
		}, `"invoices": the field "order" (subtype 3) has no values any more`},
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

// An edit of what was converted is refused, and the other verbs use the plan that was applied, also if the file is
// gone.
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
	if err := os.Remove(m.file); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"verify", "status", "undo"} {
		command(t, s, verb, m.dir).want(t, failure.ExitOK)
	}
	for _, args := range [][]string{{"verify", m.file}, {"verify", m.dir, "--db", "x"}, {"verify"},
		{"apply", m.dir, "--write"}, {"apply", filepath.Join(m.dir, "nothing")}, {"verify", t.TempDir()}, {"undo", t.TempDir(), "--write"},
		{"status", t.TempDir()}, {"status"}, {"apply"}, {"plan"}, {"plan", "--db", s.Database()}, {"plan", m.dir, "--db", s.Database()},
		{"plan", t.TempDir(), "--db", "nowhere"}, {"plan", t.TempDir(), "--db", s.Database(), "--to", "generic"}} {
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
	if err := db.CreateCollection(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
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
	if runs, err := db.Collection(record.Name).CountDocuments(t.Context(), bson.D{{Key: "kind", Value: "plan"}}); err != nil || runs != 1 {
		t.Errorf("%d plans in the record, %v", runs, err)
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
