package plan

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// A collection whose _id has values to convert is copied together with those that it refers to, also by way of
// others. Fields from all representations are converted in it.
func TestCopies(t *testing.T) {
	generic := func(path string) Field {
		return Field{Path: path, Stored: kinds.Subtype0, Decision: Convert("generic"), Evidence: []Evidence{{Order: "generic", By: decide.Evidence}}}
	}
	left := java("x")
	left.Decision = Leave
	odd := func() Field { // an update cannot address it
		f := java("odd")
		f.odd, f.values = scan.Odd{Unaddressable: 1, Reason: errors.New("odd")}, 1
		return f
	}
	symmetric := java("_id.a")
	for i := range symmetric.Evidence {
		symmetric.Evidence[i].By = decide.Symmetric
	}
	p := &Plan{Database: "d", Collections: []Collection{
		{Name: "orders", Fields: []Field{generic("code"), java("customer"), odd()}},
		{Name: "customers", Fields: []Field{java("_id"), generic("code")}},
		{Name: "lines", Fields: []Field{generic("sku"), java("order")}},
		{Name: "notes", Fields: []Field{left}},
		{Name: "alone", Fields: []Field{generic("code"), java("x"), odd()}},
		{Name: "keys", Fields: []Field{symmetric, generic("_id.b")}},
		{Name: "rooms", Fields: []Field{java("of"), java("visit")}},
		{Name: "visits", Fields: []Field{java("x")}},
	}, References: []Reference{
		{Between: [2]string{"customers", "orders"}, Fields: []string{"_id", "customer"}},
		{Between: [2]string{"orders", "lines"}, Fields: []string{"number", "order"}},
		{Between: [2]string{"orders", "notes"}, Fields: []string{"customer", "x"}},
		{Between: [2]string{"rooms", "visits"}, Fields: []string{"visit", "x"}},
	}}
	b := &builder{survey: &survey.Survey{Names: []string{"lines_standard", "customers"}}}
	b.copies(p)
	into := make(map[string]string)
	decided := make(map[string]Decision)
	for _, c := range p.Collections {
		into[c.Name] = c.Into
		for _, f := range c.Fields {
			decided[c.Name+" "+f.Path] = f.Decision
		}
	}
	if want := map[string]string{"orders": "orders_standard", "customers": "customers_standard", "lines": "lines_standard_2", "notes": "", "alone": "", "keys": "keys_standard", "rooms": "", "visits": ""}; !maps.Equal(into, want) {
		t.Errorf("got %v", into)
	}
	j, g := Convert("javaLegacy"), Convert("generic")
	if want := map[string]Decision{"orders code": g, "orders customer": j, "orders odd": j, "alone odd": Leave, "keys _id.a": j, "keys _id.b": g, "customers _id": j, "customers code": g, "lines sku": g, "lines order": j,
		"notes x": Leave, "alone code": g, "alone x": j, "rooms of": j, "rooms visit": j, "visits x": j}; !reflect.DeepEqual(decided, want) {
		t.Errorf("got %v", decided)
	}
}

// A collection that a cutover cannot exchange gets no copy: its _id is left, and so is what refers to copies. A person may
// accept a copy of it.
func TestUnexchangeable(t *testing.T) {
	const why = "it is capped"
	for _, tt := range []struct {
		name    string
		log     Collection
		others  []Collection
		refers  string // field of log that refers to the _id of users, if any
		decided map[string]Decision
		into    string
	}{
		{"_id", Collection{Fields: []Field{java("_id"), java("x")}}, nil, "", map[string]Decision{"_id": Leave, "x": Convert("javaLegacy")}, ""},
		{"in place", Collection{Fields: []Field{java("x")}}, nil, "", map[string]Decision{"x": Convert("javaLegacy")}, ""},
		{"refers to a copy", Collection{Fields: []Field{java("user"), java("x")}}, []Collection{{Name: "users", Fields: []Field{java("_id")}}}, "user",
			map[string]Decision{"user": Leave, "x": Leave}, "users_standard"},
		{"refers to one in place", Collection{Fields: []Field{java("_id"), java("user")}}, []Collection{{Name: "users", Fields: []Field{java("x")}}}, "user",
			map[string]Decision{"_id": Leave, "user": Convert("javaLegacy")}, ""},
	} {
		tt.log.Name, tt.log.unexchangeable = "log", why
		p := &Plan{Database: "d", Collections: append(tt.others, tt.log)}
		if tt.refers != "" {
			p.References = []Reference{{Between: [2]string{"log", "users"}, Fields: []string{tt.refers, p.Collections[0].Fields[0].Path}}}
		}
		b := &builder{survey: &survey.Survey{}}
		b.copies(p)
		log := p.Collections[len(p.Collections)-1]
		for _, f := range log.Fields {
			if said := strings.Contains(strings.Join(f.Comment, "\n"), why); f.Decision != tt.decided[f.Path] || said != (f.Decision == Leave) {
				t.Errorf("%s: %s: %s %q", tt.name, f.Path, f.Decision, f.Comment)
			}
		}
		if log.Into != "" || p.Collections[0].Into != tt.into {
			t.Errorf("%s: %q, %q", tt.name, log.Into, p.Collections[0].Into)
		}
	}
	// A person converts it nevertheless.
	p := &Plan{Database: "d", Collections: []Collection{{Name: "log", Into: "log2", Fields: []Field{java("_id")}}}}
	now := &survey.Survey{Collections: []survey.Collection{{Name: "log", Unexchangeable: why}}}
	if problems := Unaccepted(p, now, p.Steps()); len(problems) > 0 {
		t.Errorf("a copy that is made: %q", problems)
	}
	if problems := Unaccepted(p, now, nil); len(problems) != 1 || !strings.Contains(problems[0], why) || !strings.Contains(problems[0], "accepted: true") {
		t.Errorf("got %q", problems)
	}
	p.Collections[0].Accepted = true
	again, err := Parse(p.Text())
	if err != nil || !slices.Equal(again.Accepted(), []string{"log"}) {
		t.Fatalf("%v: %s", err, p.Text())
	}
	if problems := Unaccepted(again, now, nil); len(problems) > 0 || len(again.Check()) > 0 {
		t.Errorf("got %q, %q", problems, again.Check())
	}
	again.Collections[0].Into, again.Collections[0].Fields = "", []Field{java("x")}
	if got := again.Check(); len(got) != 1 || !strings.Contains(got[0], "accepted means nothing") {
		t.Errorf("got %q", got)
	}
}

// A plan of some collections says how much of the others was searched, and what that may have missed.
func TestSearched(t *testing.T) {
	b := &builder{survey: &survey.Survey{Samples: []survey.Sample{{Name: "all", Read: 5, Of: 5}, {Name: "random", Read: 10, Of: 200, Random: true},
		{Name: "first", Read: 10, Of: 200}, {Name: "empty"}}}}
	p := &Plan{Only: []string{"orders"}}
	b.missed(p)
	// (1 - 10/200)^58 is more than 5 %, and (1 - 10/200)^59 is less.
	want := []string{"  all: 5 of 5, all", "  random: 10 of 200, at random: references in fewer than 59 documents are missed with a probability of more than 5 %",
		"  first: 10 of 200, the first ones, because the server cannot sample: references in the others are not found", "  empty: 0 of 0, all"}
	if got := p.ReferencesComment; len(got) < 4 || !slices.Equal(got[len(got)-4:], want) {
		t.Errorf("got %q", got)
	}
}
