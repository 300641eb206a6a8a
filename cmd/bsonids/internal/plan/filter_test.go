package plan

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// split returns the plan of a collection that two filters divide.
func split() *Plan {
	return &Plan{Database: "shop", To: "standard", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "orders", UUID: "01", Filter: `{"year":{"$numberInt":"2019"}}`, Fields: []Field{java("customer")}},
		{Name: "users", UUID: "02", Fields: []Field{java("id")}},
		{Name: "orders", UUID: "01", Filter: `{"year":{"$numberInt":"2020"}}`, Fields: []Field{java("customer")}},
	}}
}

// A filter is text in extended JSON. Its layout means nothing, a text that is no filter is an error, and bringing the
// plan up to date keeps what was written.
func TestFilterInFile(t *testing.T) {
	p := split()
	text := string(write(t, p))
	wrote := Quote(`{"year":{"$numberInt":"2019"}}`)
	if !strings.Contains(text, "\n    filter: "+wrote+"\n") {
		t.Fatal(text)
	}
	edited := strings.Replace(text, wrote, `'{ "year": 2019 }' # of the old shop`, 1)
	q, err := Parse([]byte(edited))
	if err != nil || q.Digest() != p.Digest() || len(Changes(p, q)) > 0 {
		t.Errorf("%v\n%+v", err, q)
	}
	if got, notes := updated(t, edited, split(), nil); got != edited || len(notes) > 0 {
		t.Errorf("%v\n%s", notes, got)
	}
	for bad, want := range map[string]string{
		`""`: "filter is empty", `'[]'`: "must be a filter", `'{"a": 1} x'`: "must be a filter", `'{"a": {"$oid": 1}}'`: "invalid extended JSON", `{"year": 2019}`: "must be text",
		`'{"year": 2018, "year": 2021}'`: `"year" is there twice`, `'{"$or": [{"a": 1}, {"a": {"$gt": 1, "$gt": 2}}]}'`: `"$gt" is there twice`,
		`'{"year": 2020}'`: "listed twice",
	} {
		if _, err := Parse([]byte(strings.Replace(text, wrote, bad, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}

// The conversions of one collection are done one after the other, with files of their own.
func TestFilterSteps(t *testing.T) {
	groups := split().Groups()
	if len(groups) != 2 || len(groups[0]) != 1 || len(groups[0][0].Steps) != 2 || groups[0][0].Collection != "orders" {
		t.Fatalf("%+v", groups)
	}
	one, two := groups[0][0].Steps[0], groups[0][0].Steps[1]
	if one.Files("") == two.Files("") || !one.Beside(two) || one.Beside(one) || one.Pass != two.Pass {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// A filter of an entry that has converted values is not edited; another entry may be added.
func TestFilterFrozen(t *testing.T) {
	was := split()
	begun := was.Steps()[:1]
	is := split()
	is.Collections[0].Filter = `{"year":{"$numberInt":"2018"}}`
	var frozen *FrozenError
	if _, err := edit(was, is, begun, nil); !errors.As(err, &frozen) || !strings.Contains(err.Error(), `the collection "orders" with the filter {"year":{"$numberInt":"2019"}} was removed`) {
		t.Errorf("%v", err)
	}
	is = split()
	is.Collections[2].Filter = `{"year":{"$numberInt":"2018"}}` // which has not begun
	e, err := edit(was, is, begun, nil)
	if err != nil || len(e.New) != 2 || len(e.Steps) != 1 {
		t.Errorf("%+v, %v", e, err)
	}
}
