package servertest

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A part that no document is in is converted, proven and undone.
func TestPartWithoutDocuments(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 2, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, db.Collection("c"))
	changes := []func(*plan.Plan){convertFields("javaLegacy", ""), trusted("id", "items", "items.sku")}
	dirs := partsTo(t, s, 8, "standard", changes...)
	empty := 0
	for _, dir := range dirs {
		p, err := plan.ReadFile(dir)
		if err != nil {
			t.Fatal(err)
		}
		part, err := convert.ParsePart(p.Part)
		if err != nil {
			t.Fatal(err)
		}
		if !part.Has(marshalValue(t, int32(0))) && !part.Has(marshalValue(t, int32(1))) {
			empty++
		}
		command(t, s, "apply", dir).want(t, failure.ExitOK)
		command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
		command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	}
	if empty < 6 {
		t.Errorf("%d parts have no documents", empty)
	}
	equal(t, all(t, db.Collection("c")), want)
	for _, dir := range dirs {
		command(t, s, "verify", dir).want(t, failure.ExitOK)
	}
	for _, dir := range dirs {
		command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	}
	equal(t, all(t, db.Collection("c")), before)
}

// Parts with filters convert, prove and undo the documents of their part that match each filter.
func TestPartsWithFilters(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	coll := db.Collection("c")
	var docs []any
	for i := range 60 {
		r, writer := uuidrep.JavaLegacy, "java"
		if i%2 == 1 {
			r, writer = uuidrep.PythonLegacy, "python"
		}
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(cutID(i), r)}, {Key: "writer", Value: writer}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
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
		for _, doc := range all(t, coll) {
			i := int(doc.Lookup("_id").Int32())
			if subtype, b := doc.Lookup("id").Binary(); subtype != in(cutID(i), to).Subtype || string(b) != string(in(cutID(i), to).Data) {
				t.Errorf("to %s: %v", to, doc)
			}
		}
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
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 60, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	dirs := partsTo(t, s, 2, "csharpLegacy")
	third := filepath.Dir(planned(t, s, "--to", "csharpLegacy", "--part", "3/3"))
	twin := partLike(t, s, "2/2", dirs[0])
	whole := prepared(t, s, "csharpLegacy")
	command(t, s, "apply", dirs[0], "--write").want(t, failure.ExitOK)
	after := all(t, db.Collection("c"))
	for _, dir := range []string{third, twin, whole} {
		r := command(t, s, "apply", dir, "--write")
		if r.code == failure.ExitOK {
			t.Errorf("%s: %s%s", dir, r.stdout, r.stderr)
		}
		equal(t, all(t, db.Collection("c")), after)
	}
	for want, args := range map[string][]string{
		"--follow cannot be used with the plan of a part": {"apply", dirs[1], "--follow", "--write"},
		"another part, or of all documents":               {"plan", dirs[1], "--part", "2/2"},
		"has a plan already":                              {"plan", dirs[1], "--like", dirs[0]},
		`the plan is about the database "` + s.Database(): {"plan", filepath.Join(t.TempDir(), "new"), "--like", dirs[0], "--db", "other"},
		"must be like 2/8":                                {"plan", filepath.Join(t.TempDir(), "new"), "--db", s.Database(), "--part", "9/8"},
		"no such file":                                    {"plan", filepath.Join(t.TempDir(), "new"), "--like", filepath.Join(t.TempDir(), "none")},
		"if any flags in the group [like to] are set":     {"plan", filepath.Join(t.TempDir(), "new"), "--like", dirs[0], "--to", "standard"},
	} {
		if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
	// A plan file, without the directory, is enough.
	command(t, s, "plan", filepath.Join(t.TempDir(), "new"), "--like", filepath.Join(dirs[1], plan.PlanFile), "--part", "1/2").want(t, failure.ExitOK)
	// The part does not change.
	changePlan(t, dirs[0], func(p *plan.Plan) { p.Part = "1/2" })
	if r := command(t, s, "apply", dirs[0], "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "the part was 2/2 and is 1/2") {
		t.Error(r.stderr)
	}
}

// A part that is planned when another one has converted its documents has the decisions of that one, although the values
// that are left, and those in the new order, tell something else.
func TestPartPlannedLate(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		db := connect(t, s)
		want := seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, to)
		before := all(t, db.Collection("c"))
		first := filepath.Dir(planned(t, s, "--to", to.String(), "--part", "1/3"))
		dirs := []string{first, partLike(t, s, "2/3", first)}
		for _, dir := range dirs {
			command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
		}
		late := partLike(t, s, "3/3", first)
		command(t, s, "apply", late).want(t, failure.ExitOK)
		command(t, s, "apply", late, "--write").want(t, failure.ExitOK)
		equal(t, all(t, db.Collection("c")), want)
		for _, dir := range append(dirs, late) {
			command(t, s, "verify", dir).want(t, failure.ExitOK)
			command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
		}
		equal(t, all(t, db.Collection("c")), before)
	}
}

// A part that begins its run when another one has begun since it read the data takes over the decision of that: the
// decisions are about different numbers of documents, because a service has written meanwhile.
func TestPartsAtOnce(t *testing.T) {
	for _, copied := range []bool{false, true} {
		s := mongotest.Start(t)
		db := connect(t, s)
		fill(t, db.Collection("c"), 0, 60, uuidrep.JavaLegacy, v4)
		changes := []func(*plan.Plan){convertFields("javaLegacy", "")}
		if copied {
			changes = append(changes, intoNew("c"))
		}
		dirs := partsTo(t, s, 2, "standard", changes...)
		var between sync.Once
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if name, _ := r.command.Lookup("insert").StringValueOK(); name == "bsonids.migrations" && len(r.sequence) == 1 {
				if kind, _ := bson.Raw(r.sequence[0]).Lookup("kind").StringValueOK(); kind == "convert" {
					between.Do(func() {
						fill(t, db.Collection("c"), 60, 60, uuidrep.JavaLegacy, v4)
						command(t, s, applying(dirs[1])...).want(t, failure.ExitOK)
					})
				}
			}
			return pass()
		})
		command(t, p, applying(dirs[0])...).want(t, failure.ExitOK)
		cur, err := db.Collection("bsonids.migrations").Find(t.Context(), bson.D{{Key: "kind", Value: "convert"}})
		var runs []struct {
			Part     string
			Decision struct{ Documents int64 }
		}
		if err == nil {
			err = cur.All(t.Context(), &runs)
		}
		if err != nil || len(runs) != 2 || runs[0].Part == runs[1].Part {
			t.Fatal(runs, err)
		}
		for _, r := range runs {
			if r.Decision.Documents != 120 {
				t.Errorf("copied %v: the decision of %s is about %d documents", copied, r.Part, r.Decision.Documents)
			}
		}
		for _, dir := range dirs {
			command(t, s, applying(dir)...).want(t, failure.ExitOK)
			command(t, s, "verify", dir).want(t, failure.ExitOK)
		}
	}
}
