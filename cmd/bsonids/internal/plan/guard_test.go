package plan

import (
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// A plan writes that there is no guard, and reads the level in any letter case.
func TestGuardInFile(t *testing.T) {
	p := &Plan{Database: "shop", To: "standard", Collections: []Collection{{Name: "c", Fields: []Field{java("a")}}}}
	b := string(write(t, p))
	if !strings.Contains(b, "\n    guard: none\n") {
		t.Fatal(b)
	}
	for word, want := range map[string]string{"none": "", "None": "", "moderate": "moderate", "STRICT": "strict"} {
		q, err := Parse([]byte(strings.Replace(b, "guard: none", "guard: "+word, 1)))
		if err != nil || q.Collections[0].Guard != want {
			t.Errorf("%s: %+v, %v", word, q, err)
		}
		d := strings.Join(Changes(p, q), "; ")
		if (d == "") != (want == "") || want != "" && !strings.Contains(d, "\"c\": guard was none and is "+want) {
			t.Errorf("%s: %s", word, d)
		}
	}
	q, err := Parse([]byte(strings.Replace(b, "    guard: none\n", "", 1)))
	if err != nil || len(Changes(p, q)) > 0 {
		t.Error(q, err)
	}
}

// What cannot be guarded is an error of the plan that names the reason.
func TestGuardCheck(t *testing.T) {
	text := Field{Path: "note", Stored: kinds.OfText, Decision: Convert("text"), Evidence: []Evidence{{Order: "text", By: decide.Evidence, Versions: []int{4}}}}
	goStruct := Field{Path: "user", Stored: kinds.GoStruct, Decision: Convert("goStruct"), Evidence: []Evidence{{Order: "goStruct", By: decide.Evidence, Versions: []int{4}}}}
	left := java("by.*.id")
	left.Decision = Leave
	for name, tt := range map[string]struct {
		to, into string
		fields   []Field
		want     string // none if it can be guarded
	}{
		"two kinds":          {"standard", "", []Field{java("customer"), java("items[].sku"), text, left}, ""},
		"_id":                {"standard", "", []Field{java("_id")}, "_id cannot be converted in place"},
		"a copy":             {"standard", "new", []Field{java("_id")}, "it is copied"},
		"one subtype":        {"csharpLegacy", "", []Field{java("a")}, "a: the old and the new values have subtype 3"},
		"Go structs":         {"standard", "", []Field{goStruct}, "user: a validator does not tell Go structs"},
		"map keys":           {"standard", "", []Field{java("by.*.id")}, "by.*.id: map keys"},
		"a number":           {"standard", "", []Field{java("items.0.sku")}, "the name 0 is a number"},
		"a dollar sign":      {"standard", "", []Field{java("ref.$id")}, "begins with a dollar sign"},
		"arrays in arrays":   {"standard", "", []Field{java("deep[][]")}, "deep[][]: an array in an array"},
		"nothing to convert": {"standard", "", []Field{left}, "no field is converted"},
		"too many names":     {"standard", "", []Field{java("a.b.c.d.e.f.g.h.i")}, "more than 8 names"},
	} {
		for _, level := range []string{"moderate", "strict"} {
			p := &Plan{Database: "shop", To: tt.to, Collections: []Collection{{Name: "c", Into: tt.into, Guard: level, Fields: tt.fields}}}
			var got []string
			for _, problem := range p.Check() {
				if strings.Contains(problem, "cannot be guarded") {
					got = append(got, problem)
				}
			}
			if tt.want == "" && got != nil || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("%s, %s: %q, want %q", name, level, got, tt.want)
			}
		}
	}
	dump := &Plan{Dump: &Dump{}, To: "standard", Collections: []Collection{{Name: "c", Guard: "strict", Fields: []Field{java("a")}}}}
	if err := dump.MayApply(); err == nil || !strings.Contains(err.Error(), "cannot be guarded: it is in a dump") {
		t.Error(err)
	}
}
