package servertest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
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

// A plan is never written over another one without what was edited in it, nor among other files, and a process that was killed before it
// wrote its plan does not keep the next one from it.
func TestPlanDirectoryTaken(t *testing.T) {
	s := mongotest.Start(t)
	shop(t, connect(t, s), 20)
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, left...)
	command(t, s, "plan", dir).want(t, failure.ExitOK) // which describes the edit at the head
	edited := text(t, file)
	made := regexp.MustCompile(`(made:|# It took) .*`)
	r := command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitOK)
	if got := text(t, file); made.ReplaceAllString(got, "") != made.ReplaceAllString(edited, "") {
		t.Errorf("%s\n%s", r.stderr, got)
	}
	for _, more := range [][]string{{"--db", "other"}, {"--to", "javaLegacy"}} {
		command(t, s, append([]string{"plan", dir}, more...)...).want(t, failure.ExitUsage)
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

// A plan is brought up to date while it is applied, also after some of it was converted: what services have
// begun to write since is new, what was converted is not judged again, and the next apply converts the rest. While
// the directory is in use, the plan goes to another file.
func TestPlanAgain(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		db := connect(t, s)
		_, both := late(t, db.Collection("c"), 40, to)
		file := planned(t, s, "--to", to.String())
		dir := filepath.Dir(file)
		setDecision(t, file, "b[]", "leave")
		edit(t, file, "- path: \"b[]\"", "- path: \"b[]\" # later")
		args := []string{"apply", dir, "--batch", "10", "--write"}
		command(t, s, args...).want(t, failure.ExitOK)
		applied := text(t, file)

		// A service writes another collection, and values in c as they were.
		insert(t, db.Collection("new"), legacyDocs("x", 20))
		r := command(t, s, "plan", dir).want(t, failure.ExitOK)
		if !strings.Contains(r.stderr, `"new": the collection is new`) || strings.Contains(r.stderr, `"c"`) {
			t.Error(r.stderr)
		}
		got := text(t, file)
		if !strings.Contains(got, "- path: \"b[]\" # later") || strings.Count(got, "decision: unknown") != 1 {
			t.Error(got)
		}
		command(t, s, args...).want(t, failure.ExitUsage) // a decision is unknown
		setDecision(t, file, "x", "convert from javaLegacy")
		edit(t, file, "- path: \"b[]\" # later", "- path: \"b[]\"")
		setDecision(t, file, "b[]", "convert from javaLegacy")

		held, _, err := plan.Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		before := text(t, file)
		r = command(t, s, "plan", dir).want(t, failure.ExitOK)
		if !strings.Contains(r.stderr, plan.NewFile) || text(t, file) != before {
			t.Error(r.stderr)
		}
		if p, err := plan.Read(filepath.Join(dir, plan.NewFile)); err != nil || len(p.Collections) != 2 {
			t.Errorf("%+v, %v", p, err)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}

		command(t, s, args...).want(t, failure.ExitOK)
		equal(t, all(t, db.Collection("c")), both)
		command(t, s, "verify", dir).want(t, failure.ExitOK)
		if r = command(t, s, "plan", dir).want(t, failure.ExitOK); strings.Contains(r.stderr, "is new") || strings.Contains(r.stderr, "is gone") {
			t.Error(r.stderr)
		}
		command(t, s, args...).want(t, failure.ExitOK)
		command(t, s, "undo", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
		// What was converted is judged again after the undo, and is as it was.
		command(t, s, "plan", dir).want(t, failure.ExitOK)
		command(t, s, args...).want(t, failure.ExitOK)
		equal(t, all(t, db.Collection("c")), both)
		if edited := text(t, file); applied == edited {
			t.Error("the plan was not edited")
		}
	}
}
