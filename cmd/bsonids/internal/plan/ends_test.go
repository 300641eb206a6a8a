package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// values returns a field with values that are in an order, or in none that is known.
func values(stored kinds.Stored, order string, d Decision) Field {
	f := Field{Path: "x", Stored: stored, Decision: d}
	for _, k := range stored.Kinds() {
		e := Evidence{Order: k.Name, By: decide.None}
		if k.Name == order {
			e.By = decide.Evidence
		}
		f.Evidence = append(f.Evidence, e)
	}
	return f
}

// The values of both ends of a reference are found by each other after a conversion if they are then in one
// representation. Each of these is a field of one end, and what its values are afterwards.
func TestEnds(t *testing.T) {
	type state struct {
		name    string
		field   Field
		becomes string
		changed bool
	}
	standard := []state{
		{"java, converted", values(kinds.Subtype3, "javaLegacy", Convert("javaLegacy")), "standard", true},
		{"C#, converted", values(kinds.Subtype3, "csharpLegacy", Convert("csharpLegacy")), "standard", true},
		{"generic, converted", values(kinds.Subtype0, "generic", Convert("generic")), "standard", true},
		{"text, converted", values(kinds.OfText, "text", Convert("text")), "standard", true},
		{"java, to text", values(kinds.Subtype3, "javaLegacy", "convert from javaLegacy to text"), "text", true},
		{"java, left", values(kinds.Subtype3, "javaLegacy", Leave), "javaLegacy", false},
		{"java, unknown", values(kinds.Subtype3, "javaLegacy", Unknown), "javaLegacy", false},
		{"of no order, left", values(kinds.Subtype3, "", Leave), "of no order", false},
		{"standard already", values(kinds.Subtype4, "standard", Leave), "standard", false},
		{"generic, left", values(kinds.Subtype0, "generic", Leave), "generic", false},
		{"text, left", values(kinds.OfText, "text", Leave), "text", false},
	}
	mixed, both, equal := values(kinds.Subtype3, "javaLegacy", Leave), values(kinds.Subtype3, "javaLegacy", Leave), values(kinds.Subtype3, "javaLegacy", Leave)
	for i := range mixed.Evidence {
		if mixed.Evidence[i].Order == "javaLegacy" {
			mixed.Evidence[i].Against, equal.Evidence[i].By = []string{"csharpLegacy"}, decide.Equality
		}
		if mixed.Evidence[i].Order == "csharpLegacy" {
			both.Evidence[i].By = decide.Evidence
		}
	}
	java := []state{
		{"java beside C#, left", mixed, "of two orders", false},
		{"C# and java, left", both, "of two orders", false},
		{"java by equal values, left", equal, "javaLegacy", false},
		{"standard, converted", values(kinds.Subtype4, "standard", Convert("standard")), "javaLegacy", true},
		{"java already", values(kinds.Subtype3, "javaLegacy", Leave), "javaLegacy", false},
		{"C#, converted", values(kinds.Subtype3, "csharpLegacy", Convert("csharpLegacy")), "javaLegacy", true},
		{"C#, left", values(kinds.Subtype3, "csharpLegacy", Leave), "csharpLegacy", false},
		{"of no order, left", values(kinds.Subtype3, "", Leave), "of no order", false},
	}
	parted := 0
	for to, states := range map[string][]state{"standard": standard, "javaLegacy": java} {
		for _, a := range states {
			for _, b := range states {
				half := (a.changed || b.changed) && a.becomes != b.becomes
				// Programs compare text with binary values by reading both, before and after.
				for _, s := range [][2]state{{a, b}, {b, a}} {
					if s[0].name == "text, left" && s[1].field.Stored != kinds.OfText {
						half = false
					}
				}
				if half {
					parted++
				}
				p := &Plan{Database: "d", To: to, Collections: []Collection{{Name: "a", Fields: []Field{a.field}}, {Name: "b", Fields: []Field{b.field}}},
					References: []Reference{{Between: [2]string{"a", "b"}, Fields: []string{"x", "x"}, Line: 7}}}
				if got := problemsOf(p, 7); (len(got) > 0) != half {
					t.Errorf("to %s: %s and %s: %q", to, a.name, b.name, got)
				}
				for _, text := range problemsOf(p, 7) {
					for _, want := range []string{`"a" "x" (` + string(a.field.Stored) + ", " + string(a.field.Decision), `"b" "x" (` + string(b.field.Stored) + ", " + string(b.field.Decision),
						"decide so that both become the same", "accepted: true"} {
						if !strings.Contains(text, want) {
							t.Errorf("no %s in %s", want, text)
						}
					}
				}
				p.References[0].Accepted = true
				if got := problemsOf(p, 7); len(got) > 0 {
					t.Errorf("accepted: %q", got)
				}
				// It is the same if both are fields of one collection.
				other := b.field
				other.Path = "y"
				p = &Plan{Database: "d", To: to, Collections: []Collection{{Name: "a", Fields: []Field{a.field, other}}},
					References: []Reference{{Between: [2]string{"a", "a"}, Fields: []string{"x", "y"}, Line: 7}}}
				if got := problemsOf(p, 7); (len(got) > 0) != half {
					t.Errorf("to %s, in one collection: %s and %s: %q", to, a.name, b.name, got)
				}
			}
		}
	}
	if parted < 40 {
		t.Errorf("%d pairs are half converted", parted)
	}
}

// problemsOf returns the problems of a line.
func problemsOf(p *Plan, line int) (texts []string) {
	for _, problem := range p.Check() {
		if text, ok := strings.CutPrefix(problem, fmt.Sprintf("line %d: ", line)); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// Collections that refer to one outside the plan are one group.
func TestGroupsByWayOfOthers(t *testing.T) {
	p := &Plan{To: "standard", Only: []string{"a", "b", "c"}}
	for _, name := range p.Only {
		p.Collections = append(p.Collections, Collection{Name: name, Fields: []Field{java("x")}})
	}
	p.References = []Reference{{Between: [2]string{"c", "z"}}, {Between: [2]string{"a", "z"}}}
	if g := p.Groups(); len(g) != 2 || len(g[0]) != 2 || g[0][0].Collection != "a" || g[0][1].Collection != "c" || g[1][0].Collection != "b" {
		t.Errorf("%+v", g)
	}
}

// What differs between two plans is said, and the order if nothing else does.
func TestChanges(t *testing.T) {
	const text = `part: 2/8
only: [a, b]
collections: [{name: a, fields: [x $java]}, {name: b, fields: [y $left]}]
references: [{between: [a, b], fields: [x, y], outside: [subtype 3]}]`
	for _, tt := range [][3]string{
		{"part: 2/8\n", "", "part was 2/8 and is none"},
		{"only: [a, b]", "only: [a]", `only was ["a", "b"] and is ["a"]`},
		{"only: [a, b]\n", "", `only was ["a", "b"] and is none`},
		{"name: b", "name: b, guard: strict", `the collection "b": guard was none and is strict`},
		{", outside: [subtype 3]", "", `the reference between "a" "x" and "b" "y": outside was [subtype 3] and is none`},
		{"fields: [x, y]", "fields: [x, y], accepted: true", `the reference between "a" "x" and "b" "y": accepted was none and is true`},
		{"{name: a, fields: [x $java]}, {name: b, fields: [y $left]}", "{name: b, fields: [y $left]}, {name: a, fields: [x $java]}", "the order of its collections, fields or references is another one"},
	} {
		if got := Changes(planOf(t, text), planOf(t, strings.Replace(text, tt[0], tt[1], 1))); len(got) != 1 || got[0] != tt[2] {
			t.Errorf("got %q, want %q", got, tt[2])
		}
	}
	for _, st := range planOf(t, text).Steps() {
		if st.Part != "2/8" {
			t.Errorf("%+v", st)
		}
	}
}
