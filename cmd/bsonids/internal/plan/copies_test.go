package plan

import (
	"maps"
	"reflect"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// A collection whose _id has values to convert is copied together with those that it refers to, also by way of
// others. Fields from another representation are left in a copy.
func TestCopies(t *testing.T) {
	generic := func(path string) Field {
		return Field{Path: path, Stored: kinds.Subtype0, Decision: Convert("generic"), Evidence: []Evidence{{Order: "generic", By: decide.Evidence}}}
	}
	left := java("x")
	left.Decision = Leave
	p := &Plan{Database: "d", To: "standard", Collections: []Collection{
		{Name: "orders", Fields: []Field{generic("code"), java("customer")}},
		{Name: "customers", Fields: []Field{java("_id"), generic("code")}},
		{Name: "lines", Fields: []Field{generic("sku"), java("order")}},
		{Name: "notes", Fields: []Field{left}},
		{Name: "alone", Fields: []Field{generic("code"), java("x")}},
		{Name: "rooms", Fields: []Field{java("of"), java("visit")}},
		{Name: "visits", Fields: []Field{java("x")}},
	}, References: []Reference{
		{Between: [2]string{"customers", "orders"}, Fields: []string{"_id", "customer"}},
		{Between: [2]string{"orders", "lines"}, Fields: []string{"number", "order"}},
		{Between: [2]string{"orders", "notes"}, Fields: []string{"customer", "x"}},
		{Between: [2]string{"rooms", "visits"}, Fields: []string{"visit", "x"}},
	}}
	b := &builder{survey: &survey.Survey{Names: []string{"lines_standard", "customers"}}, to: kinds.Kind{Name: "Standard"}}
	b.copies(p)
	into := make(map[string]string)
	decided := make(map[string]Decision)
	for _, c := range p.Collections {
		into[c.Name] = c.Into
		for _, f := range c.Fields {
			decided[c.Name+" "+f.Path] = f.Decision
		}
	}
	if want := map[string]string{"orders": "orders_standard", "customers": "customers_standard", "lines": "lines_standard_2", "notes": "", "alone": "", "rooms": "", "visits": ""}; !maps.Equal(into, want) {
		t.Errorf("got %v", into)
	}
	j, g := Convert("javaLegacy"), Convert("generic")
	if want := map[string]Decision{"orders code": Leave, "orders customer": j, "customers _id": j, "customers code": Leave, "lines sku": Leave, "lines order": j,
		"notes x": Leave, "alone code": g, "alone x": j, "rooms of": j, "rooms visit": j, "visits x": j}; !reflect.DeepEqual(decided, want) {
		t.Errorf("got %v", decided)
	}
}
