package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

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

// divided is a scene whose plan is that of several parts with the same decisions. The first part is the last one.
type divided struct {
	*scene
	parts []*scene
}

func inParts(t testing.TB, n, documents int, from, to uuidrep.Representation, changes ...func(*plan.Plan)) divided {
	t.Helper()
	c := divided{scene: newScene(t, documents, from, to, changes...)}
	first := filepath.Dir(planned(t, c.s, "--to", to.String(), "--part", fmt.Sprintf("1/%d", n)))
	changePlan(t, first, changes...)
	for i := range n - 1 {
		c.parts = append(c.parts, c.in(partLike(t, c.s, fmt.Sprintf("%d/%d", i+2, n), first)))
	}
	c.parts = append(c.parts, c.in(first))
	return c
}

// each runs each command with each part.
func (c divided) each(lines ...string) {
	c.Helper()
	for _, line := range lines {
		for _, p := range c.parts {
			p.ok(line)
		}
	}
}

type division struct {
	Collection, From, Into                                       string
	Parts, PartsDone, PartsProven                                int
	PartsMissing                                                 []string
	Documents, DocumentsRead, DocumentsChanged, DocumentsSkipped int64
}

// division returns what status --db adds up, of one division at most.
func (c divided) division() division {
	c.Helper()
	var out struct{ Divisions []division }
	decode(c, command(c, c.s, "status", "--db", c.db.Name(), "--output", "json").want(c, failure.ExitOK).stdout, &out)
	if len(out.Divisions) > 1 {
		c.Errorf("%+v", out)
	}
	return append(out.Divisions, division{})[0]
}

// Each document is in one part, and all parts together convert the collection, also in one subtype, in which the
// values that other parts have converted are another order. A dry run counts the values of its part. Each part is
// proven and undone by itself, also one that has no documents.
func TestParts(t *testing.T) {
	for _, tt := range []struct {
		from, to     uuidrep.Representation
		n, documents int
	}{{uuidrep.PythonLegacy, uuidrep.Standard, 3, 60}, {uuidrep.JavaLegacy, uuidrep.CSharpLegacy, 3, 60}, {uuidrep.JavaLegacy, uuidrep.Standard, 16, 12}} {
		c := inParts(t, tt.n, tt.documents, tt.from, tt.to)
		expected, empty := 0, 0
		for i, p := range c.parts {
			var out struct{ Steps []struct{ Values int } }
			decode(t, p.run(failure.ExitOK, "apply --output json").stdout, &out)
			expected += out.Steps[0].Values
			if out.Steps[0].Values == 0 {
				empty++
			}
			p.ok("apply --write")
			if d := c.division(); d.Parts != tt.n || d.PartsDone != i+1 || len(d.PartsMissing) != tt.n-1-i {
				t.Errorf("after %d parts: %+v", i+1, d)
			}
		}
		if expected != 3*tt.documents || (empty > 0) != (tt.n > 3) {
			t.Errorf("%d values in all dry runs; %d parts have no documents", expected, empty)
		}
		c.converted()
		c.each("apply --write", "verify")
		if d := c.division(); d.PartsProven != tt.n || d.DocumentsChanged != int64(tt.documents) || d.DocumentsRead != int64(tt.documents) || d.Documents != int64(tt.documents) {
			t.Errorf("%+v", d)
		}
		command(t, c.s, "status", "--db", c.db.Name()).want(t, failure.ExitOK).
			prints(t, fmt.Sprintf("%d of %[1]d parts done, %[1]d proven; %d of %[2]d documents read, %[2]d changed, 0 skipped", tt.n, tt.documents))
		for i, p := range c.parts {
			r := p.run(failure.ExitOK, "undo --write")
			if says := strings.Contains(r.stderr, "is restored by bsonids undo with its own directory"); tt.n == 3 && says != (i < 2) {
				t.Errorf("undo of part %d: %s", i, r.stderr)
			}
		}
		c.unchanged()
		if d := c.division(); d.Parts != 0 {
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
	for name, w := range works {
		t.Run(name, func(t *testing.T) {
			n := some(t, mongotest.Start(t), 300)
			c := inParts(t, processes, n, w.from, w.to, w.changes...)
			c.killed(t, most, "apply --write --workers 2 --batch 5 --batch-timeout 10s")
			c.converted()
			c.each("verify")
			if d := c.division(); d.PartsDone != processes || d.PartsProven != processes || d.DocumentsChanged != int64(n) {
				t.Errorf("%+v", d)
			}
			switch {
			case w.changes == nil && !testing.Short():
				c.killed(t, most, "undo --write --batch 10 --batch-timeout 1s")
				c.unchanged()
			case w.changes != nil && c.s.Has(t, mongotest.CollMod):
				c.parts[3].ok("cutover --write --retry-for 30s")
				c.parts[5].ok("release --write --retry-for 30s")
				equal(t, all(t, c.coll), c.want)
			}
		})
	}
}

// killed runs a command with each part at the same time, each in its own processes, which are killed.
func (c divided) killed(t *testing.T, most int, line string) {
	t.Helper()
	var processes sync.WaitGroup
	for _, p := range c.parts {
		processes.Go(func() {
			kills, err := untilEnd(t, c.s, most, p.args(line)...)
			if t.Logf("%s: killed %d times", p.dir, kills); err != nil {
				t.Errorf("%s: %v", p.dir, err)
			}
		})
	}
	if processes.Wait(); t.Failed() {
		t.FailNow()
	}
}

// Parts with filters convert, prove and undo the documents of their part that match each filter.
func TestPartsWithFilters(t *testing.T) {
	for _, to := range targets {
		s, db := started(t)
		coll := db.Collection("c")
		var docs []any
		want := make(map[string]bson.Raw)
		for i := range 60 {
			r, writer := uuidrep.JavaLegacy, "java"
			if i%2 == 1 {
				r, writer = uuidrep.PythonLegacy, "python"
			}
			doc := bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(cutID(i), r)}, {Key: "writer", Value: writer}}
			docs = append(docs, doc)
			note(want, bson.D{doc[0], {Key: "id", Value: in(cutID(i), to)}, doc[2]})
		}
		insert(t, coll, docs)
		before := all(t, coll)
		first := filepath.Dir(planned(t, s, "--to", to.String(), "--part", "1/2"))
		changePlan(t, first, func(p *plan.Plan) {
			other := p.Collections[0]
			p.Collections[0].Filter, other.Filter = `{"writer":"java"}`, `{"writer":"python"}`
			p.Collections = append(p.Collections, other)
		})
		command(t, s, "plan", first).want(t, failure.ExitOK)
		changePlan(t, first, func(p *plan.Plan) {
			for i := range p.Collections {
				from := "javaLegacy"
				if strings.Contains(p.Collections[i].Filter, "python") {
					from = "pythonLegacy"
				}
				p.Collections[i].Fields[0].Decision = plan.Convert(from)
			}
		})
		dirs := []string{partLike(t, s, "2/2", first), first}
		for _, dir := range dirs {
			command(t, s, "apply", dir).want(t, failure.ExitOK)
			command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
		}
		equal(t, all(t, coll), want)
		for _, dir := range dirs {
			command(t, s, "verify", dir).want(t, failure.ExitOK)
			command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
		}
		equal(t, all(t, coll), before)
	}
}

// Within one subtype, a part of another division, one of other decisions and the whole are refused after a part: they would convert
// values twice. What the plan of a part may not have is named.
func TestOtherDivisions(t *testing.T) {
	c := inParts(t, 2, 60, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	second, first := c.parts[0], c.parts[1]
	third := filepath.Dir(planned(t, c.s, "--to", "csharpLegacy", "--part", "3/3"))
	twin := partLike(t, c.s, "2/2", second.dir)
	second.ok("apply --write")
	after := all(t, c.coll)
	for _, dir := range []string{third, twin, c.dir} {
		if r := command(t, c.s, "apply", dir, "--write"); r.code == failure.ExitOK {
			t.Errorf("%s: %s%s", dir, r.stdout, r.stderr)
		}
		equal(t, all(t, c.coll), after)
	}
	fresh := func() string { return filepath.Join(t.TempDir(), "new") }
	for want, args := range map[string][]string{
		"--follow cannot be used with the plan of a part": {"apply", first.dir, "--follow", "--write"},
		"another part, or of all documents":               {"plan", first.dir, "--part", "2/2"},
		"has a plan already":                              {"plan", first.dir, "--like", second.dir},
		`the plan is about the database "` + c.db.Name():  {"plan", fresh(), "--like", second.dir, "--db", "other"},
		"must be like 2/8":                                {"plan", fresh(), "--db", c.db.Name(), "--part", "9/8"},
		"no such file":                                    {"plan", fresh(), "--like", filepath.Join(t.TempDir(), "none")},
		"if any flags in the group [like to] are set":     {"plan", fresh(), "--like", second.dir, "--to", "standard"},
	} {
		command(t, c.s, args...).want(t, failure.ExitUsage).says(t, want)
	}
	// A plan file, without the directory, is enough.
	command(t, c.s, "plan", fresh(), "--like", first.file(plan.PlanFile), "--part", "1/2").want(t, failure.ExitOK)
	// The part does not change.
	changePlan(t, second.dir, func(p *plan.Plan) { p.Part = "1/2" })
	second.run(failure.ExitUsage, "apply --write").says(t, "the part was 2/2 and is 1/2")
}

// A part that is planned when another one has converted its documents has the decisions of that one, although the values
// that are left, and those in the new order, tell something else.
func TestPartPlannedLate(t *testing.T) {
	for _, to := range targets {
		c := inParts(t, 3, 40, uuidrep.JavaLegacy, to)
		first := c.parts[2]
		first.ok("apply --write")
		c.parts[0].ok("apply --write")
		late := c.in(partLike(t, c.s, "3/3", first.dir))
		c.parts[1] = late
		late.ok("apply", "apply --write")
		c.converted()
		c.each("verify", "undo --write")
		c.unchanged()
	}
}

// A part that begins its run when another one has begun since it read the data takes over the decision of that: the
// decisions are about different numbers of documents, because a service has written meanwhile.
func TestPartsAtOnce(t *testing.T) {
	for name, changes := range ways {
		c := inParts(t, 2, 60, uuidrep.JavaLegacy, uuidrep.Standard, append(changes, convertFields("javaLegacy", ""))...)
		p := justBefore(t, c.s, beginsRun, func() {
			for i := range 60 {
				insert(t, c.coll, []any{bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "id", Value: in(v4(i), uuidrep.JavaLegacy)}}})
			}
			c.parts[1].ok(apply)
		})
		c.parts[0].through(p).ok(apply)
		runs := recorded(t, c.db)
		if len(runs) != 2 || runs[0].Part == runs[1].Part {
			t.Fatal(runs)
		}
		for _, r := range runs {
			if len(r.Decisions) != 1 || r.Decisions[0].Documents != 120 {
				t.Errorf("%s: the decisions of %s are %+v", name, r.Part, r.Decisions)
			}
		}
		c.each(apply, "verify")
	}
}
