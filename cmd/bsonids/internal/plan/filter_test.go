package plan

import (
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
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
	if one.SkipList("") == two.SkipList("") {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// A filter of an entry that has converted values is not edited; another entry may be.
func TestFilterFrozen(t *testing.T) {
	converted := []kinds.Task{split().Steps()[0].Task}
	is := split()
	is.Collections[0].Filter = `{"year":{"$numberInt":"2018"}}`
	if got := is.Frozen(converted); len(got) != 1 || got[0] != `the collection "orders" with the filter {"year":{"$numberInt":"2019"}} is not in the plan any more` {
		t.Errorf("%q", got)
	}
	is = split()
	is.Collections[2].Filter = `{"year":{"$numberInt":"2018"}}` // which has not begun
	if got := is.Frozen(converted); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
