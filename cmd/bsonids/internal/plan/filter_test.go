package plan

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// split returns the plan of a collection that two filters divide.
func split() *Plan {
	return &Plan{Database: "shop", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "orders", UUID: "01", Filter: `{"year":{"$numberInt":"2019"}}`, Fields: []Field{java("customer")}},
		{Name: "users", UUID: "02", Fields: []Field{java("id")}},
		{Name: "orders", UUID: "01", Filter: `{"year":{"$numberInt":"2020"}}`, Fields: []Field{java("customer")}},
	}}
}

// The conversions of one collection are done one after the other, with files of their own.
func TestFilterSteps(t *testing.T) {
	groups := split().Groups()
	if len(groups) != 2 || len(groups[0]) != 2 || groups[0][0].Collection != "orders" {
		t.Fatalf("%+v", groups)
	}
	one, two := groups[0][0], groups[0][1]
	if one.Files("") == two.Files("") || one.Pass != two.Pass {
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
