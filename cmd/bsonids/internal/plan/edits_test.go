package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// two returns a plan of two collections, of which one is copied.
func two() *Plan {
	left, late := java("late"), java("late")
	left.Decision, late.Decision = Leave, Leave
	return &Plan{Database: "shop", Migration: "0123456789abcdef", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "a", Fields: []Field{java("x"), left}}, {Name: "b", Into: "b2", Fields: []Field{java("_id"), late}},
	}}
}

// What was converted is not edited. What was left may be converted later, and what was not trusted may be trusted.
func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(p *Plan)
		want string
	}{
		{"nothing", func(p *Plan) { p.Made = time.Now(); p.Collections[0].Comment = []string{"x"} }, ""},
		{"another field", func(p *Plan) { p.Collections[0].Fields[1].Decision = Convert("javaLegacy") }, ""},
		{"another field of a copy", func(p *Plan) { p.Collections[1].Fields[1].Decision = Convert("javaLegacy") }, ""},
		{"trust", func(p *Plan) { p.Collections[0].Fields[0].Trust = true }, ""},
		{"another collection", func(p *Plan) {
			p.Collections = append(p.Collections, Collection{Name: "c", Fields: []Field{java("x")}})
		}, ""},
		{"the order", func(p *Plan) { p.Collections[0], p.Collections[1] = p.Collections[1], p.Collections[0] }, ""},
		{"the same field, stored in another way", func(p *Plan) {
			f := java("x")
			f.Stored, f.Decision = kinds.OfText, Leave
			p.Collections[0].Fields = append(p.Collections[0].Fields, f)
		}, ""},
		{"leave", func(p *Plan) { p.Collections[0].Fields[0].Decision = Leave }, `the collection "a": the field "x" (subtype 3): decision was convert from javaLegacy and is leave`},
		{"another order", func(p *Plan) { p.Collections[0].Fields[0].Decision = Convert("csharpLegacy") }, `was convert from javaLegacy and is convert from csharpLegacy`},
		{"without the field", func(p *Plan) { p.Collections[0].Fields = p.Collections[0].Fields[1:] }, `the field "x", convert from javaLegacy, is not in the plan any more`},
		{"without the collection", func(p *Plan) { p.Collections = p.Collections[1:] }, `the collection "a" is not in the plan any more`},
		{"a filter", func(p *Plan) { p.Collections[0].Filter = "{}" }, `the collection "a" is not in the plan any more`},
		{"a copy in place", func(p *Plan) { p.Collections[1].Into = "" }, `into was "b2" and is none`},
		{"another copy", func(p *Plan) { p.Collections[1].Into = "b3" }, `into was "b2" and is "b3"`},
	} {
		p := two()
		var converted []kinds.Task
		for _, st := range p.Steps() {
			converted = append(converted, st.Task)
		}
		tt.edit(p)
		if got := strings.Join(p.Frozen(converted), "; "); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
		if got := p.Frozen(nil); len(got) > 0 {
			t.Errorf("%s: %q, and nothing was converted", tt.name, got)
		}
	}
	p := two()
	p.Collections[0].Fields[0].Trust = true
	if got := two().Frozen([]kinds.Task{p.Steps()[0].Task}); !slices.Equal(got, []string{`the collection "a": the field "x" (subtype 3): trust was true and is none`}) {
		t.Errorf("%q", got)
	}
}

// Two conversions clash if they read values that are stored in the same way, of a field that both have, in two orders.
func TestClash(t *testing.T) {
	pair := func(from string, fields ...string) kinds.Pair {
		return kinds.Pair{From: from, Fields: fields}
	}
	for _, tt := range []struct {
		is, was kinds.Pair
		clashes bool
	}{
		{pair("javaLegacy", "a"), pair("csharpLegacy", "a"), true},
		{pair("javaLegacy", "a"), pair("javaLegacy", "a"), false},
		{pair("javaLegacy", "a"), pair("csharpLegacy", "b"), false},
		{pair("javaLegacy", "*"), pair("csharpLegacy", "a"), true},
		{pair("javaLegacy", "b", "a.b"), pair("csharpLegacy", "a.*"), true},
		{pair("javaLegacy", "a"), pair("text", "a"), false},
		{pair("javaLegacy", "a"), pair("generic", "a"), false},
		{pair("pythonLegacy", "a"), pair("javaLegacy", "x", "a"), true},
	} {
		field, kind, was := Step{Task: kinds.Task{Pairs: []kinds.Pair{tt.is}}}.Clash(kinds.Task{Pairs: []kinds.Pair{tt.was}})
		if (field != "") != tt.clashes || tt.clashes && (kind != tt.is.From || was != tt.was.From || !slices.Contains(tt.is.Fields, field)) {
			t.Errorf("%+v after %+v: %q, %q, %q", tt.is, tt.was, field, kind, was)
		}
	}
}

// The directory of a migration is used by one process, and what a call that fails has made is gone.
func TestDirectory(t *testing.T) {
	dir := t.TempDir() + "/d"
	s, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir); err == nil {
		t.Error("it is made twice")
	}
	if err := s.Discard(); err != nil {
		t.Error(err)
	}
	if s, err = Create(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.WritePlan(two()); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil {
		t.Error("it is locked twice")
	}
	if is, err := Look(dir); err != nil || is.Plan.Migration != two().Migration || is.Close() != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Create(dir); err == nil || !strings.Contains(err.Error(), "has a plan already") {
		t.Error(err)
	}
	if s, err = Lock(dir); err != nil || s.Plan.Database != "shop" || s.Close() != nil {
		t.Error(err)
	}
	for _, dir := range []string{t.TempDir(), t.TempDir() + "/none"} {
		if _, err := Lock(dir); err == nil {
			t.Errorf("%s has no plan", dir)
		}
	}
}

// What was converted of a dump is read as it was written, and is none of another plan.
func TestConverted(t *testing.T) {
	s := &State{Plan: two(), dir: t.TempDir()}
	if c, err := s.Converted(); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	want := &Converted{Out: "/out", Ended: "2026-01-02T03:04:05Z", Steps: []ConvertedStep{{1, 2, 3}, {4, 5, 6}}}
	if err := s.WriteConverted(want); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Converted(); err != nil || c.Out != want.Out || c.Ended != want.Ended || !slices.Equal(c.Steps, want.Steps) {
		t.Errorf("%+v, %v", c, err)
	}
	s.Plan.Collections = s.Plan.Collections[1:]
	if c, err := s.Converted(); c != nil || err != nil {
		t.Errorf("of another plan: %+v, %v", c, err)
	}
}
