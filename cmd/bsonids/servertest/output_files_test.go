package servertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// nowhere makes path lead to a file in a directory that does not exist. Its permissions would not keep
// the root user from writing.
func nowhere(t *testing.T, path string) string {
	t.Helper()
	if err := os.Symlink(filepath.Join(t.TempDir(), "absent", "file"), path); err != nil {
		t.Skip(err)
	}
	return path
}

// The files of all collections of a plan are opened before the first one is changed.
func TestPlanFilesBeforeWrites(t *testing.T) {
	for _, of := range []func(plan.Files) string{func(f plan.Files) string { return f.UndoLog }, func(f plan.Files) string { return f.SkipList }} {
		s := mongotest.Start(t)
		db := connect(t, s)
		for _, name := range []string{"a", "b", "c"} {
			seed(t, db.Collection(name), 30, uuidrep.JavaLegacy, uuidrep.Standard)
		}
		first := all(t, db.Collection("a"))
		file := planned(t, s)
		dir := filepath.Dir(file)
		p, err := plan.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		steps := p.Steps()
		path := nowhere(t, of(steps[len(steps)-1].Files(dir)))
		args := []string{"apply", dir, "--batch", "10", "--collections-at-once", "1", "--write"}
		if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, path) {
			t.Error(r.stderr)
		}
		equal(t, all(t, db.Collection("a")), first)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		command(t, s, args...).want(t, failure.ExitOK)
	}
}
