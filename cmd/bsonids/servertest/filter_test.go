package servertest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// batched fills a collection with documents of several batches, each of n documents, with UUIDs in one field. It
// returns the UUIDs by _id.
func batched(t *testing.T, coll *mongo.Collection, n int, batches ...uuidrep.Representation) map[int32]uuid.UUID {
	t.Helper()
	var docs []any
	ids := make(map[int32]uuid.UUID)
	for i, r := range batches {
		for range n {
			id := int32(len(docs))
			ids[id] = v4(len(docs))
			docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "batch", Value: int32(i)}, {Key: "id", Value: in(ids[id], r)}})
		}
	}
	insert(t, coll, docs)
	return ids
}

// filtered divides the only collection of a plan by the filters, brings the plan up to date, and decides: an empty
// decision is left as it is.
func filtered(t testing.TB, s *mongotest.Server, file string, filters, decisions []string) {
	t.Helper()
	changePlan(t, filepath.Dir(file), func(p *plan.Plan) {
		c := p.Collections[0]
		p.Collections = nil
		for _, c.Filter = range filters {
			p.Collections = append(p.Collections, c)
		}
	})
	command(t, s, "plan", filepath.Dir(file)).want(t, failure.ExitOK)
	i := -1
	put(t, file, regexp.MustCompile(`(?m)^        decision: .*$`).ReplaceAllStringFunc(text(t, file), func(was string) string {
		if i++; decisions[i] == "" {
			return was
		}
		return "        decision: " + decisions[i]
	}))
}

// batches is a scene whose collection has batches of documents.
type batches struct {
	*scene
	ids map[int32]uuid.UUID
}

func newBatches(t *testing.T, n int, from ...uuidrep.Representation) batches {
	t.Helper()
	s, db := started(t)
	c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
	ids := batched(t, c.coll, n, from...)
	c.plan()
	return batches{c, ids}
}

// divide divides the plan by filters, and decides about each.
func (b batches) divide(filters []string, decisions ...string) {
	b.Helper()
	filtered(b, b.s, b.file(plan.PlanFile), filters, decisions)
}

// wantIDs fails the test unless all documents have their UUIDs in the representation, but for some in another one.
func (b batches) wantIDs(r uuidrep.Representation, others map[int32]uuidrep.Representation) {
	b.Helper()
	docs := all(b, b.coll)
	for id, u := range b.ids {
		want := in(u, r)
		if other, ok := others[id]; ok {
			want = in(u, other)
		}
		if is := docs[marshalValue(b, id).String()].Lookup("id"); !is.Equal(marshalValue(b, want)) {
			b.Errorf("%d: %v, want %v", id, is, want)
		}
	}
}

// One field has values in two orders, which programs wrote to different documents. Each filter is decided by the
// documents that match it, converted, proven and undone.
func TestFilters(t *testing.T) {
	b := newBatches(t, 30, uuidrep.PythonLegacy, uuidrep.JavaLegacy)
	file := b.file(plan.PlanFile)
	b.divide([]string{`{"batch": 0}`, `{"batch": {"$gt": 0}}`}, "convert from pythonLegacy", "convert from javaLegacy")
	if strings.Contains(text(t, file), "against") { // each has the evidence of its documents only
		t.Fatal(text(t, file))
	}
	b.ok("plan") // which describes the decisions at the head
	again := text(t, file)
	b.ok("plan")
	made := regexp.MustCompile(`(made:|# It took) .*`)
	if got := text(t, file); made.ReplaceAllString(got, "") != made.ReplaceAllString(again, "") {
		t.Errorf("%s\n%s", again, got)
	}
	b.ok("apply")
	b.run(failure.ExitOK, applyBatches).prints(t, `filter {"batch":{"$numberInt":"0"}}`)
	b.wantIDs(uuidrep.Standard, nil)
	b.ok(applyBatches)
	if r := b.run(failure.ExitOK, "verify --output json"); strings.Count(r.stdout, `"filter": `) != 2 || strings.Count(r.stdout, `"documentsRead": 30`) != 2 {
		t.Error(r.stdout)
	}
	if r := b.run(failure.ExitOK, "status").prints(t, "2 of 2 conversions done"); strings.Count(r.stdout, "filter {") != 2 {
		t.Error(r.stdout)
	}
	// A filter that has converted values is frozen until it is undone.
	changeFilter := func(filter string) {
		changePlan(t, b.dir, func(p *plan.Plan) { p.Collections[0].Filter = filter })
	}
	changeFilter(`{"batch": 7}`)
	b.run(failure.ExitUsage, applyBatches).says(t, "is not in the plan any more")
	b.ok("undo --write --output json")
	b.unchanged()
	changeFilter(`{"batch": {"$lt": 1}}`)
	b.ok(applyBatches)
	b.wantIDs(uuidrep.Standard, nil)
}

// Filters overlap, and documents have moved from one to another after they were converted: each value is converted once.
func TestFiltersOverlap(t *testing.T) {
	b := newBatches(t, 40, uuidrep.PythonLegacy, uuidrep.PythonLegacy, uuidrep.PythonLegacy)
	b.divide([]string{`{"batch": {"$lte": 1}}`, `{"batch": {"$gte": 1}}`}, "", "")
	var wrote, moved atomic.Bool
	p := startProxy(t, host(t, b.s), func(r request, pass func() []byte) []byte {
		switch {
		case asks("update", "c")(r) && r.documents > 1:
			wrote.Store(true)
		case asks("find", "c")(r) && wrote.Load() && strings.Contains(r.command.String(), "$gte") && moved.CompareAndSwap(false, true):
			for id := int32(0); id < 40; id += 2 { // the second conversion begins
				set(t, b.coll, id, "batch", int32(2))
			}
		}
		return pass()
	})
	b.through(p).ok(applyBatches)
	if !moved.Load() {
		t.Fatal("no document was moved")
	}
	b.wantIDs(uuidrep.Standard, nil)
	b.ok("verify --allow-changed", "undo --write")
	b.wantIDs(uuidrep.PythonLegacy, nil)
}

// A document leaves its filter after it was read. It is not converted, and listed with the reason.
func TestFilterLeft(t *testing.T) {
	b := newBatches(t, 20, uuidrep.JavaLegacy)
	b.divide([]string{`{"batch": 0}`}, "")
	p := justBefore(t, b.s, func(r request) bool {
		return asks("update", "c")(r) && r.documents > 0 && strings.Contains(r.sequence[0].String(), "$and")
	}, func() { set(t, b.coll, int32(0), "batch", int32(1)) })
	// With two workers, the second batch may come first, and the document would be moved when it is converted.
	b.through(p).ok(applyBatches + " --workers 1")                                       // the last pass does not meet it
	b.wantIDs(uuidrep.Standard, map[int32]uuidrep.Representation{0: uuidrep.JavaLegacy}) // in the first batch, however small
}

// A filter that no document matches, and one that the server refuses, change nothing.
func TestFilterWrong(t *testing.T) {
	b := newBatches(t, 20, uuidrep.JavaLegacy)
	for filter, says := range map[string]map[string]string{
		`{"batch": 9}`:             {"apply --write": "no document matches the filter", "plan": "no document with UUIDs matches the filter: remove it"},
		`{"batch": {"$wrong": 1}}`: {"apply --write": "$wrong", "plan": "$wrong"},
	} {
		b.plan()
		edit(t, b.file(plan.PlanFile), `  - name: "c"`+"\n", `  - name: "c"`+"\n    filter: '"+filter+"'\n")
		for _, line := range []string{"apply --write", "plan"} {
			if r := command(t, b.s, b.args(line)...).says(t, says[line]); line != "plan" && r.code == failure.ExitOK {
				t.Errorf("%s: %s", filter, r.stderr)
			}
		}
		b.unchanged()
	}
}

// A filter that the server does not take is an error with its line, of bsonids plan and of a dry run.
func TestFilterWithUnknownOperator(t *testing.T) {
	s, db := started(t)
	seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy)
	dir := prepared(t, s, func(p *plan.Plan) { p.Collections[0].Filter = `{"n":{"$near8":{"$numberInt":"1"}}}` })
	line := 0
	for i, l := range strings.Split(text(t, filepath.Join(dir, plan.PlanFile)), "\n") {
		if regexp.MustCompile(`^\s*- name: "?c"?$`).MatchString(l) {
			line = i + 1
		}
	}
	want := fmt.Sprintf("line %d: ", line)
	command(t, s, "plan", dir).want(t, failure.ExitUsage).says(t, want, "$near8")
	command(t, s, "apply", dir).want(t, failure.ExitUsage).says(t, want, "$near8")
}
