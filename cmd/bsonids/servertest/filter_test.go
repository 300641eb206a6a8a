package servertest

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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

// has compares the values of a document with that of the representation.
func has(t *testing.T, coll *mongo.Collection, id int32, want bson.Binary) {
	t.Helper()
	var doc struct{ ID bson.Binary }
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil || !doc.ID.Equal(want) {
		t.Errorf("%d: %v, %v, want %v", id, doc.ID, err, want)
	}
}

// filtered divides the only collection of a plan by the filters, brings the plan up to date, and decides: an empty
// decision is left as it is.
func filtered(t *testing.T, s *mongotest.Server, file string, filters, decisions []string) {
	t.Helper()
	b := text(t, file)
	begin, end := strings.Index(b, "  - name: "), strings.Index(b, "\n# Collections that have")
	entry, parts := b[begin:end], ""
	for _, f := range filters {
		parts += strings.Replace(entry, "\n", "\n    filter: '"+f+"'\n", 1) + "\n"
	}
	put(t, file, b[:begin]+parts+b[end:])
	command(t, s, "plan", filepath.Dir(file)).want(t, failure.ExitOK)
	decideFilters(t, file, decisions...)
}

// decideFilters sets the decision of each entry of a plan, in their order.
func decideFilters(t *testing.T, file string, decisions ...string) {
	t.Helper()
	i := -1
	b := regexp.MustCompile(`(?m)^        decision: .*$`).ReplaceAllStringFunc(text(t, file), func(was string) string {
		if i++; decisions[i] == "" {
			return was
		}
		return "        decision: " + decisions[i]
	})
	put(t, file, b)
}

// One field has values in two orders, which programs wrote to different documents. Each filter is decided by the
// documents that match it, converted, proven and undone.
func TestFilters(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		c := connect(t, s).Collection("c")
		from := []uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.JavaLegacy}
		ids := batched(t, c, 30, from...)
		before := all(t, c)
		target := map[uuidrep.Representation]string{uuidrep.Standard: "standard", uuidrep.CSharpLegacy: "csharpLegacy"}[to]
		file := planned(t, s, "--to", target)
		dir := filepath.Dir(file)
		filters := []string{`{"batch": 0}`, `{"batch": {"$gt": 0}}`}
		filtered(t, s, file, filters, []string{"convert from pythonLegacy", "convert from javaLegacy"})
		if strings.Contains(text(t, file), "against") { // each has the evidence of its documents only
			t.Fatal(text(t, file))
		}
		command(t, s, "plan", dir).want(t, failure.ExitOK) // which describes the decisions at the head
		again := text(t, file)
		command(t, s, "plan", dir).want(t, failure.ExitOK)
		made := regexp.MustCompile(`(made:|# It took) .*`)
		if got := text(t, file); made.ReplaceAllString(got, "") != made.ReplaceAllString(again, "") {
			t.Errorf("%s\n%s", again, got)
		}
		args := append([]string{"apply", dir, "--write"}, gentle...)
		command(t, s, "apply", dir).want(t, failure.ExitOK)
		command(t, s, args...).want(t, failure.ExitOK).prints(t, `filter {"batch":{"$numberInt":"0"}}`)
		for id, u := range ids {
			has(t, c, id, in(u, to))
		}
		command(t, s, args...).want(t, failure.ExitOK)
		r := command(t, s, "verify", dir, "--output", "json").want(t, failure.ExitOK)
		if strings.Count(r.stdout, `"filter": `) != 2 || strings.Count(r.stdout, `"documentsRead": 30`) != 2 {
			t.Error(r.stdout)
		}
		if r := command(t, s, "status", dir).want(t, failure.ExitOK); strings.Count(r.stdout, "filter {") != 2 || !strings.Contains(r.stdout, "2 of 2 conversions done") {
			t.Error(r.stdout)
		}
		// A filter that has converted values is frozen until it is undone.
		edit(t, file, filters[0], `{"batch": 7}`)
		command(t, s, args...).want(t, failure.ExitUsage).says(t, "was removed")
		command(t, s, "undo", dir, "--write", "--output", "json").want(t, failure.ExitOK)
		equal(t, all(t, c), before)
		edit(t, file, `{"batch": 7}`, `{"batch": {"$lt": 1}}`)
		command(t, s, args...).want(t, failure.ExitOK)
		for id, u := range ids {
			has(t, c, id, in(u, to))
		}
	}
}

// twice returns a UUID that has the version of RFC 9562 in the network order, and also if it is converted to
// csharpLegacy and read in network order again.
func twice(i int) uuid.UUID {
	u := v4(i)
	u[7] = u[7]&0x0f | 0x40
	return u
}

// Filters overlap, and documents have moved from one to another after they were converted: no value is converted
// twice, although the new values look like old ones.
func TestFiltersOverlap(t *testing.T) {
	s := mongotest.Start(t)
	c := connect(t, s).Collection("c")
	ids := batched(t, c, 40, uuidrep.PythonLegacy, uuidrep.PythonLegacy, uuidrep.PythonLegacy)
	set := func(id int32, e bson.D) {
		if _, err := c.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: e}}); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []int32{0, 2, 40, 80} {
		ids[id] = twice(int(id))
		set(id, bson.D{{Key: "id", Value: in(ids[id], uuidrep.PythonLegacy)}})
	}
	file := planned(t, s, "--to", "csharpLegacy")
	dir := filepath.Dir(file)
	filtered(t, s, file, []string{`{"batch": {"$lte": 1}}`, `{"batch": {"$gte": 1}}`}, []string{"", ""})
	var wrote, moved atomic.Bool
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch of, _ := r.command.Lookup(r.name()).StringValueOK(); {
		case of == "c" && r.name() == "update" && r.documents > 1:
			wrote.Store(true)
		case of == "c" && r.name() == "find" && wrote.Load() && strings.Contains(r.command.String(), "$gte") && moved.CompareAndSwap(false, true):
			for id := int32(0); id < 40; id += 2 { // the second conversion begins
				set(id, bson.D{{Key: "batch", Value: int32(2)}})
			}
		}
		return pass()
	})
	command(t, p, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	if !moved.Load() {
		t.Fatal("no document was moved")
	}
	for id, u := range ids {
		has(t, c, id, in(u, uuidrep.CSharpLegacy))
	}
	command(t, s, "verify", dir, "--allow-changed").want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	for id, u := range ids {
		has(t, c, id, in(u, uuidrep.PythonLegacy))
	}
}

// Documents that match no filter are told of whenever the plan is made, applied and proven.
func TestFilterLeavesOut(t *testing.T) {
	s := mongotest.Start(t)
	c := connect(t, s).Collection("c")
	batched(t, c, 40, uuidrep.PythonLegacy, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	file := planned(t, s)
	filtered(t, s, file, []string{`{"batch": 0}`, `{"batch": 1}`}, []string{"convert from pythonLegacy", "convert from javaLegacy"})
	for _, args := range [][]string{{"plan"}, {"apply"}, {"apply", "--write"}, {"verify"}} {
		command(t, s, append([]string{args[0], filepath.Dir(file)}, args[1:]...)...).want(t, failure.ExitOK).says(t, "c: 40 documents match no filter of the plan")
	}
}

// Old values that equal new ones of another filter, in other documents, are left and listed.
func TestFilterMade(t *testing.T) {
	s := mongotest.Start(t)
	c := connect(t, s).Collection("c")
	ids := batched(t, c, 40, uuidrep.JavaLegacy, uuidrep.JavaLegacy)
	for id := range int32(40) {
		ids[id] = uuid.UUID{15: byte(id + 1)} // of no version in any order
		for old, r := range map[int32]uuidrep.Representation{id: uuidrep.JavaLegacy, id + 40: uuidrep.CSharpLegacy} {
			set(t, c, old, "id", in(ids[id], r))
		}
	}
	file := planned(t, s, "--to", "csharpLegacy")
	dir := filepath.Dir(file)
	const trusted = "convert from javaLegacy\n        trust: true"
	filtered(t, s, file, []string{`{"batch": 0}`, `{"batch": 1}`}, []string{trusted, trusted})
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	for id := range int32(40) {
		has(t, c, id, in(ids[id], uuidrep.CSharpLegacy))
		has(t, c, id+40, in(ids[id], uuidrep.CSharpLegacy))
	}
	lists, err := filepath.Glob(filepath.Join(dir, "*.skipped.jsonl"))
	if err != nil || len(lists) != 1 || strings.Count(text(t, lists[0]), "may be converted already") != 40 {
		t.Errorf("%q, %v", lists, err)
	}
}

// A document leaves its filter after it was read. It is not converted, and listed with the reason.
func TestFilterLeft(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		c := connect(t, s).Collection("c")
		ids := batched(t, c, 20, uuidrep.JavaLegacy)
		target := map[uuidrep.Representation]string{uuidrep.Standard: "standard", uuidrep.CSharpLegacy: "csharpLegacy"}[to]
		file := planned(t, s, "--to", target)
		filtered(t, s, file, []string{`{"batch": 0}`}, []string{""})
		var moved atomic.Bool
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if of, _ := r.command.Lookup("update").StringValueOK(); of == "c" && r.documents > 0 && strings.Contains(r.sequence[0].String(), "$and") && moved.CompareAndSwap(false, true) {
				set(t, c, int32(0), "batch", int32(1))
			}
			return pass()
		})
		// With two workers, the second batch may come first, and the document would be moved when it is converted.
		r := command(t, p, applying(filepath.Dir(file), "--workers", "1")...).want(t, failure.ExitIncomplete)
		lists, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.skipped.jsonl"))
		if err != nil || len(lists) != 1 || !moved.Load() {
			t.Fatal(lists, err, r.stdout)
		}
		if list := text(t, lists[0]); strings.Count(list, "does not match the filter any more") != 1 || !strings.Contains(list, `{"$numberInt":"0"}`) {
			t.Error(list)
		}
		for id, u := range ids {
			want := in(u, to)
			if id == 0 { // in the first batch, however small
				want = in(u, uuidrep.JavaLegacy)
			}
			has(t, c, id, want)
		}
	}
}

// A filter that no document matches, and one that the server refuses, change nothing.
func TestFilterWrong(t *testing.T) {
	s := mongotest.Start(t)
	c := connect(t, s).Collection("c")
	batched(t, c, 20, uuidrep.JavaLegacy)
	before := all(t, c)
	for filter, want := range map[string][2]string{`{"batch": 9}`: {"has no values any more", "no document with UUIDs matches the filter: remove it"}, `{"batch": {"$wrong": 1}}`: {"$wrong", "$wrong"}} {
		file := planned(t, s)
		edit(t, file, `  - name: "c"`+"\n", `  - name: "c"`+"\n    filter: '"+filter+"'\n")
		if r := command(t, s, "apply", filepath.Dir(file), "--write"); r.code == failure.ExitOK || !strings.Contains(r.stderr, want[0]) {
			t.Errorf("%s: %d %s", filter, r.code, r.stderr)
		}
		command(t, s, "plan", filepath.Dir(file)).says(t, want[1])
		equal(t, all(t, c), before)
	}
}

// The guard of a collection is for all of its filters.
func TestFilterGuard(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.CollMod, mongotest.BinaryOrder)
	c := connect(t, s).Collection("c")
	ids := batched(t, c, 20, uuidrep.PythonLegacy, uuidrep.JavaLegacy)
	before := all(t, c)
	file := planned(t, s)
	dir := filepath.Dir(file)
	filtered(t, s, file, []string{`{"batch": 0}`, `{"batch": 1}`}, []string{"convert from pythonLegacy", "convert from javaLegacy"})
	b := text(t, file)
	put(t, file, strings.Replace(b, "guard: none", "guard: strict", 1))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitUsage).says(t, "a collection has one validator")
	put(t, file, strings.ReplaceAll(b, "guard: none", "guard: strict"))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	for id, u := range ids {
		has(t, c, id, in(u, uuidrep.Standard))
	}
	for _, batch := range []int32{0, 1, 2} {
		if _, err := c.InsertOne(t.Context(), bson.D{{Key: "batch", Value: batch}, {Key: "id", Value: in(v4(1), uuidrep.JavaLegacy)}}); err == nil {
			t.Errorf("batch %d: an old value was not refused", batch)
		}
	}
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, c), before)
}
