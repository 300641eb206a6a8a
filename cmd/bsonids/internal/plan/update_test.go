package plan

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// shopPlan returns a plan as the survey of a database suggests it.
func shopPlan() *Plan {
	left := Field{Path: "note", Stored: kinds.OfText, Decision: Leave, Comment: []string{"left"}}
	unsure := java("md5")
	unsure.Decision, unsure.Comment = Unknown, []string{"unknown"}
	return &Plan{Database: "shop", To: "standard", Made: time.Unix(0, 0).UTC(), Comment: []string{"A plan."}, ReferencesComment: []string{"References."},
		Collections: []Collection{
			{Name: "orders", UUID: "01", Comment: []string{"10 documents"}, Fields: []Field{java("customer"), left}},
			{Name: "files", UUID: "02", Fields: []Field{unsure}},
		}, References: []Reference{{Between: [2]string{"orders", "files"}, Fields: []string{"customer", "md5"}}}}
}

// updated returns the text of a plan that is brought up to date, and what is said.
func updated(t *testing.T, text string, fresh *Plan, begun []Step) (string, []string) {
	t.Helper()
	return updatedWith(t, text, fresh, begun, nil)
}

func updatedWith(t *testing.T, text string, fresh *Plan, begun []Step, adds []string) (string, []string) {
	t.Helper()
	_, b, notes, err := update([]byte(text), func(kinds.Kind) *Plan { return fresh }, begun, adds)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), notes
}

// edited is the plan after a person has edited it.
func edited(t *testing.T) string {
	t.Helper()
	text := string(write(t, shopPlan()))
	for _, r := range [][2]string{
		{"decision: unknown", "decision: LEAVE # checksums, says Ann"},
		{"  - name: \"files\"", "  # The files of the web site.\n  - name: \"files\""},
		{"made:", "# Reviewed on Monday.\n\n\nmade:"},
		{"references:\n", "references: # both are old\n"},
	} {
		if !strings.Contains(text, r[0]) {
			t.Fatalf("no %q in %s", r[0], text)
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	return text
}

// Nothing new changes nothing but the time.
func TestUpdateWithNothingNew(t *testing.T) {
	text := edited(t)
	fresh := shopPlan()
	fresh.Made = time.Unix(1e9, 0)
	got, notes := updated(t, text, fresh, nil)
	if want := strings.Replace(text, "1970-01-01T00:00:00Z", "2001-09-09T01:46:40Z", 1); got != want || len(notes) > 0 {
		t.Errorf("%q\n%s", notes, got)
	}
}

// What is new comes in as unknown, or as what it is if nothing is to be converted. Decisions, comments and edits
// stay, and what is gone is said.
func TestUpdate(t *testing.T) {
	text := edited(t)
	fresh := shopPlan()
	fresh.Collections[0].Fields[0].Evidence[0].Versions = []int{1, 4}
	fresh.Collections[0].Fields = append(fresh.Collections[0].Fields, java("seller"), Field{Path: "seller", Stored: kinds.OfText, Decision: Leave})
	fresh.Collections = append(fresh.Collections[:1], Collection{Name: "users", Into: "users_standard", Comment: []string{"5 documents"}, Fields: []Field{java("_id")}})
	fresh.References = []Reference{{Between: [2]string{"orders", "users"}, Fields: []string{"customer", "_id"}}}
	got, notes := updated(t, text, fresh, nil)
	p, err := Parse([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	want := shopPlan()
	want.Collections[1].Fields[0].Decision = Leave
	want.Collections[0].Fields[0].Evidence[0].Versions = []int{1, 4}
	seller, id := java("seller"), java("_id")
	seller.Decision, id.Decision = Unknown, Unknown
	want.Collections[0].Fields = append(want.Collections[0].Fields, seller, Field{Path: "seller", Stored: kinds.OfText, Decision: Leave})
	want.Collections = append(want.Collections, Collection{Name: "users", Fields: []Field{id}})
	want.References = append(want.References, fresh.References...)
	if d := Changes(want, p); len(d) > 0 {
		t.Errorf("%q\n%s", d, got)
	}
	wantNotes := []string{`"files": the collection is gone, or has no UUIDs any more: remove it from the plan`, `"orders": the evidence of "customer" (subtype 3) was [{order: javaLegacy, by: evidence, versions: [4]}, {order: csharpLegacy, by: none}, {order: pythonLegacy, by: none}]` +
		` and is [{order: javaLegacy, by: evidence, versions: [1, 4]}, {order: csharpLegacy, by: none}, {order: pythonLegacy, by: none}]`,
		`"orders": the field "seller" (subtype 3) is new`, `"orders": the field "seller" (text) is new`, `"users": the collection is new`, `the reference between "orders" "customer" and "users" "_id" is new`}
	if !reflect.DeepEqual(notes, wantNotes) {
		t.Errorf("%q", notes)
	}
	// Every line of before is there, in the same order, but those of the evidence.
	rest := strings.Split(got, "\n")
	for l := range strings.Lines(text) {
		if l = strings.TrimSuffix(l, "\n"); strings.Contains(l, "{order:") {
			continue
		}
		i := 0
		for i < len(rest) && rest[i] != l {
			i++
		}
		if i == len(rest) {
			t.Fatalf("the line %q is gone:\n%s", l, got)
		}
		rest = rest[i+1:]
	}
	if !strings.Contains(got, "# new: the survey suggests: convert from javaLegacy") {
		t.Error(got)
	}
	// Once more changes nothing, and what is gone is said again.
	again, notes := updated(t, got, fresh, nil)
	if again != got || len(notes) != 1 {
		t.Errorf("%q\n%s", notes, again)
	}
}

// What was converted is not judged again, nor what the conversion has written.
func TestUpdateAfterBegin(t *testing.T) {
	p := shopPlan()
	p.To = "csharpLegacy"
	p.Collections[1].Into, p.Collections[1].Fields[0].Decision = "files_csharp", Convert("javaLegacy")
	text := string(write(t, p))
	fresh := shopPlan()
	fresh.To = "csharpLegacy"
	fresh.Collections[0].Fields[0].Evidence = []Evidence{{Order: "csharpLegacy", By: decide.Evidence, Versions: []int{4}}}
	fresh.Collections = append(fresh.Collections[:1], Collection{Name: "files", UUID: "99", Fields: []Field{java("other")}}, Collection{Name: "files_csharp", Fields: []Field{java("md5")}})
	fresh.References = []Reference{{Between: [2]string{"orders", "files_csharp"}}}
	got, notes := updated(t, text, fresh, p.Steps())
	if got != text || len(notes) > 0 {
		t.Errorf("%q\n%s", notes, got)
	}
	// Another collection that has taken the name of one is said.
	if got, notes = updated(t, text, fresh, p.Steps()[:1]); len(notes) != 3 || !strings.Contains(notes[0], `"files": another collection has the name`) {
		t.Errorf("%q\n%s", notes, got)
	}
}

// Lists that are empty get elements, and a plan without references gets them.
func TestUpdateOfEmpty(t *testing.T) {
	text := string(write(t, &Plan{Database: "shop", To: "standard", Made: time.Unix(0, 0).UTC()}))
	for _, text := range []string{text, strings.Replace(text, "references: []\n", "", 1)} {
		got, _ := updated(t, text, shopPlan(), nil)
		p, err := Parse([]byte(got))
		if err != nil || len(p.Collections) != 2 || len(p.References) != 1 || p.Collections[0].Fields[0].Decision != Unknown {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

// A plan in another layout is either changed as it must be, or not at all.
func TestUpdateLayout(t *testing.T) {
	text := edited(t)
	fresh := shopPlan()
	fresh.Collections[0].Fields = append(fresh.Collections[0].Fields, java("seller"))
	fresh.Collections[1].Fields[0].Evidence[0].Versions = []int{7}
	flow := `{"schemaVersion": 1, "database": "shop", "to": "standard", "made": 1970-01-01T00:00:00Z, "collections": [{"name": "orders", "uuid": "01", "fields": []}]}`
	for _, text := range []string{flow, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n      ", "\n        "), strings.ReplaceAll(text, "\n  ", "\n "),
		strings.Replace(text, "    fields:\n", "    fields: # all\n\n", 1)} {
		_, b, _, err := update([]byte(text), func(kinds.Kind) *Plan { return fresh }, nil, nil)
		if err != nil {
			if !errors.Is(err, ErrLayout) {
				t.Errorf("%v\n%s", err, text)
			}
			continue
		}
		p, err := Parse(b)
		if err != nil || p.Collections[0].find(java("seller")) < 0 || strings.Contains(text, "Ann") && !strings.Contains(string(b), "Ann") {
			t.Errorf("%v\n%s", err, b)
		}
	}
}

// A plan of some collections stays one of these, and gets the one that a person adds as the survey suggests it. The
// reference to it is between two collections of the plan then. What a person accepted stays.
func TestUpdateAdds(t *testing.T) {
	p := shopPlan()
	p.Only = []string{"files", "orders"}
	p.References = []Reference{
		{Between: [2]string{"orders", "users"}, Fields: []string{"customer", "_id"}, Outside: []kinds.Stored{kinds.Subtype3}, Accepted: true},
		{Between: [2]string{"orders", "visits"}, Fields: []string{"customer", "of"}, Outside: []kinds.Stored{kinds.Subtype3}},
	}
	text := string(write(t, p))
	fresh := shopPlan()
	fresh.Only, fresh.References = p.Only, slices.Clone(p.References)
	fresh.References[1].Outside = []kinds.Stored{kinds.Subtype4}
	fresh.References = append(fresh.References, Reference{Between: [2]string{"files", "visits"}, Fields: []string{"md5", "file"}, Outside: []kinds.Stored{kinds.OfText}})
	got, notes := updated(t, text, fresh, nil)
	want := strings.Replace(text, `"of"]`+"\n    outside: [subtype 3]", `"of"]`+"\n    outside: [subtype 4]", 1) +
		"  - between: [\"files\", \"visits\"]\n    fields: [\"md5\", \"file\"]\n    outside: [text]\n"
	if got != want || len(notes) != 1 {
		t.Errorf("%q\n%s", notes, got)
	}
	fresh.Only = append(fresh.Only, "users")
	fresh.Collections = append(fresh.Collections, Collection{Name: "users", Into: "users_standard", Fields: []Field{java("_id")}})
	fresh.Collections[0].Into, fresh.Collections[1].Into = "orders_standard", "files_standard"
	// The reference has its ends in the other order now.
	fresh.References[0] = Reference{Between: [2]string{"users", "orders"}, Fields: []string{"_id", "customer"}}
	for _, tt := range []struct {
		name   string
		edit   func(p *Plan)
		begun  []Step
		copied bool
	}{
		{"accepted", func(*Plan) {}, nil, false},
		{"not accepted", func(p *Plan) { p.References[0].Accepted = false }, nil, true},
		{"of another group", func(p *Plan) {
			p.References[0].Accepted = false
			fresh.References[0].Between[1] = "others"
		}, nil, false},
		{"changed in place", func(p *Plan) { p.References[0].Accepted = false }, []Step{{Collection: "orders", Pairs: []kinds.Pair{{From: "javaLegacy", To: "standard", Fields: []string{"customer"}}}}}, false},
		{"guarded", func(p *Plan) { p.References[0].Accepted, p.Collections[0].Guard = false, "strict" }, nil, false},
		{"from two representations", func(p *Plan) {
			p.References[0].Accepted = false
			p.Collections[0].Fields = append(p.Collections[0].Fields, Field{Path: "g", Stored: kinds.Subtype0, Decision: Convert("generic")})
		}, nil, true},
	} {
		p, err := Parse([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		fresh.References[0].Between[1] = "orders"
		tt.edit(p)
		got, notes := updatedWith(t, string(write(t, p)), fresh, tt.begun, []string{"users"})
		is, err := Parse([]byte(got))
		if err != nil {
			t.Fatal(err)
		}
		after := *p
		after.Only, after.Collections = fresh.Only, append(slices.Clone(p.Collections), fresh.Collections[2])
		after.References = slices.Clone(p.References)
		after.References[0].Outside = nil
		if !slices.ContainsFunc(p.References, fresh.References[0].same) {
			after.References = append(after.References, fresh.References[0])
		}
		if tt.copied {
			after.Collections[0].Into = "orders_standard"
		}
		if is.Digest() != after.Digest() || !slices.Contains(notes, `"users": the collection is added`) ||
			slices.Contains(notes, `"orders": it is copied now, with those that refer to each other`) != tt.copied {
			t.Errorf("%s: %q\n%s", tt.name, notes, got)
		}
	}
}

// The comment about the plan describes it as it is after the edit, with the time that the last survey took. What a
// person has written there stays, and a person who has removed its end does not get it back.
func TestUpdateHead(t *testing.T) {
	about := func(p *Plan, documents int64) []string {
		q := *p
		q.Comment = nil
		(&builder{survey: &survey.Survey{Collections: []survey.Collection{{Took: time.Second, Documents: documents}}}}).describe(&q)
		return q.Comment
	}
	p := shopPlan()
	p.Comment = about(p, 10)
	old := string(write(t, p))
	for _, has := range []string{"to read 10 documents", "orders: 1 fields from javaLegacy"} {
		if !strings.Contains(old, has) {
			t.Fatalf("no %q in %s", has, old)
		}
	}
	text := strings.Replace("# By Ann.\n"+old, "# It took", "# Ask Bob before you\n#   apply it: 2 of us decide.\n# It took", 1)
	text = strings.Replace(text, "decision: unknown", "decision: convert from javaLegacy", 1)
	is, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := string(withHead([]byte(text), about(is, 77)))
	head, rest, _ := strings.Cut(got, "schemaVersion")
	_, wanted, _ := strings.Cut(text, "schemaVersion")
	if rest != wanted {
		t.Errorf("the plan has changed: %s", got)
	}
	for has, n := range map[string]int{"# By Ann.\n# A plan to convert": 1, "to read 77 documents": 1, "to read 10": 0, "# It took": 1, "# group": strings.Count(strings.Join(about(is, 1), "\n"), "group "),
		"# orders: 1": 0, "files: 1 fields from javaLegacy": 1, "orders: 1 fields from javaLegacy": 1, "# Ask Bob before you\n#   apply it: 2 of us decide.\n": 1, headLast: 1} {
		if strings.Count(head, has) != n {
			t.Errorf("%q is there %d times, want %d, in %s", has, strings.Count(head, has), n, head)
		}
	}
	if again := string(withHead([]byte(got), about(is, 77))); strings.Count(again, "Bob") != 1 || strings.Count(again, "It took") != 1 {
		t.Error(again)
	}
	cut := strings.Replace(text, headLast, "", 1)
	if string(withHead([]byte(cut), about(is, 77))) != cut {
		t.Error("a comment that a person has removed is there again")
	}
}
