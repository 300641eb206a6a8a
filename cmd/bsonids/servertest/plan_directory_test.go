package servertest

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// Only the user who made a plan can read what lies in its directory, whatever the directory was before.
func TestPlanDirectoryModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	s := mongotest.Start(t)
	shop(t, connect(t, s), 20)
	was := filepath.Join(t.TempDir(), "was")
	if err := os.Mkdir(was, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{was, filepath.Join(t.TempDir(), "new")} {
		command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitOK)
		if dir != was {
			edit(t, filepath.Join(dir, "plan.yaml"), left...)
			command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
		}
		seen := 0
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = fs.ModeDir | 0o700
			}
			if err == nil && info.Mode() != want {
				t.Errorf("%s: %s", path, info.Mode())
			}
			seen++
			return err
		})
		if err != nil || seen < 3 {
			t.Errorf("%d files, %v", seen, err)
		}
	}
}

// A plan is never written over another one, nor among other files, and a process that was killed before it
// wrote its plan does not keep the next one from it.
func TestPlanDirectoryTaken(t *testing.T) {
	s := mongotest.Start(t)
	shop(t, connect(t, s), 20)
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, left...)
	edited := text(t, file)
	r := command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitUsage)
	if !strings.Contains(r.stderr, "has a plan already") || text(t, file) != edited {
		t.Error(r.stderr)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitOK)
	if err := os.Rename(file, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	r = command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitUsage)
	if !strings.Contains(r.stderr, "is not empty") {
		t.Error(r.stderr)
	}
}
