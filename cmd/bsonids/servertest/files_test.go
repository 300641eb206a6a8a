package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// A file of something else, with the name of an undo log, is never used and never damaged. apply goes on without it.
func TestOtherFiles(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
	want := seed(t, coll, 10, uuidrep.JavaLegacy)
	before := all(t, coll)
	dir := filepath.Dir(planned(t, s))
	for _, content := range []string{"text", "line\n", "line\nthat doesn't end", "\n", "{"} {
		path := filepath.Join(dir, "c.undo")
		put(t, path, content)
		command(t, s, "apply", dir, "--write").want(t, failure.ExitOK).says(t, path)
		equal(t, all(t, coll), want)
		command(t, s, "undo", dir, "--write").want(t, failure.ExitFailed).says(t, path)
		command(t, s, "undo", dir, "--write", "--without-lost-logs").want(t, failure.ExitOK).says(t, path)
		if got := text(t, path); got != content {
			t.Errorf("%q became %q", content, got)
		}
		equal(t, all(t, coll), before)
	}
}

// A collection that is not the one that was converted, whatever its name, is not proven, restored or converted: it
// was dropped, it was renamed and another one has its name, or another one was created.
func TestReplacedCollection(t *testing.T) {
	rest := [][]string{{"verify"}, {"verify", "--allow-changed"}, {"undo"}, {"undo", "--write"}}
	for name, tt := range map[string]struct {
		replace  func(*mongo.Database)
		commands [][]string
		code     int
		says     string
	}{
		"dropped": {func(db *mongo.Database) { drop(t, db.Collection("c")) }, rest, failure.ExitUsage, ".c does not exist"},
		"renamed": {func(db *mongo.Database) {
			rename(t, db, "c", "old")
			insert(t, db.Collection("c"), []any{bson.D{{Key: "_id", Value: "new"}}})
		}, rest, failure.ExitFailed, ".c is another collection than the one that was converted"},
		"created again": {func(db *mongo.Database) {
			drop(t, db.Collection("c"))
			drop(t, db.Collection("c_standard"))
			seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy)
		}, [][]string{{"apply", "--write"}, {"apply", "--write"}}, failure.ExitUsage, "is another collection of this name"},
	} {
		for way, changes := range map[string][]func(*plan.Plan){"in place": nil, "copied": {intoNew("c")}} {
			if way == "copied" && name != "created again" {
				continue // there is nothing to restore in it
			}
			t.Run(name+" "+way, func(t *testing.T) {
				s, db := started(t)
				seed(t, db.Collection("c"), 30, uuidrep.JavaLegacy)
				dir := prepared(t, s, changes...)
				command(t, s, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
				tt.replace(db)
				before := all(t, db.Collection("c"))
				for _, args := range tt.commands {
					command(t, s, append([]string{args[0], dir}, args[1:]...)...).want(t, tt.code).says(t, tt.says)
				}
				equal(t, all(t, db.Collection("c")), before)
			})
		}
	}
}

// A collection that is renamed while an undo or a proof reads it is an error by name.
func TestRenamedDuring(t *testing.T) {
	for name, tt := range map[string]struct {
		verb    string
		flags   []string
		changes []func(*plan.Plan)
	}{
		"undo":             {"undo", []string{"--write", "--batch", "10"}, nil},
		"undo, dry":        {"undo", []string{"--batch", "10"}, nil},
		"undo, accepted":   {"undo", []string{"--batch", "10", "--write", "--allow-changed"}, nil},
		"verify":           {"verify", []string{"--allow-changed"}, nil},
		"verify of a copy": {"verify", nil, []func(*plan.Plan){intoNew("c")}},
	} {
		for _, replaced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, replaced %v", name, replaced), func(t *testing.T) {
				s, db := started(t)
				seed(t, db.Collection("c"), 30, uuidrep.JavaLegacy)
				dir := prepared(t, s, tt.changes...)
				command(t, s, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
				p := justBefore(t, s, func(r request) bool {
					id, err := r.command.LookupErr("filter", "_id") // text, if it asks whether c is a record under another name
					return asks("find", "c")(r) && (err != nil || id.Type != bson.TypeString)
				}, func() {
					rename(t, db, "c", "old")
					if replaced {
						check(t, db.CreateCollection(t.Context(), "c"))
					}
				})
				if r := command(t, p, append([]string{tt.verb, dir}, tt.flags...)...); r.code != failure.ExitFailed || !strings.Contains(r.stderr, s.Database()+".c") {
					t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
				}
			})
		}
	}
}
