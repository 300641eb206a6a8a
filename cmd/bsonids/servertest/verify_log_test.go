package servertest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// An undo log that lacks what was written to it proves nothing, with one exit code however it was
// damaged, and restores nothing. A plan is not done without it either.
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
			for _, args := range [][]string{{"undo", dir, "--write"}, applying(dir)} {
				if r := command(t, s, args...); r.code != failure.ExitFailed && r.code != failure.ExitUsage || !strings.Contains(r.stderr, log) {
					t.Errorf("%q: exit code %d: %s", args, r.code, r.stderr)
				}
			}
			equal(t, all(t, coll), before)
			_ = os.Remove(log)
			if err := os.WriteFile(log, b, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// An apply that is refused leaves no file, and a directory in the place of a file is refused.
func TestRefusedLeavesNothing(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	t.Chdir(t.TempDir())
	for name, change := range map[string][]func(*plan.Plan){
		"another order": {convertFields("javaLegacy", ""), func(p *plan.Plan) { p.Collections[0].Fields[0].Decision = plan.Convert("csharpLegacy") }},
		"absent field":  {func(p *plan.Plan) { p.Collections[0].Fields[0].Path = "absent" }},
		"absent":        {func(p *plan.Plan) { p.Collections[0].Name = "absent" }},
		"filter":        {func(p *plan.Plan) { p.Collections[0].Filter = `{"_id": -1}` }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := prepared(t, s, "standard", change...)
			for range 2 {
				command(t, s, applying(dir)...).want(t, failure.ExitUsage)
			}
			left, err := filepath.Glob(filepath.Join(dir, "c*"))
			here, err2 := os.ReadDir(".")
			if err != nil || err2 != nil || len(left) > 0 || len(here) > 0 {
				t.Errorf("left %q and %v, %v, %v", left, here, err, err2)
			}
		})
	}
	for _, name := range []string{"c.javaLegacy.state", "c.javaLegacy.undo", "c.javaLegacy.skipped.jsonl"} {
		dir := prepared(t, s, "standard")
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if r := command(t, s, applying(dir)...); r.code == failure.ExitOK || !strings.Contains(r.stderr, name) {
			t.Errorf("%s: %d %s", name, r.code, r.stderr)
		}
	}
	command(t, s, applying(prepared(t, s, "standard"))...).want(t, failure.ExitOK)
}
