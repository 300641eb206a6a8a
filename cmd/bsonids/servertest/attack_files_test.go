package servertest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// After a plan was begun, each command needs the files of each of its conversions. One whose files are spoilt, or are
// those of another one, is not "not begun".
func TestPlanWithSpoiltFiles(t *testing.T) {
	s, db := started(t)
	want := seeded(t, db, 60, "a", "b")
	dir := filepath.Dir(planned(t, s))
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	state, log := filepath.Join(dir, "b.state"), filepath.Join(dir, "b.undo")
	stateText, logText := text(t, state), text(t, log)
	another := func(path string) { put(t, path, text(t, filepath.Join(dir, "a"+filepath.Ext(path)))) }
	for name, tt := range map[string]struct {
		spoil func()
		path  string // what the commands name
	}{
		"no state":         {func() { _ = os.Remove(state) }, state},
		"empty state":      {func() { put(t, state, "") }, state},
		"folder":           {func() { _ = os.Remove(state); _ = os.Mkdir(state, 0o700) }, state},
		"state of another": {func() { another(state) }, state},
		"log of another":   {func() { another(log) }, log},
		"both of another":  {func() { another(log); another(state) }, state},
	} {
		t.Run(name, func(t *testing.T) {
			tt.spoil()
			commands := [][]string{{"undo", dir}, {"undo", dir, "--write"}, {"verify", dir}, {"apply", dir}, {"status", dir}}
			if tt.path == log { // which the last two do not read
				command(t, s, commands[2]...).want(t, failure.ExitUsage).says(t, tt.path)
				commands = commands[:2]
			}
			for _, args := range commands {
				command(t, s, args...).want(t, failure.ExitFailed).says(t, tt.path)
			}
			whole(t, db, want)
			_ = os.Remove(state)
			put(t, state, stateText)
			put(t, log, logText)
		})
	}
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}

// A state directory that was copied before the plan was applied does not tell that there is nothing to undo.
func TestUndoPlanWithEarlierDirectory(t *testing.T) {
	s, db := started(t)
	want := seeded(t, db, 60, "a")
	dir := filepath.Dir(planned(t, s))
	// A command that cannot read the collections leaves a directory with which nothing was decided.
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "find" {
			return nil
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write")
	if st, err := plan.ReadState(dir); !errors.Is(err, plan.ErrNoState) {
		t.Fatalf("%+v, %v", st, err)
	}
	earlier := filepath.Join(t.TempDir(), "earlier")
	if err := os.CopyFS(earlier, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	for _, write := range [][]string{nil, {"--write"}} {
		if r := command(t, s, append([]string{"undo", earlier}, write...)...); r.code == failure.ExitOK {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
	}
	whole(t, db, want)
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
			seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
		}, [][]string{{"apply", "--write"}, {"apply", "--write"}}, failure.ExitUsage, "another collection with the same name"},
	} {
		for way, changes := range map[string][]func(*plan.Plan){"standard": nil, "csharpLegacy": nil, "copied": {intoNew("c")}} {
			if way == "copied" && name != "created again" {
				continue // there is nothing to restore in it
			}
			t.Run(name+" "+way, func(t *testing.T) {
				s, db := started(t)
				seed(t, db.Collection("c"), 30, uuidrep.JavaLegacy, uuidrep.Standard)
				dir := prepared(t, s, strings.Replace(way, "copied", "standard", 1), changes...)
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
				seed(t, db.Collection("c"), 30, uuidrep.JavaLegacy, uuidrep.Standard)
				dir := prepared(t, s, "standard", tt.changes...)
				command(t, s, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
				var once sync.Once
				p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
					if coll, _ := r.command.Lookup("find").StringValueOK(); coll == "c" && !isProbe(r) {
						once.Do(func() {
							rename(t, db, "c", "old")
							if replaced {
								if err := db.CreateCollection(t.Context(), "c"); err != nil {
									t.Error(err)
								}
							}
						})
					}
					return pass()
				})
				if r := command(t, p, append([]string{tt.verb, dir}, tt.flags...)...); r.code != failure.ExitFailed || !strings.Contains(r.stderr, s.Database()+".c") {
					t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
				}
			})
		}
	}
}

// isProbe reports whether a request asks whether a collection is a record under another name.
func isProbe(r request) bool {
	id, err := r.command.LookupErr("filter", "_id")
	return err == nil && id.Type == bson.TypeString
}
