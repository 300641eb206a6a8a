package servertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A state file or an undo log of something else is never used and never damaged.
func TestOtherFiles(t *testing.T) {
	s := mongotest.Start(t)
	seed(t, connect(t, s).Collection("c"), 10, uuidrep.JavaLegacy, uuidrep.Standard)
	path := filepath.Join(t.TempDir(), "precious")
	const state = `{"bsonids":"state 1","conversion":{"database":"x","collection":"c","from":"javaLegacy","to":"standard"},"done":false,"changedDocuments":0}`
	other := filepath.Join(t.TempDir(), "other")
	l, err := convert.OpenUndoLog(other, convert.Identity{Database: "x", Collection: "c", From: "javaLegacy", To: "standard"}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	undo := string(b)
	for _, text := range []string{"text", "line\n", "line\nthat doesn't end", "\n", "{", state, state + "\n", undo, undo + "more", undo[:len(undo)-1] + "x"} {
		for _, flag := range []string{"--state", "--undo-log"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", flag, path).want(t, failure.ExitUsage)
			if b, err := os.ReadFile(path); err != nil || string(b) != text {
				t.Errorf("%s: %q became %q, %v", flag, text, b, err)
			}
		}
	}
	// The state file and the undo log must be two files.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", path, "--undo-log", path).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "the same file") {
		t.Error(r.stderr)
	}
	command(t, s, "convert", "--db", s.Database(), "--collection", "nowhere", "--from", "javaLegacy").want(t, failure.ExitUsage)
}

// A finished conversion is reported in the requested format, and without advice that would convert
// twice.
func TestFinished(t *testing.T) {
	s := mongotest.Start(t)
	seed(t, connect(t, s).Collection("c"), 8, uuidrep.JavaLegacy, uuidrep.Standard)
	for _, extra := range [][]string{{"--to", "standard", "--into", "copy"}, {"--to", "pythonLegacy"}} {
		dir := t.TempDir()
		args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(dir, "s")}, extra...)
		if len(extra) == 2 {
			args = append(args, "--undo-log", filepath.Join(dir, "u"))
		}
		command(t, s, args...).want(t, failure.ExitOK)
		if r := command(t, s, args...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "finished") || len(extra) == 2 && strings.Contains(r.stdout, "a new state file") {
			t.Error(r.stdout)
		}
		var report struct {
			Finished bool
			Result   struct{ DocumentsChanged, DocumentsCopied int }
		}
		r := command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK)
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || !report.Finished || report.Result.DocumentsChanged+report.Result.DocumentsCopied != 0 {
			t.Errorf("%s: %v", r.stdout, err)
		}
	}
}

// A conversion that skipped documents is reported as incomplete, however often it is run again.
func TestFinishedWithSkips(t *testing.T) {
	s := mongotest.Start(t)
	id := in(uuid.New(), uuidrep.JavaLegacy)
	insert(t, connect(t, s).Collection("c"), []any{bson.D{{Key: "_id", Value: id}, {Key: "a", Value: id}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: id}}})
	args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(t.TempDir(), "s"), "--trust", "a,_id"}
	command(t, s, args...).want(t, failure.ExitIncomplete)
	for range 2 {
		if r := command(t, s, args...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "finished") || !strings.Contains(r.stdout, "skipped 1 doc") {
			t.Error(r.stdout)
		}
	}
	var report struct {
		Finished bool
		Result   struct{ DocumentsSkipped int }
	}
	r := command(t, s, append(args, "--output", "json")...).want(t, failure.ExitIncomplete)
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || !report.Finished || report.Result.DocumentsSkipped != 1 {
		t.Errorf("%s: %v", r.stdout, err)
	}
}

// The state of one collection does not apply to another one of the same name.
func TestStateOfAnotherDeployment(t *testing.T) {
	dir := t.TempDir()
	for i, extra := range [][]string{{}, {"--into", "new"}} {
		s := mongotest.Start(t)
		db := connect(t, s)
		args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(dir, fmt.Sprint(i))}, extra...)
		seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
		command(t, s, args...).want(t, failure.ExitOK)
		for _, name := range []string{"c", "new"} {
			if err := db.Collection(name).Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
		before := all(t, db.Collection("c"))
		for range 2 { // refused every time
			if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "another collection with the same name") {
				t.Error(r.stderr)
			}
		}
		equal(t, all(t, db.Collection("c")), before)
	}
}

// Parts that begin after another one has written find its documents and continue.
func TestPartAfterAnother(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 8, uuidrep.JavaLegacy, uuidrep.Standard)
	if err := db.CreateCollection(t.Context(), "new"); err != nil { // as for a collection that is to be sharded
		t.Fatal(err)
	}
	for _, part := range []string{"2/3", "1/3", "3/3"} {
		command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "new", "--part", part, "--write").want(t, failure.ExitOK)
	}
	equal(t, all(t, db.Collection("new")), want)
}

// --into with --part may find the documents of other parts, but never writes among documents of
// another collection.
func TestPartIntoAnotherCollection(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 6, uuidrep.JavaLegacy, uuidrep.Standard)
	var docs []any
	for i := range 6 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "precious", Value: true}})
	}
	insert(t, db.Collection("another"), docs)
	before := all(t, db.Collection("another"))
	for _, part := range []string{"1/2", "2/2"} {
		r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "another", "--part", part, "--write",
			"--state", filepath.Join(t.TempDir(), "s"))
		if r.code == failure.ExitOK {
			t.Errorf("part %s: %s%s", part, r.stdout, r.stderr)
		}
		equal(t, all(t, db.Collection("another")), before)
	}
}

// Nothing is proven about a collection that does not exist.
func TestNoCollection(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 8, uuidrep.JavaLegacy, uuidrep.Standard)
	undo := filepath.Join(t.TempDir(), "undo")
	command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--undo-log", undo, "--write").want(t, failure.ExitOK)
	for _, args := range [][]string{
		{"verify", "--db", s.Database(), "--collection", "d", "--from", "javaLegacy"},
		{"verify", "--db", s.Database(), "--collection", "d", "--from", "javaLegacy", "--into", "e"},
		{"verify", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "e"},
	} {
		if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "collection "+s.Database()) {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
	if err := db.Collection("c").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	command(t, s, "verify", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--undo-log", undo).want(t, failure.ExitUsage)
	command(t, s, "undo", undo).want(t, failure.ExitUsage)
	command(t, s, "undo", undo, "--write").want(t, failure.ExitUsage)
}

// Two flags never name one file, by whatever path: the list of skipped values would be lost, or
// written into the undo log.
func TestSameFile(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 12, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, coll)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Symlink(path("b"), path("link")); err != nil {
		mongotest.Skip(t, "no symbolic links")
	}
	for _, flags := range [][]string{
		{"--state", path("a"), "--undo-log", path("a")},
		{"--state", path("a"), "--skip-list", path("a")},
		{"--state", path("a"), "--undo-log", path("a.skipped.jsonl")}, // the default of --skip-list
		{"--undo-log", path("a"), "--skip-list", dir + "/x/../a"},
		{"--state", path("b"), "--undo-log", path("link")},
		{"--retry", path("a"), "--skip-list", path("a")},
	} {
		args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write"}, flags...)
		if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "name the same file") {
			t.Errorf("%q: %s", flags, r.stderr)
		}
		equal(t, all(t, coll), before)
	}
}

// A filter is one object and nothing else, and the databases of the server are left alone.
func TestMistypedArguments(t *testing.T) {
	s := mongotest.Start(t)
	seed(t, connect(t, s).Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	for _, query := range []string{"null", "[]", "5", `{"_id": 1} x`, `{"_id": 1}, {"_id": 2}`, `{"_id": 1`, `{"_id": {"$oid": "x"}}`} {
		if r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--query", query).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "--query") {
			t.Errorf("%s: %s", query, r.stderr)
		}
	}
	for _, db := range []string{"admin", "config", "local"} {
		if r := command(t, s, "convert", "--db", db, "--collection", "c", "--from", "javaLegacy", "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "of the server") {
			t.Error(r.stderr)
		}
	}
}
