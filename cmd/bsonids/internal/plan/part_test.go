package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// shared returns the plan of a part of two collections.
func shared(part string) *Plan {
	return &Plan{Database: "shop", Part: part, To: "standard", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "orders", UUID: "01", Fields: []Field{java("customer")}},
		{Name: "users", UUID: "02", Into: "users_new", Fields: []Field{java("_id")}},
	}, References: []Reference{{Between: [2]string{"orders", "users"}, Fields: []string{"customer", "_id"}, Accepted: true}}}
}

// The part is written and read in one spelling, is part of the steps, and what is no part is an error with its line.
func TestPartInFile(t *testing.T) {
	p := shared("2/8")
	text := string(write(t, p))
	if !strings.Contains(text, "\npart: 2/8\n") {
		t.Fatal(text)
	}
	for spelt, want := range map[string]string{"2/8": "2/8", `"2/8"`: "2/8", "02/08": "2/8"} {
		q, err := Parse([]byte(strings.Replace(text, "part: 2/8", "part: "+spelt, 1)))
		if err != nil || q.Part != want || len(Changes(p, q)) > 0 || q.Digest() != p.Digest() {
			t.Errorf("%s: %+v, %v", spelt, q, err)
		}
	}
	for _, bad := range []string{"0/8", "9/8", "2", "1/1", `""`, "2/8/8", "a/b", "1/1001", "[2, 8]", "null"} {
		if q, err := Parse([]byte(strings.Replace(text, "part: 2/8", "part: "+bad, 1))); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%s: %+v, %v", bad, q, err)
		}
	}
	for _, st := range p.Steps() {
		if st.Part != "2/8" {
			t.Errorf("%+v", st)
		}
	}
	if d := strings.Join(Changes(p, shared("")), "; "); d != "part was 2/8 and is none" {
		t.Error(d)
	}
}

// Parts are of one division if their number and what they decide about the collection are the same.
func TestDivision(t *testing.T) {
	of := func(part string, change func(p *Plan)) string {
		p := shared(part)
		change(p)
		return p.Division("orders")
	}
	same := of("1/8", func(*Plan) {})
	for name, tt := range map[string]struct {
		part   string
		change func(p *Plan)
		same   bool
	}{
		"another part":       {"8/8", func(*Plan) {}, true},
		"another UUID":       {"2/8", func(p *Plan) { p.Collections[0].UUID = "09" }, true},
		"another evidence":   {"2/8", func(p *Plan) { p.Collections[0].Fields[0].Evidence = nil }, true},
		"another collection": {"2/8", func(p *Plan) { p.Collections[1].Into = "other" }, true},
		"a field that is left": {"2/8", func(p *Plan) {
			p.Collections[0].Fields = append(p.Collections[0].Fields, Field{Path: "x", Stored: kinds.Subtype4, Decision: Leave})
		}, true},
		"another number": {"2/9", func(*Plan) {}, false},
		"all documents":  {"", func(*Plan) {}, false},
		"another field":  {"2/8", func(p *Plan) { p.Collections[0].Fields = append(p.Collections[0].Fields, java("x")) }, false},
		"trust":          {"2/8", func(p *Plan) { p.Collections[0].Fields[0].Trust = true }, false},
		"a filter":       {"2/8", func(p *Plan) { p.Collections[0].Filter = "{}" }, false},
		"a copy":         {"2/8", func(p *Plan) { p.Collections[0].Into = "new" }, false},
		"another target": {"2/8", func(p *Plan) { p.To = "csharpLegacy" }, false},
		"another order":  {"2/8", func(p *Plan) { p.Collections[0].Fields[0].Decision = Convert("pythonLegacy") }, false},
	} {
		if got := of(tt.part, tt.change); (got == same) != tt.same {
			t.Errorf("%s: %q, and %q", name, got, same)
		}
	}
	if d := of("", func(*Plan) {}); d != "" {
		t.Error(d)
	}
}

// The part does not change once the plan is applied, also if nothing is converted yet.
func TestPartFrozen(t *testing.T) {
	p := shared("2/8")
	dir := migrated(t, p)
	s, e, err := lock(t, dir, p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	seal(t, s, e, p)
	for _, part := range []string{"3/8", "2/4", ""} {
		var frozen *FrozenError
		if _, err := s.Edit(shared(part)); !errors.As(err, &frozen) || !strings.Contains(err.Error(), "the part was 2/8") {
			t.Errorf("%q: %v", part, err)
		}
	}
	if _, err := s.Edit(shared("2/8")); err != nil {
		t.Error(err)
	}
}

// Like takes over decisions, trust, new collections, accepted references and the order of the work. What the other
// plan does not have is unknown, and what differs is said.
func TestLike(t *testing.T) {
	other := shared("1/8")
	other.Collections[0].Fields[0].Trust = true
	other.Collections[0].Guard = "strict"
	other.Collections = append(other.Collections, Collection{Name: "gone", Fields: []Field{java("a")}})
	other.References = append(other.References, Reference{Between: [2]string{"orders", "users"}}) // a person's
	survey := func(part string) *Plan {
		p := shared(part)
		customer := java("customer")
		customer.Decision, customer.Evidence = Unknown, []Evidence{{Order: "javaLegacy", By: decide.None}}
		p.Collections = []Collection{
			{Name: "users_new", UUID: "07", Fields: []Field{java("_id")}}, // another part copies into it
			{Name: "users", UUID: "02", Into: "users_standard", Fields: []Field{java("_id")}},
			{Name: "orders", UUID: "03", Fields: []Field{customer, java("fresh")}},
			{Name: "more", Into: "more_standard", Fields: []Field{java("_id")}},
		}
		p.References = []Reference{
			{Between: [2]string{"users", "orders"}, Fields: []string{"_id", "customer"}},
			{Between: [2]string{"users_new", "orders"}, Fields: []string{"_id", "customer"}},
			{Between: [2]string{"more", "orders"}, Fields: []string{"_id", "fresh"}},
		}
		return p
	}
	for _, part := range []string{"2/8", ""} {
		p := survey(part)
		notes := strings.Join(p.Like(other), "\n")
		var names []string
		for _, c := range p.Collections {
			names = append(names, c.Name)
		}
		kept := strings.Join(names, " ")
		if part != "" && kept != "orders users gone more" || part == "" && kept != "orders users more" {
			t.Errorf("%q: %s", part, kept)
		}
		orders, users, more := p.Collections[0], p.Collections[1], p.Collections[len(p.Collections)-1]
		if f := orders.Fields[0]; f.Decision != Convert("javaLegacy") || !f.Trust || orders.Guard != "" || orders.UUID != "03" ||
			(f.Evidence[0].By == decide.None) != (part == "") {
			t.Errorf("%q: %+v", part, orders)
		}
		if orders.Fields[1].Decision != Unknown || more.Fields[0].Decision != Unknown || more.Into != "" || users.Into != "users_new" {
			t.Errorf("%q: %+v %+v %+v", part, orders.Fields[1], more, users)
		}
		if len(p.References) != 3 || !p.References[0].Accepted || p.References[2].Between[0] != "more" || p.References[2].Accepted || len(p.References[1].Fields) != 0 {
			t.Errorf("%q: %+v", part, p.References)
		}
		for _, want := range []string{`"orders": another collection has the name`, `"orders": the guard strict`, `"orders": the evidence of "customer"`,
			`"orders": the field "fresh" (subtype 3) is new`, `"more": the collection is new`, `"gone": the collection is gone`,
			`the reference between "more" "_id" and "orders" "fresh" is new`} {
			if !strings.Contains(notes, want) {
				t.Errorf("%q: no %q in\n%s", part, want, notes)
			}
		}
		if n := strings.Count(notes, "\n") + 1; n != 7 {
			t.Errorf("%q: %d notes:\n%s", part, n, notes)
		}
	}
	if notes := shared("2/8").Like(shared("1/8")); len(notes) > 0 {
		t.Error(notes)
	}
}
