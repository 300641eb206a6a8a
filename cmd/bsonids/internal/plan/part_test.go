package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// shared returns the plan of a part of two collections.
func shared(part string) *Plan {
	return &Plan{Database: "shop", Part: part, To: "standard", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "orders", UUID: "01", Fields: []Field{java("customer")}},
		{Name: "users", UUID: "02", Into: "users_new", Fields: []Field{java("_id")}},
	}, References: []Reference{{Between: [2]string{"orders", "users"}, Fields: []string{"customer", "_id"}, Accepted: true}}}
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
