package servertest

import (
	"crypto/md5"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// reread returns the plan in a file.
func reread(t *testing.T, file string) *plan.Plan {
	t.Helper()
	p, err := plan.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns the names of the collections of a plan.
func names(p *plan.Plan) string {
	var out []string
	for _, c := range p.Collections {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// A plan of one collection names the others that have its values, and converts nothing before these are added or
// accepted.
func TestPlanOfSome(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 20)
	before, sessions := all(t, db.Collection("customers")), all(t, db.Collection("sessions"))
	// Visits are in the representation that orders are converted to, and are the only evidence for the order of sums.
	var visits, sums []any
	for i := range 10 {
		var of bson.D
		if err := db.Collection("orders").FindOne(t.Context(), bson.D{{Key: "_id", Value: int32(i)}}).Decode(&of); err != nil {
			t.Fatal(err)
		}
		u, err := uuidrep.AsWithRepresentation[[16]byte](of[2].Value.(bson.Binary), uuidrep.JavaLegacy)
		if err != nil {
			t.Fatal(err)
		}
		hash := md5.Sum([]byte{byte(i)})
		sum := bson.Binary{Subtype: 3, Data: hash[:]}
		visits = append(visits, bson.D{{Key: "_id", Value: i}, {Key: "of", Value: in(u, uuidrep.Standard)}, {Key: "sum", Value: bson.Binary{Subtype: 4, Data: sum.Data}}})
		sums = append(sums, bson.D{{Key: "_id", Value: i}, {Key: "sum", Value: sum}})
	}
	insert(t, db.Collection("visits"), visits)
	insert(t, db.Collection("sums"), sums)

	file := planned(t, s, "--collection", "orders", "--collection", "sums")
	dir := filepath.Dir(file)
	p := reread(t, file)
	if got := names(p); got != "orders sums" && got != "sums orders" || strings.Join(p.Only, " ") != "orders sums" {
		t.Errorf("%s of %q", got, p.Only)
	}
	outside := make(map[string]string)
	for _, r := range p.References {
		outside[strings.Join(append(r.Between[:], r.Fields...), " ")] = string(r.Outside[0])
	}
	if len(p.References) != 4 || outside["orders customers customer _id"] != "subtype 3" || outside["orders invoices number order"] != "subtype 3" ||
		outside["orders visits customer of"] != "subtype 4" || outside["sums visits sum sum"] != "subtype 4" {
		t.Errorf("%v", outside)
	}
	// A sample may be another one the next time, and is no evidence.
	if i := strings.Index(text(t, file), `- path: "sum"`); !strings.Contains(text(t, file)[i:], "decision: unknown") {
		t.Error(text(t, file)[i:])
	}
	edit(t, file, left...)
	apply := []string{"apply", dir, "--batch", "10", "--write"}
	r := command(t, s, apply...).want(t, failure.ExitUsage)
	for _, part := range []string{`"orders" "customer" (subtype 3, convert from javaLegacy) and "customers" "_id" (subtype 3, not in the plan)`,
		`"orders" "number" (subtype 3, convert from javaLegacy) and "invoices" "order" (subtype 3, not in the plan)`, `--collection "invoices"`, "accepted: true"} {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("no %s in %s", part, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "visits") {
		t.Error(r.stderr)
	}

	// One is added, and one is accepted. The plan stays one of these, also when it is brought up to date.
	for _, wrong := range [][]string{{"--collection", "nowhere"}, {"--collection", "system.x"}} {
		command(t, s, append([]string{"plan", dir}, wrong...)...).want(t, failure.ExitUsage)
	}
	r = command(t, s, "plan", dir, "--collection", "invoices", "--collection", "countries").want(t, failure.ExitOK)
	if !strings.Contains(r.stderr, `"countries" has no UUIDs`) || strings.Contains(r.stderr, `"invoices" has no UUIDs`) {
		t.Error(r.stderr)
	}
	edit(t, file, "    fields: [\"customer\", \"_id\"]\n", "    fields: [\"customer\", \"_id\"]\n    accepted: true\n")
	edited := text(t, file)
	r = command(t, s, "plan", dir).want(t, failure.ExitOK)
	p = reread(t, file)
	if strings.Join(p.Only, " ") != "orders sums invoices countries" || len(p.Collections) != 3 || strings.Count(edited, "outside:") != 3 || strings.Contains(r.stderr, "new") {
		t.Errorf("%q\n%s\n%s", p.Only, r.stderr, text(t, file))
	}
	command(t, s, apply...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("orders")), want["orders"])
	equal(t, all(t, db.Collection("invoices")), want["invoices"])
	equal(t, all(t, db.Collection("customers")), before)
	equal(t, all(t, db.Collection("sessions")), sessions)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)

	if r := command(t, s, "plan", filepath.Dir(planned(t, s)), "--collection", "orders").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "has a plan of all collections") {
		t.Error(r.stderr)
	}
	command(t, s, "plan", filepath.Join(t.TempDir(), "new"), "--db", s.Database(), "--collection", "nowhere").want(t, failure.ExitUsage)
}

// A copy is not made over documents of a collection that the plan is not about.
func TestPlanOfSomeIntoAnother(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	shop(t, db, 20)
	file := planned(t, s, "--collection", "customers")
	edit(t, file, `"customers_standard"`, `"countries"`, "    fields: [\"_id\", \"customer\"]\n", "    fields: [\"_id\", \"customer\"]\n    accepted: true\n")
	r := command(t, s, "apply", filepath.Dir(file), "--write").want(t, failure.ExitUsage)
	if !strings.Contains(r.stderr, `"countries" has documents already`) {
		t.Error(r.stderr)
	}
}

// The plan copies all collections that refer to each other if it copies one of them. One that a person takes out is
// half converted between the conversion and the cutover, which is said before anything is written.
func TestPlanCopiesGroups(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 20)
	file := planned(t, s)
	dir := filepath.Dir(file)
	before := make(map[string]map[string]bson.Raw)
	for _, name := range []string{"orders", "invoices"} {
		before[name] = all(t, db.Collection(name))
	}
	into := make(map[string]string)
	for _, c := range reread(t, file).Collections {
		into[c.Name] = c.Into
	}
	if into["customers"] != "customers_standard" || into["orders"] != "orders_standard" || into["invoices"] != "invoices_standard" || into["sessions"] != "" || into["files"] != "" {
		t.Errorf("%v", into)
	}
	edit(t, file, left...)
	planned := text(t, file)
	for _, tt := range []struct {
		name string
		edit []string
		want []string
	}{
		{"in place", []string{"    into: \"orders_standard\"\n", ""},
			[]string{`"customers" "_id" (subtype 3, convert from csharpLegacy, into "customers_standard")`, `"orders" "customer" (subtype 3, convert from javaLegacy, in place)`, `into "invoices_standard"`}},
		{"left", []string{"    into: \"customers_standard\"\n", "", "decision: convert from csharpLegacy", "decision: leave"},
			[]string{`"customers" "_id" (subtype 3, leave)`, `"orders" "customer" (subtype 3, convert from javaLegacy)`, "decide so that both become the same"}},
	} {
		edit(t, file, tt.edit...)
		for _, write := range [][]string{nil, {"--write"}} {
			r := command(t, s, append([]string{"apply", dir}, write...)...).want(t, failure.ExitUsage)
			for _, part := range append(tt.want, "accepted: true") {
				if !strings.Contains(r.stderr, part) {
					t.Errorf("%s: no %s in %s", tt.name, part, r.stderr)
				}
			}
		}
		edit(t, file, text(t, file), planned)
	}
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	for name, docs := range before {
		want[name+"_standard"], want[name] = want[name], docs
	}
	whole(t, db, want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}

// A collection with UUIDs in _id that is added to a plan makes those copies that refer to it, unless a person has
// accepted that they are changed in place.
func TestPlanOfSomeBecomesCopies(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 20)
	for _, accepted := range []bool{true, false} {
		file := planned(t, s, "--collection", "orders", "--collection", "invoices")
		dir := filepath.Dir(file)
		if accepted {
			edit(t, file, "    fields: [\"customer\", \"_id\"]\n", "    fields: [\"customer\", \"_id\"]\n    accepted: true\n")
		}
		command(t, s, "plan", dir, "--collection", "customers").want(t, failure.ExitOK)
		p := reread(t, file)
		into := make(map[string]bool)
		for _, c := range p.Collections {
			into[c.Name] = c.Into != ""
		}
		// invoices refers to orders, which has one reference to customers, whichever end is first.
		if !into["customers"] || into["orders"] == accepted || into["invoices"] == accepted || len(into) != 3 || len(p.References) != 2 || strings.Contains(text(t, file), "outside:") {
			t.Errorf("accepted %v: %v\n%s", accepted, into, text(t, file))
		}
		if accepted {
			continue
		}
		command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
		equal(t, all(t, db.Collection("orders_standard")), want["orders"])
		equal(t, all(t, db.Collection("invoices_standard")), want["invoices"])
		equal(t, all(t, db.Collection("customers_standard")), want["customers_standard"])
	}
}

// A collection that the user may not read is said not to be searched. One that is named must be read.
func TestPlanOfSomeDenied(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	shop(t, db, 20)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup(r.name()).StringValueOK(); name != "customers" {
			return pass()
		}
		return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(13)}, {Key: "codeName", Value: "Unauthorized"}, {Key: "errmsg", Value: "not authorized on " + r.name()}})
	})
	dir := filepath.Join(t.TempDir(), "d")
	r := command(t, p, "plan", dir, "--db", s.Database(), "--collection", "orders").want(t, failure.ExitOK)
	got := text(t, filepath.Join(dir, "plan.yaml"))
	if !strings.Contains(r.stderr, "not read: customers: the user may not read it") || !strings.Contains(got, "#   customers: the user may not read it") || strings.Contains(got, `["orders", "customers"]`+"\n    fields") {
		t.Errorf("%s\n%s", r.stderr, got)
	}
	command(t, p, "plan", dir, "--collection", "customers").want(t, failure.ExitDenied)
	if text(t, filepath.Join(dir, "plan.yaml")) != got {
		t.Error("the plan was changed")
	}
}

// A tree in one collection, whose documents name their parents, is converted whole: a plan that leaves the parents is
// refused, unless a person accepts it.
func TestReferenceWithin(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("nodes")
	var docs []any
	var keys []uuid.UUID
	for i := range 60 {
		keys = append(keys, v4(i))
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "key", Value: in(keys[i], uuidrep.JavaLegacy)}, {Key: "parent", Value: in(keys[i/2], uuidrep.JavaLegacy)}})
	}
	insert(t, coll, docs)
	file := planned(t, s)
	dir := filepath.Dir(file)
	setDecision(t, file, "parent", "leave")
	for _, args := range [][]string{{"apply", dir}, applying(dir)} {
		r := command(t, s, args...).want(t, failure.ExitUsage)
		for _, want := range []string{`"nodes" "key" (subtype 3, convert from javaLegacy)`, `"nodes" "parent" (subtype 3, leave)`, "accepted: true"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("no %s in %s", want, r.stderr)
			}
		}
	}
	changePlan(t, dir, accepted)
	command(t, s, "apply", dir).want(t, failure.ExitOK)
	changePlan(t, dir, func(p *plan.Plan) { p.References[0].Accepted = false })
	setDecision(t, file, "parent", "convert from javaLegacy")
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}
