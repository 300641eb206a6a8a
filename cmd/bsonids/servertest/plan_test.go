package servertest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Only the user who made a plan can read what lies in its directory, whatever the directory was before. While it reads, plan says what,
// and in the plan it says only the time that it measured.
func TestPlanDirectoryModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	s, db := started(t)
	shop(t, db, 20)
	was := filepath.Join(t.TempDir(), "was")
	if err := os.Mkdir(was, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{was, filepath.Join(t.TempDir(), "new")} {
		file := filepath.Join(dir, plan.PlanFile)
		r := command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitOK)
		for _, name := range []string{"orders", "customers"} {
			r.says(t, s.Database()+"."+name+": reading ended documents=")
		}
		if made := text(t, file); strings.Contains(strings.ToLower(made), "estimated") || !strings.Contains(made, "# It took ") {
			t.Error(made)
		}
		if dir != was {
			edit(t, file, left...)
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
	s, db := started(t)
	shop(t, db, 20)
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, left...)
	again := []string{"plan", dir, "--db", s.Database()}
	command(t, s, "plan", dir).want(t, failure.ExitOK) // which describes the edit at the head
	edited := text(t, file)
	made := regexp.MustCompile(`(made:|# It took) .*`)
	command(t, s, again...).want(t, failure.ExitOK)
	if got := text(t, file); made.ReplaceAllString(got, "") != made.ReplaceAllString(edited, "") {
		t.Error(got)
	}
	command(t, s, "plan", dir, "--db", "other").want(t, failure.ExitUsage)
	removed(t, file)
	command(t, s, again...).want(t, failure.ExitOK)
	if err := os.Rename(file, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	command(t, s, again...).want(t, failure.ExitUsage).says(t, "is not empty")
}

// A plan is brought up to date while it is applied, also after some of it was converted: what services have
// begun to write since is new, what was converted is not judged again, and the next apply converts the rest. While
// the directory is in use, the plan goes to another file.
func TestPlanAgain(t *testing.T) {
	s, db := started(t)
	_, both := late(t, db.Collection("c"), 40)
	file := planned(t, s)
	dir := filepath.Dir(file)
	setDecision(t, file, "b[]", "leave")
	edit(t, file, "- path: \"b[]\"", "- path: \"b[]\" # later")
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	applied := text(t, file)

	// A service writes another collection, and values in c as they were.
	insert(t, db.Collection("new"), legacyDocs("x", 20))
	command(t, s, "plan", dir).want(t, failure.ExitOK).says(t, `"new": the collection is new`).lacks(t, `"c"`)
	got := text(t, file)
	if !strings.Contains(got, "- path: \"b[]\" # later") || strings.Count(got, "decision: unknown") != 1 {
		t.Error(got)
	}
	command(t, s, applying(dir)...).want(t, failure.ExitUsage) // a decision is unknown
	setDecision(t, file, "x", "convert from javaLegacy")
	setDecision(t, file, "b[]", "convert from javaLegacy")

	held, err := plan.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	before := text(t, file)
	command(t, s, "plan", dir).want(t, failure.ExitOK).says(t, plan.NewFile)
	if p := reread(t, filepath.Join(dir, plan.NewFile)); text(t, file) != before || len(p.Collections) != 2 {
		t.Errorf("%+v", p)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}

	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), both)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, "plan", dir).want(t, failure.ExitOK).lacks(t, "is new", "is gone")
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	// What was converted is judged again after the undo, and is as it was.
	command(t, s, "plan", dir).want(t, failure.ExitOK)
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), both)
	if edited := text(t, file); applied == edited {
		t.Error("the plan was not edited")
	}
}

// A plan leaves fields whose names an update cannot use, and says why. apply does not claim to
// convert them, and refuses a plan that does.
func TestPlanOfOddNames(t *testing.T) {
	s, db := started(t)
	old := func(i int) bson.Binary { return in(v4(i), uuidrep.JavaLegacy) }
	var docs []any
	for i := range 12 {
		doc := bson.D{{Key: "_id", Value: int32(i)}, {Key: "good", Value: old(i)}, {Key: "a.b", Value: old(100 + i)}, {Key: "$d", Value: old(200 + i)}, {Key: "", Value: old(300 + i)},
			{Key: "s", Value: bson.D{{Key: "x.y", Value: old(400 + i)}, {Key: "$z", Value: old(500 + i)}, {Key: "", Value: old(600 + i)}}}, {Key: "m.n", Value: old(700 + i)}}
		if i%2 == 0 {
			doc[6] = bson.E{Key: "m", Value: bson.D{{Key: "n", Value: old(700 + i)}}}
		}
		docs = append(docs, doc)
	}
	coll := db.Collection("c")
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		mongotest.Skip(t, "the server refuses field names with a dot or a dollar sign")
	}
	before := all(t, coll)
	file := planned(t, s)
	decided := ""
	for _, f := range reread(t, file).Collections[0].Fields {
		decided += fmt.Sprintf("%q: %s; ", f.Path, f.Decision)
	}
	if decided != `"$d": leave; "*": leave; "a.b": leave; "good": convert from javaLegacy; "m.n": unknown; "s.$z": leave; "s.*": leave; "s.x.y": leave; ` {
		t.Fatal(decided)
	}

	edit(t, file, "decision: unknown", "decision: convert from javaLegacy")
	dir := filepath.Dir(file)
	// The values of the field that is called "m.n" are listed.
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete).prints(t, "6 documents have values")
	for id, doc := range all(t, coll) {
		elements, err := doc.Elements()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range elements {
			same := string(e.Value().Value) == string(before[id].Lookup(e.Key()).Value)
			if converted := e.Key() == "good" || e.Key() == "m"; same == converted {
				t.Errorf("%s: %q: converted %v", id, e.Key(), !same)
			}
		}
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)

	for _, name := range []string{"a.b", "$d", "s.x.y", "s.$z"} {
		dir := prepared(t, s, convertFields("javaLegacy", name))
		command(t, s, "apply", dir, "--write").want(t, failure.ExitUsage).
			says(t, "cannot be converted: an update cannot address this path: the field name", "this command changed nothing")
	}
	equal(t, all(t, coll), before)
}

// The path a.b of a plan is also a field with the name "a.b". Its values are listed in place,
// and converted in a copy.
func TestFieldWithDot(t *testing.T) {
	s, db := started(t)
	var docs []any
	for i := range 12 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: bson.D{{Key: "b", Value: in(v4(i), uuidrep.JavaLegacy)}}}},
			bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "a.b", Value: in(v4(100+i), uuidrep.JavaLegacy)}})
	}
	fresh := db.Collection("c_standard")
	if _, err := db.Collection("c").InsertMany(t.Context(), docs); err != nil {
		mongotest.Skip(t, "the server refuses field names with a dot")
	}
	convert := convertFields("javaLegacy", "a.b")
	command(t, s, "apply", prepared(t, s, convert, intoNew("c")), "--write").want(t, failure.ExitOK)
	for id, doc := range all(t, fresh) {
		for _, value := range []bson.RawValue{doc.Lookup("a", "b"), doc.Lookup("a.b")} {
			if subtype, _, ok := value.BinaryOK(); ok && subtype != 4 {
				t.Errorf("%s has subtype %d in the copy", id, subtype)
			}
		}
	}
	drop(t, fresh)
	dir := prepared(t, s, convert)
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if list := text(t, skipList(t, dir)); strings.Count(list, "contains a dot") != 12 || strings.Count(list, "\n") != 12 {
		t.Error(list)
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete).prints(t, "a.b: not converted")
}

// The files of all collections of a plan are opened before the first one is changed.
func TestPlanFilesBeforeWrites(t *testing.T) {
	for _, name := range []string{"d.skipped.jsonl"} {
		c := newScene(t, 30, uuidrep.JavaLegacy)
		seed(t, c.db.Collection("d"), 30, uuidrep.JavaLegacy)
		c.plan()
		// The permissions of a directory would not keep the root user from writing.
		path := c.file(name)
		if err := os.Symlink(filepath.Join(t.TempDir(), "absent", "file"), path); err != nil {
			t.Skip(err)
		}
		c.run(failure.ExitUsage, "apply --batch 10 --collections-at-once 1 --write").says(t, path)
		c.unchanged()
		removed(t, path)
		c.ok("apply --batch 10 --collections-at-once 1 --write")
		c.converted()
	}
}

// Values in a database cannot control the terminal, and output that cannot be written is an error.
func TestOutput(t *testing.T) {
	s, db := started(t)
	// FerretDB refuses the control characters below U+0020.
	const name = "\u009b31m\x7f"
	insert(t, db.Collection("c"+name), []any{bson.D{{Key: "a" + name, Value: in(uuid.New(), uuidrep.JavaLegacy)}}})
	scan := []string{"scan", "--db", s.Database()}
	apply := []string{"apply", prepared(t, s, convertFields("javaLegacy"), trusted("a"+name))}
	for _, args := range [][]string{scan, append(scan, "-o", "html"), append(scan, "-o", "json"), apply, append(apply, "-o", "json")} {
		want := "\uFFFD31m\uFFFD"
		if args[len(args)-1] == "json" {
			want = `\u009b31m\u007f"` // a program reads it unchanged
		}
		r := command(t, s, args...).want(t, failure.ExitOK).prints(t, want)
		if i := strings.IndexFunc(r.stdout+r.stderr, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }); i >= 0 {
			t.Errorf("%q: %q", args, r.stdout[max(0, i-20):i+1])
		}
		var errs bytes.Buffer
		if code := cli.Run(t.Context(), append(args, "--uri", s.URI()), fullDisk{}, &errs); code != failure.ExitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q on a full disk: exit code %d, %s", args, code, &errs)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
