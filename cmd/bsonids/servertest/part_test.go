package servertest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// onePart makes the plan of a part, to standard, and changes it as a person would. It returns the directory.
func onePart(t testing.TB, s *mongotest.Server, part string, changes ...func(*plan.Plan)) (dir string) {
	t.Helper()
	dir = filepath.Dir(planned(t, s, "--part", part))
	changePlan(t, dir, changes...)
	return dir
}

// partLike makes the plan of another part with the decisions of a plan.
func partLike(t testing.TB, s *mongotest.Server, part, like string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "part.d")
	command(t, s, "plan", dir, "--like", like, "--part", part).want(t, failure.ExitOK)
	return dir
}

// partsTo makes the plans of n parts with the same decisions.
func partsTo(t testing.TB, s *mongotest.Server, n int, to string, changes ...func(*plan.Plan)) (dirs []string) {
	t.Helper()
	first := filepath.Dir(planned(t, s, "--to", to, "--part", fmt.Sprintf("1/%d", n)))
	changePlan(t, first, changes...)
	for i := range n - 1 {
		dirs = append(dirs, partLike(t, s, fmt.Sprintf("%d/%d", i+2, n), first))
	}
	return append(dirs, first)
}

type division struct {
	Collection, From, Into                                       string
	Parts, PartsDone, PartsProven                                int
	PartsMissing                                                 []string
	Documents, DocumentsRead, DocumentsChanged, DocumentsSkipped int64
}

// divisionsOf returns what status --db adds up.
func divisionsOf(t *testing.T, s target, db string) []division {
	t.Helper()
	r := command(t, s, "status", "--db", db, "--output", "json").want(t, failure.ExitOK)
	var out struct{ Divisions []division }
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatal(err)
	}
	return out.Divisions
}

// Each document is in one part, and all parts together convert the collection, also in one subtype, in which the
// values that other parts have converted are another order. A dry run counts the values of its part. Each part is
// proven and undone by itself.
func TestParts(t *testing.T) {
	for _, tt := range []struct{ from, to uuidrep.Representation }{
		{uuidrep.PythonLegacy, uuidrep.Standard}, {uuidrep.JavaLegacy, uuidrep.CSharpLegacy},
	} {
		s := mongotest.Start(t)
		db := connect(t, s)
		want := seed(t, db.Collection("c"), 60, tt.from, tt.to)
		before := all(t, db.Collection("c"))
		dirs := partsTo(t, s, 3, tt.to.String())
		expected := 0
		for i, dir := range dirs {
			var out struct{ Steps []struct{ Values int } }
			r := command(t, s, "apply", dir, "--output", "json").want(t, failure.ExitOK)
			if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || len(out.Steps) != 1 {
				t.Fatalf("%v: %s", err, r.stdout)
			}
			expected += out.Steps[0].Values
			command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
			d := divisionsOf(t, s, s.Database())
			if len(d) != 1 || d[0].Parts != 3 || d[0].PartsDone != i+1 || len(d[0].PartsMissing) != 2-i {
				t.Errorf("after %d parts: %+v", i+1, d)
			}
		}
		if expected != 3*60 {
			t.Errorf("%d values in all dry runs, want 180", expected)
		}
		equal(t, all(t, db.Collection("c")), want)
		for _, dir := range dirs {
			command(t, s, "verify", dir).want(t, failure.ExitOK)
		}
		d := divisionsOf(t, s, s.Database())[0]
		if d.PartsProven != 3 || d.DocumentsChanged != 60 || d.DocumentsRead != 60 || d.Documents != 60 {
			t.Errorf("%+v", d)
		}
		if r := command(t, s, "status", "--db", s.Database()).want(t, failure.ExitOK); !strings.Contains(r.stdout, "3 of 3 parts done, 3 proven; 60 of 60 documents read, 60 changed, 0 skipped") {
			t.Error(r.stdout)
		}
		for i, dir := range dirs {
			r := command(t, s, "undo", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
			if says := strings.Contains(r.stderr, "is restored by bsonids undo with its own directory"); says != (i < 2) {
				t.Errorf("undo of part %d: %s", i, r.stderr)
			}
		}
		equal(t, all(t, db.Collection("c")), before)
		if d := divisionsOf(t, s, s.Database()); len(d) != 0 {
			t.Errorf("after the undo: %+v", d)
		}
	}
}

// Eight processes convert one collection at the same time, one part each, and are killed at random, in place and
// into a copy.
func TestKillParts(t *testing.T) {
	const processes = 8
	most := 30 // kills of each
	if testing.Short() {
		most = 4
	}
	for _, tt := range []struct {
		name     string
		from, to uuidrep.Representation
		into     bool
	}{
		{"to standard", uuidrep.JavaLegacy, uuidrep.Standard, false},
		{"same subtype", uuidrep.JavaLegacy, uuidrep.CSharpLegacy, false},
		{"into a new collection", uuidrep.CSharpLegacy, uuidrep.Standard, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			n := some(t, s, 300)
			want := seed(t, db.Collection("c"), n, tt.from, tt.to)
			before := all(t, db.Collection("c"))
			target, changes := "c", []func(*plan.Plan){}
			if tt.into {
				target, changes = "c_standard", append(changes, intoNew("c"))
			}
			dirs := partsTo(t, s, processes, tt.to.String(), changes...)
			atOnce(t, dirs, func(dir string) (int, error) {
				return untilEnd(t, s, most, "apply", dir, "--write", "--workers", "2", "--batch", "5", "--batch-timeout", "10s")
			})
			equal(t, all(t, db.Collection(target)), want)
			for _, dir := range dirs {
				command(t, s, "verify", dir).want(t, failure.ExitOK)
			}
			if d := divisionsOf(t, s, s.Database()); len(d) != 1 || d[0].PartsDone != processes || d[0].PartsProven != processes || d[0].DocumentsChanged != int64(n) {
				t.Errorf("%+v", d)
			}
			if !tt.into {
				if testing.Short() {
					return
				}
				atOnce(t, dirs, func(dir string) (int, error) {
					return untilEnd(t, s, most, "undo", dir, "--write", "--batch", "10", "--batch-timeout", "1s")
				})
				equal(t, all(t, db.Collection("c")), before)
				return
			}
			if !s.Has(t, mongotest.CollMod) {
				return
			}
			command(t, s, "cutover", dirs[3], "--write", "--retry-for", "30s").want(t, failure.ExitOK)
			command(t, s, "release", dirs[5], "--write", "--retry-for", "30s").want(t, failure.ExitOK)
			equal(t, all(t, db.Collection("c")), want)
		})
	}
}

// atOnce calls f for each directory at the same time. f returns how often it has killed a process.
func atOnce(t *testing.T, dirs []string, f func(dir string) (kills int, err error)) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	killed := 0
	for _, dir := range dirs {
		all.Go(func() {
			n, err := f(dir)
			mu.Lock()
			defer mu.Unlock()
			if killed += n; err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d processes, killed %d times", len(dirs), killed)
	if t.Failed() {
		t.FailNow()
	}
}
