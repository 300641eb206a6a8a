package plan

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

func java(path string) Field {
	return Field{Path: path, Stored: kinds.Subtype3, Decision: Convert("javaLegacy"), Evidence: []Evidence{{Order: "javaLegacy", By: decide.Evidence, Versions: []int{4}},
		{Order: "csharpLegacy", By: decide.None}, {Order: "pythonLegacy", By: decide.None}}}
}

// Collections that refer to each other come together, in the place of the first of them.
func TestGroups(t *testing.T) {
	p := &Plan{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		c := Collection{Name: name, Fields: []Field{java("x")}}
		if name == "e" {
			c.Fields[0].Decision = Leave
		}
		p.Collections = append(p.Collections, c)
	}
	p.References = []Reference{{Between: [2]string{"f", "b"}}, {Between: [2]string{"d", "e"}}, {Between: [2]string{"e", "a"}}}
	var got []string
	for _, g := range p.Groups() {
		var names []string
		for _, st := range g {
			names = append(names, st.Collection)
		}
		got = append(got, strings.Join(names, " "))
	}
	// d and a refer to e, which is left.
	if want := []string{"a d", "b f", "c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The files of different steps have different names, which every file system can hold.
func TestFiles(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9_-][a-zA-Z0-9_+.-]{0,119}$`)
	seen := make(map[string]string)
	names := append([]string{"Orders", "ORDERS", "a/b", "../x", "con", ".hidden", strings.Repeat("x", 81), strings.Repeat("x", 82), "ä", "ö", "a+b"}, ugly...)
	for _, name := range names {
		if name == "" {
			continue // not the name of a collection
		}
		for _, filter := range []string{"", `{"a":1}`} {
			s := Step{Task: kinds.Task{Collection: name, Filter: filter}}
			file := s.SkipList("")
			key := strings.ToLower(file)
			if was, ok := seen[key]; ok || !valid.MatchString(file) || file == PlanFile || file == NewFile {
				t.Errorf("%q and %q have the file %q", was, name, file)
			}
			seen[key] = name
		}
	}
}

// The name of a conversion is the same for the same documents and the same place, and for no others.
func TestConversion(t *testing.T) {
	p, other := &Plan{Migration: "0123456789abcdef"}, &Plan{Migration: "fedcba9876543210"}
	seen := make(map[string]kinds.Task)
	for _, p := range []*Plan{p, other} {
		for _, t0 := range []kinds.Task{{Collection: "a"}, {Collection: "A"}, {Collection: "a", Filter: "{}"}, {Collection: "a", Into: "b"}, {Collection: "a", Into: "c"}, {Collection: "a.b"}} {
			name := p.Conversion(t0)
			if was, ok := seen[name]; ok {
				t.Errorf("%+v and %+v are %q", was, t0, name)
			}
			seen[name] = t0
			t0.Pairs = []kinds.Pair{{From: "javaLegacy"}}
			if p.Conversion(t0) != name {
				t.Errorf("%+v has another name with other pairs", t0)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	sound := func() *Plan {
		id := java("_id")
		left := java("y")
		left.Decision = Leave
		return &Plan{Collections: []Collection{
			{Name: "a", Line: 10, Fields: []Field{java("x"), left}}, {Name: "b", Line: 20, Into: "b2", Fields: []Field{id}},
		}}
	}
	if p := sound().Check(); len(p) > 0 {
		t.Fatal(p)
	}
	none := func(f *Field) { f.Evidence[0] = Evidence{Order: "javaLegacy", By: decide.None} }
	for _, tt := range []struct {
		name   string
		change func(p *Plan)
		want   string
	}{
		{"unknown", func(p *Plan) { p.Collections[0].Fields[0].Decision = Unknown; p.Collections[0].Fields[0].Line = 12 }, `line 12: "a": the decision about "x" (subtype 3) is unknown`},
		{"no evidence", func(p *Plan) { none(&p.Collections[0].Fields[0]) }, `add trust: true`},
		{"against the evidence", func(p *Plan) { p.Collections[0].Fields[0].Decision = Convert("csharpLegacy") }, `the values are not csharpLegacy but javaLegacy`},
		{"trusted against the evidence", func(p *Plan) {
			p.Collections[0].Fields[0].Decision, p.Collections[0].Fields[0].Trust = Convert("csharpLegacy"), true
		}, `the values are not csharpLegacy but javaLegacy`},
		{"trust of what is left", func(p *Plan) { p.Collections[0].Fields[1].Trust = true }, "trust"},
		{"_id in place", func(p *Plan) { p.Collections[1].Into = "" }, `line 20: "b": values in _id cannot be converted in place`},
		{"into a planned one", func(p *Plan) { p.Collections[1].Into = "a" }, `is one of the plan`},
		{"into without a field", func(p *Plan) { p.Collections[1].Fields[0].Decision = Leave }, "no field is converted"},
		{"into the same", func(p *Plan) { p.Collections[0].Into = "b2" }, `into "b2", too`},
		{"wrong subtype", func(p *Plan) { p.Collections[0].Fields[0].Stored = kinds.Subtype0 }, "the values are subtype 0, and javaLegacy is subtype 3"},
		{"text", func(p *Plan) { p.Collections[0].Fields[0].Stored = kinds.OfText }, "the values are text"},
		{"others", func(p *Plan) { p.Collections[0].Fields[0].Path = Others }, "cannot be named"},
		{"empty name", func(p *Plan) { p.Collections[0].Fields[0].Path = "a..b" }, "cannot be named"},
		{"overlap", func(p *Plan) { p.Collections[0].Fields[0].Path = "*" }, `it also matches "y"`},
		{"reference to nowhere", func(p *Plan) { p.References = []Reference{{Between: [2]string{"a", "zzz"}, Line: 30}} }, `line 30: the reference names the collection "zzz"`},
	} {
		p := sound()
		tt.change(p)
		if got := fmt.Sprint(p.Check()); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	// A person may vouch for values that say nothing. All kinds of a collection are one step.
	p := sound()
	none(&p.Collections[0].Fields[0])
	p.Collections[0].Fields[0].Trust = true
	if got := p.Check(); len(got) > 0 {
		t.Error(got)
	}
	p.Collections[0].Fields = append(p.Collections[0].Fields, Field{Path: "g[]", Stored: kinds.Subtype0, Decision: Convert("generic"), Evidence: []Evidence{{Order: "generic", By: decide.Evidence}}})
	want := Step{Task: kinds.Task{Collection: "a", Pairs: []kinds.Pair{{From: "generic", Fields: []string{"g"}}, {From: "javaLegacy", Fields: []string{"x"}, Trust: []string{"x"}}}}}
	if s := p.Steps(); len(s) != 2 || !reflect.DeepEqual(s[0], want) {
		t.Errorf("got %+v", s)
	}
}
