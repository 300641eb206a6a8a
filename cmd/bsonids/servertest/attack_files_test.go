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

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// The undo and the proof of a plan need the files of each of its conversions: those of one do not
// stand for those of another.
func TestPlanWithFilesOfAnotherStep(t *testing.T) {
	s, db := started(t)
	want := make(map[string]map[string]bson.Raw)
	for _, name := range []string{"a", "b"} {
		want[name] = seed(t, db.Collection(name), 60, uuidrep.JavaLegacy, uuidrep.Standard)
	}
	file := planned(t, s)
	dir := filepath.Dir(file)
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	states, _ := filepath.Glob(filepath.Join(dir, "*.undo"))
	if len(states) != 2 {
		t.Fatal(states)
	}
	a, b := strings.TrimSuffix(states[0], ".undo"), strings.TrimSuffix(states[1], ".undo")
	check := func(t *testing.T) {
		t.Helper()
		for _, args := range [][]string{{"undo", dir, "--batch", "10"}, {"undo", dir, "--batch", "10", "--write"}, {"verify", dir}} {
			if r := command(t, s, args...); r.code == failure.ExitOK {
				t.Errorf("%q: %s%s", args[0], r.stdout, r.stderr)
			}
		}
		whole(t, db, want)
	}
	for name, kinds := range map[string][]string{"log": {".undo"}, "state": {".state"}, "both": {".undo", ".state"}} {
		t.Run(name, func(t *testing.T) {
			for _, k := range kinds {
				put(t, b+k+".away", text(t, b+k))
				put(t, b+k, text(t, a+k))
			}
			check(t)
			for _, k := range kinds {
				put(t, b+k, text(t, b+k+".away"))
			}
		})
	}
}

// A state directory that was copied before the plan was applied does not tell that there is nothing to undo.
func TestUndoPlanWithEarlierDirectory(t *testing.T) {
	s, db := started(t)
	want := map[string]map[string]bson.Raw{"a": seed(t, db.Collection("a"), 60, uuidrep.JavaLegacy, uuidrep.Standard)}
	file := planned(t, s)
	dir := filepath.Dir(file)
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
	dir = earlier
	for _, args := range [][]string{{"undo", dir}, {"undo", dir, "--write"}} {
		if r := command(t, s, args...); r.code == failure.ExitOK {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
	}
	whole(t, db, want)
}

// An undo and a proof of a collection that was renamed since, and another one has its name, is an error.
func TestReplacedCollection(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s, db := started(t)
		coll := db.Collection("c")
		seed(t, coll, 30, uuidrep.JavaLegacy, to)
		dir := prepared(t, s, to.String())
		command(t, s, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
		rename(t, db, "c", "old")
		insert(t, coll, []any{bson.D{{Key: "_id", Value: "new"}}})
		for _, args := range [][]string{{"verify", dir}, {"verify", dir, "--allow-changed"}, {"undo", dir}, {"undo", dir, "--write"}} {
			if r := command(t, s, args...); r.code == failure.ExitOK {
				t.Errorf("%v %q: %s%s", to, args, r.stdout, r.stderr)
			}
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

// After a plan was begun, a step whose state file is spoilt is not "not begun" for any command.
func TestPlanWithoutState(t *testing.T) {
	s, db := started(t)
	want := make(map[string]map[string]bson.Raw)
	for _, name := range []string{"a", "b"} {
		want[name] = seed(t, db.Collection(name), 60, uuidrep.JavaLegacy, uuidrep.Standard)
	}
	file := planned(t, s)
	dir := filepath.Dir(file)
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	states, _ := filepath.Glob(filepath.Join(dir, "?.*.state"))
	if len(states) != 2 {
		t.Fatal(states)
	}
	ways := map[string]func() error{
		"missing":  func() error { return os.Remove(states[1]) },
		"empty":    func() error { return os.WriteFile(states[1], nil, 0o600) },
		"a folder": func() error { _ = os.Remove(states[1]); return os.Mkdir(states[1], 0o700) },
		"another":  func() error { put(t, states[1], text(t, states[0])); return nil },
	}
	b := text(t, states[1])
	for _, spoil := range ways {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"status", dir}, {"apply", dir}, {"verify", dir},
			{"undo", dir}, {"undo", dir, "--write"},
		} {
			command(t, s, args...).want(t, failure.ExitFailed).says(t, states[1])
		}
		_ = os.Remove(states[1])
		put(t, states[1], b)
	}
	whole(t, db, want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}
