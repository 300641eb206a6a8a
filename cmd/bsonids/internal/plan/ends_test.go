package plan

import (
	"fmt"
	"strings"
	"testing"
)

// The values of both ends of a reference are found by each other after a conversion if they are then in one
// representation. Each of these is a field of one end, and what its values are afterwards.
func TestEnds(t *testing.T) {
	parted := 0
	states := map[string]string{"java": "standard", "csharpToo": "standard", "generic": "standard", "text": "standard", "left": "javaLegacy", "unknown": "javaLegacy",
		"noOrder": "of no order", "std": "standard", "zero": "generic", "leftText": "text", "beside": "of two orders", "both": "of two orders", "equal": "javaLegacy",
		"csharp": "csharpLegacy"}
	{
		for a, x := range states {
			for b, y := range states {
				half := x != y && strings.Contains(fieldsOf[a]+fieldsOf[b], "convert from")
				// Programs compare text with binary values by reading both, before and after.
				for _, s := range [][2]string{{a, b}, {b, a}} {
					half = half && (s[0] != "leftText" || strings.Contains(fieldsOf[s[1]], "stored: text"))
				}
				if half {
					parted++
				}
				for _, text := range []string{ // it is the same if both are fields of one collection
					"collections: [{name: a, fields: [x $" + a + "]}, {name: b, fields: [y $" + b + "]}]\nreferences: [{between: [a, b], fields: [x, y]}]",
					"collections: [{name: a, fields: [x $" + a + ", y $" + b + "]}]\nreferences: [{between: [a, a], fields: [x, y]}]",
				} {
					p := planOf(t, text)
					got := strings.Join(p.Check(), "; ")
					if strings.Contains(got, "half converted") != half {
						t.Errorf("%s and %s: %s", a, b, got)
					}
					for _, c := range p.Collections {
						for _, f := range c.Fields {
							if want := fmt.Sprintf("%q %q (%s, %s", c.Name, f.Path, f.Stored, f.Decision); half && !strings.Contains(got, want) {
								t.Errorf("no %s in %s", want, got)
							}
						}
					}
					if half && (!strings.Contains(got, "decide so that both become the same") || !strings.Contains(got, "accepted: true")) {
						t.Error(got)
					}
					p.References[0].Accepted = true
					if got := fmt.Sprint(p.Check()); strings.Contains(got, "the reference") {
						t.Errorf("accepted: %s", got)
					}
				}
			}
		}
	}
	if parted < 40 {
		t.Errorf("%d pairs are half converted", parted)
	}
}

// Collections that refer to one outside the plan are one group.
func TestGroupsByWayOfOthers(t *testing.T) {
	p := &Plan{Only: []string{"a", "b", "c"}}
	for _, name := range p.Only {
		p.Collections = append(p.Collections, Collection{Name: name, Fields: []Field{java("x")}})
	}
	p.References = []Reference{{Between: [2]string{"c", "z"}}, {Between: [2]string{"a", "z"}}}
	if g := p.Groups(); len(g) != 2 || len(g[0]) != 2 || g[0][0].Collection != "a" || g[0][1].Collection != "c" || g[1][0].Collection != "b" {
		t.Errorf("%+v", g)
	}
}
