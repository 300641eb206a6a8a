package servertest

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
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

// copiesOf returns the new collections of a plan.
func copiesOf(p *plan.Plan) map[string]string {
	into := make(map[string]string)
	for _, c := range p.Collections {
		into[c.Name] = c.Into
	}
	return into
}

// acceptOf accepts the reference between two fields.
func acceptOf(t *testing.T, file, fields string) {
	t.Helper()
	edit(t, file, "    fields: ["+fields+"]\n", "    fields: ["+fields+"]\n    accepted: true\n")
}

// A plan of one collection names the others that have its values, and converts nothing before these are added or
// accepted.
func TestPlanOfSome(t *testing.T) {
	s, db := started(t)
	want := shop(t, db, 20)
	before, sessions := all(t, db.Collection("customers")), all(t, db.Collection("sessions"))
	// Visits are in the representation that orders are converted to, and are the only evidence for the order of sums.
	for i := range 10 {
		customer := want["orders"][marshalValue(t, int32(i)).String()].Lookup("customer")
		sum := checksum(100 + i)
		insert(t, db.Collection("visits"), []any{bson.D{{Key: "_id", Value: i}, {Key: "of", Value: customer}, {Key: "sum", Value: in(sum, uuidrep.Standard)}}})
		insert(t, db.Collection("sums"), []any{bson.D{{Key: "_id", Value: i}, {Key: "sum", Value: in(sum, uuidrep.PythonLegacy)}}})
	}

	file := planned(t, s, "--collection", "orders", "--collection", "sums")
	dir := filepath.Dir(file)
	p := reread(t, file)
	if len(copiesOf(p)) != 2 || strings.Join(p.Only, " ") != "orders sums" {
		t.Errorf("%v of %q", copiesOf(p), p.Only)
	}
	outside := make(map[string]string)
	for _, r := range p.References {
		outside[strings.Join(append(r.Between[:], r.Fields...), " ")] = string(r.Outside[0])
	}
	if !maps.Equal(outside, map[string]string{"orders customers customer _id": "subtype 3", "orders invoices number order": "subtype 3",
		"orders visits customer of": "subtype 4", "sums visits sum sum": "subtype 4"}) {
		t.Errorf("%v", outside)
	}
	// A sample may be another one the next time, and is no evidence.
	if i := strings.Index(text(t, file), `- path: "sum"`); !strings.Contains(text(t, file)[i:], "decision: unknown") {
		t.Error(text(t, file)[i:])
	}
	edit(t, file, left...)
	command(t, s, applying(dir)...).want(t, failure.ExitUsage).lacks(t, "visits").
		says(t, `"orders" "customer" (subtype 3, convert from javaLegacy) and "customers" "_id" (subtype 3, not in the plan)`,
			`"orders" "number" (subtype 3, convert from javaLegacy) and "invoices" "order" (subtype 3, not in the plan)`, `--collection "invoices"`, "accepted: true")

	// One is added, and one is accepted. The plan stays one of these, also when it is brought up to date.
	for _, wrong := range []string{"nowhere", "system.x"} {
		command(t, s, "plan", dir, "--collection", wrong).want(t, failure.ExitUsage)
	}
	command(t, s, "plan", dir, "--collection", "invoices", "--collection", "countries").want(t, failure.ExitOK).
		says(t, `"countries" has no UUIDs`).lacks(t, `"invoices" has no UUIDs`)
	acceptOf(t, file, `"customer", "_id"`)
	edited := text(t, file)
	command(t, s, "plan", dir).want(t, failure.ExitOK).lacks(t, "new")
	p = reread(t, file)
	if strings.Join(p.Only, " ") != "orders sums invoices countries" || len(p.Collections) != 3 || strings.Count(edited, "outside:") != 3 {
		t.Errorf("%q\n%s", p.Only, text(t, file))
	}
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("orders")), want["orders"])
	equal(t, all(t, db.Collection("invoices")), want["invoices"])
	equal(t, all(t, db.Collection("customers")), before)
	equal(t, all(t, db.Collection("sessions")), sessions)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)

	command(t, s, "plan", filepath.Dir(planned(t, s)), "--collection", "orders").want(t, failure.ExitUsage).says(t, "has a plan of all collections")
	command(t, s, "plan", filepath.Join(t.TempDir(), "new"), "--db", s.Database(), "--collection", "nowhere").want(t, failure.ExitUsage)
	// A copy is not made over documents of a collection that the plan is not about.
	file = planned(t, s, "--collection", "customers")
	edit(t, file, `"customers_standard"`, `"countries"`)
	changePlan(t, filepath.Dir(file), accepted)
	command(t, s, "apply", filepath.Dir(file), "--write").want(t, failure.ExitUsage).says(t, `"countries" has documents already`)
}

// The plan copies all collections that refer to each other if it copies one of them. One that a person takes out is
// half converted between the conversion and the cutover, which is said before anything is written.
func TestPlanCopiesGroups(t *testing.T) {
	s, db := started(t)
	want := shop(t, db, 20)
	file := planned(t, s)
	dir := filepath.Dir(file)
	into := copiesOf(reread(t, file))
	for name := range exchanged {
		if into[name] != name+"_standard" {
			t.Errorf("%v", into)
		}
	}
	for _, name := range []string{"orders", "invoices"} {
		want[name+"_standard"], want[name] = want[name], all(t, db.Collection(name))
	}
	if into["sessions"] != "" || into["files"] != "" {
		t.Errorf("%v", into)
	}
	edit(t, file, left...)
	planned := text(t, file)
	for _, tt := range []struct{ edit, want []string }{
		{[]string{"    into: \"orders_standard\"\n", ""},
			[]string{`"customers" "_id" (subtype 3, convert from csharpLegacy, into "customers_standard")`, `"orders" "customer" (subtype 3, convert from javaLegacy, in place)`, `into "invoices_standard"`}},
		{[]string{"    into: \"customers_standard\"\n", "", "decision: convert from csharpLegacy", "decision: leave"},
			[]string{`"customers" "_id" (subtype 3, leave)`, `"orders" "customer" (subtype 3, convert from javaLegacy)`, "decide so that both become the same"}},
	} {
		edit(t, file, tt.edit...)
		for _, args := range [][]string{{"apply", dir}, {"apply", dir, "--write"}} {
			command(t, s, args...).want(t, failure.ExitUsage).says(t, append(tt.want, "accepted: true")...)
		}
		put(t, file, planned)
	}
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	whole(t, db, want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}

// A collection with UUIDs in _id that is added to a plan makes those copies that refer to it, unless a person has
// accepted that they are changed in place.
func TestPlanOfSomeBecomesCopies(t *testing.T) {
	s, db := started(t)
	want := shop(t, db, 20)
	for _, accepted := range []bool{true, false} {
		file := planned(t, s, "--collection", "orders", "--collection", "invoices")
		dir := filepath.Dir(file)
		if accepted {
			acceptOf(t, file, `"customer", "_id"`)
		}
		command(t, s, "plan", dir, "--collection", "customers").want(t, failure.ExitOK)
		p := reread(t, file)
		into := copiesOf(p)
		// invoices refers to orders, which has one reference to customers, whichever end is first.
		if into["customers"] == "" || (into["orders"] == "") != accepted || (into["invoices"] == "") != accepted || len(into) != 3 || len(p.References) != 2 || strings.Contains(text(t, file), "outside:") {
			t.Errorf("accepted %v: %v\n%s", accepted, into, text(t, file))
		}
		if !accepted {
			command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
			equal(t, all(t, db.Collection("orders_standard")), want["orders"])
			equal(t, all(t, db.Collection("invoices_standard")), want["invoices"])
			equal(t, all(t, db.Collection("customers_standard")), want["customers_standard"])
		}
	}
}

// A collection that the user may not read is said not to be searched. One that is named must be read.
func TestPlanOfSomeDenied(t *testing.T) {
	s, db := started(t)
	shop(t, db, 20)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.on() != "customers" {
			return pass()
		}
		return r.fail(13, "not authorized on "+r.name())
	})
	dir := filepath.Join(t.TempDir(), "d")
	command(t, p, "plan", dir, "--db", s.Database(), "--collection", "orders").want(t, failure.ExitOK).says(t, "not read: customers: the user may not read it")
	got := text(t, filepath.Join(dir, "plan.yaml"))
	if !strings.Contains(got, "#   customers: the user may not read it") || strings.Contains(got, `["orders", "customers"]`+"\n    fields") {
		t.Error(got)
	}
	command(t, p, "plan", dir, "--collection", "customers").want(t, failure.ExitDenied)
	if text(t, filepath.Join(dir, "plan.yaml")) != got {
		t.Error("the plan was changed")
	}
}

// A tree in one collection, whose documents name their parents, is converted whole: a plan that leaves the parents is
// refused, unless a person accepts it.
func TestReferenceWithin(t *testing.T) {
	var docs []any
	var keys []uuid.UUID
	for i := range 60 {
		keys = append(keys, v4(i))
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "key", Value: in(keys[i], uuidrep.JavaLegacy)}, {Key: "parent", Value: in(keys[i/2], uuidrep.JavaLegacy)}})
	}
	c := setting(t, docs)
	file := c.file("plan.yaml")
	setDecision(t, file, "parent", "leave")
	for _, line := range []string{"apply", "apply --write"} {
		c.run(failure.ExitUsage, line).says(t, `"c" "key" (subtype 3, convert from javaLegacy)`, `"c" "parent" (subtype 3, leave)`, "accepted: true")
	}
	changePlan(t, c.dir, accepted)
	c.ok("apply")
	changePlan(t, c.dir, func(p *plan.Plan) { p.References[0].Accepted = false })
	setDecision(t, file, "parent", "convert from javaLegacy")
	c.ok("apply --write", "verify")
}
