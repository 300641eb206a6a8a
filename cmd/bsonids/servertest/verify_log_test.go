package servertest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// An undo log that lacks what was written to it proves nothing, with one exit code however it was
// damaged, and restores nothing.
func TestSpoiltLog(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 12, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := filepath.Dir(planned(t, s))
	log := filepath.Join(dir, "c.javaLegacy.undo")
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	before := all(t, coll)
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for how, spoil := range spoilt {
		t.Run(how, func(t *testing.T) {
			if err := spoil(log, bytes.Clone(b)); err != nil {
				t.Fatal(err)
			}
			r := command(t, s, "verify", dir).want(t, failure.ExitFailed)
			if !strings.Contains(r.stderr, log) {
				t.Error(r.stderr)
			}
			if r := command(t, s, "undo", dir, "--write"); r.code != failure.ExitFailed && r.code != failure.ExitUsage || !strings.Contains(r.stderr, log) {
				t.Errorf("exit code %d: %s", r.code, r.stderr)
			}
			equal(t, all(t, coll), before)
			_ = os.Remove(log)
			if err := os.WriteFile(log, b, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A conversion that is refused leaves no file, and a name that is a directory is refused.
func TestRefusedLeavesNothing(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := t.TempDir()
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)
	for _, args := range [][]string{
		{"--collection", "c", "--from", "csharpLegacy", "--undo-log", "undo"},
		{"--collection", "c", "--from", "javaLegacy", "--undo-log", "undo", "--trust", "absent"},
		{"--collection", "c", "--from", "javaLegacy", "--state", "state", "--undo-log", "undo", "--query", `{"_id": -1}`},
		{"--collection", "absent", "--from", "javaLegacy", "--undo-log", "undo"},
		{"--collection", "c", "--from", "javaLegacy", "--undo-log", "."},
		{"--collection", "c", "--from", "javaLegacy", "--undo-log", inner},
		{"--collection", "c", "--from", "javaLegacy", "--undo-log", "undo", "--skip-list", "."},
	} {
		command(t, s, append([]string{"convert", "--db", s.Database(), "--write"}, args...)...).want(t, failure.ExitUsage)
		for of, want := range map[string]int{dir: 1, inner: 0} {
			if left, err := os.ReadDir(of); err != nil || len(left) != want {
				t.Errorf("%v left %v, %v", args, left, err)
			}
		}
	}
	command(t, s, "convert", "--db", s.Database(), "--write", "--collection", "c", "--from", "javaLegacy", "--undo-log", "undo").want(t, failure.ExitOK)
}
