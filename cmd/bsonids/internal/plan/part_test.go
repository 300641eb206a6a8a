package plan

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// shared returns the plan of a part of two collections.
func shared(part string) *Plan {
	return &Plan{Database: "shop", Part: part, To: "standard", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "orders", UUID: "01", Fields: []Field{java("customer")}},
		{Name: "users", UUID: "02", Into: "users_new", Fields: []Field{java("_id")}},
	}, References: []Reference{{Between: [2]string{"orders", "users"}, Fields: []string{"customer", "_id"}, Accepted: true}}}
}

// Parts are of one division if their number and what they decide about the collection are the same.
func TestDivision(t *testing.T) {
	const text = "part: 1/8\n" + `collections: [{name: orders, uuid: "01", fields: [customer $java]}, {name: users, into: users_new, fields: [_id $java]}]`
	same := planOf(t, text).Division("orders")
	for _, tt := range []struct {
		name, old, is string
		same          bool
	}{
		{"another part", "1/8", "8/8", true},
		{"another UUID", `"01"`, `"09"`, true},
		{"another evidence", "customer $java", "customer $java14", true},
		{"another collection", "users_new", "other", true},
		{"a field that is left", "customer $java", "customer $java, x $std", true},
		{"another number", "1/8", "1/9", false},
		{"all documents", "part: 1/8\n", "", false},
		{"another field", "customer $java", "customer $java, x $java", false},
		{"trust", "customer $java", "customer $trustedJava", false},
		{"a filter", `uuid: "01"`, `filter: "{}"`, false},
		{"a copy", `uuid: "01"`, "into: new", false},
		{"another target", "part", "to: csharpLegacy\npart", false},
		{"another order", "customer $java", "customer $csharpToo", false},
	} {
		if got := planOf(t, strings.Replace(text, tt.old, tt.is, 1)).Division("orders"); (got == same) != tt.same {
			t.Errorf("%s: %q, and %q", tt.name, got, same)
		}
	}
	if d := planOf(t, strings.Replace(text, "part: 1/8\n", "", 1)).Division("orders"); d != "" {
		t.Error(d)
	}
}

// The part does not change once the plan is applied, also if nothing is converted yet.
func TestPartFrozen(t *testing.T) {
	p := shared("2/8")
	dir := migrated(t, p)
	s, e, err := lock(t, dir, p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	seal(t, s, e, p)
	for _, part := range []string{"3/8", "2/4", ""} {
		var frozen *FrozenError
		if _, err := s.Edit(shared(part)); !errors.As(err, &frozen) || !strings.Contains(err.Error(), "the part was 2/8") {
			t.Errorf("%q: %v", part, err)
		}
	}
	if _, err := s.Edit(shared("2/8")); err != nil {
		t.Error(err)
	}
}
