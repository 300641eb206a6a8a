package convert

import (
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// A value that was listed and has not changed has one reason, also if its name has a dot or occurs twice.
func TestListedAtOddPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	value := func() bson.Binary { return kindstest.Stored([16]byte(kindstest.Octets(r)), "javaLegacy") }
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "x.y", Value: value()}, {Key: "x", Value: bson.D{{Key: "y", Value: value()}}},
		{Key: "t", Value: value()}, {Key: "t", Value: value()}, {Key: "", Value: value()}})
	c := conversion(t, "javaLegacy")
	p, err := c.Plan(doc)
	if err != nil || len(p.Changes) != 1 || len(p.Skipped) != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	list := &Retry{entries: make(map[string]*listed)}
	for _, l := range p.Skipped {
		list.add(p.ID, listedValue{l.Path, l.Value})
	}
	list.add(p.ID, listedValue{p.Changes[0].Path, p.Changes[0].Old})
	if list.limit(&p, doc, c); len(p.Changes) != 1 || len(p.Skipped) != 4 {
		t.Errorf("%+v", p)
	}
}

// The _ids of a list are in one query, which is not larger than a command may be: 16 MiB. Those of a longer list are not.
func TestListFilter(t *testing.T) {
	for _, tt := range []struct {
		ids, size int
		whole     bool
	}{{10_000, 4, true}, {10_001, 4, false}, {10_000, 800, true}, {10_000, 2000, false}, {1, 15 << 20, false}} {
		list := &Retry{entries: make(map[string]*listed)}
		for i := range tt.ids {
			id := marshal(t, bson.D{{Key: "_id", Value: append([]byte{byte(i), byte(i >> 8)}, make([]byte, tt.size-2)...)}}).Lookup("_id")
			list.add(id, listedValue{path: "a"})
		}
		f := list.Filter()
		if size := len(marshal(t, append(bson.D{}, f...))); (f != nil) != tt.whole || size > 16<<20 {
			t.Errorf("%d _ids of %d bytes: a filter of %d bytes", tt.ids, tt.size, size)
		}
	}
}

// A document that another program changed is planned again for what is listed alone: what it put in the place of a listed value
// is left, and what was not listed is neither converted nor listed.
func TestOnlyListed(t *testing.T) {
	c := conversion(t, "javaLegacy")
	old, other := kindstest.Value("javaLegacy"), bson.Binary{Subtype: 3, Data: make([]byte, 16)}
	plan := func(doc bson.D) Planned {
		p, err := c.Plan(marshal(t, append(bson.D{{Key: "_id", Value: 1}}, doc...)))
		if err != nil {
			t.Fatal(err)
		}
		return Planned{Plan: p}
	}
	earlier := plan(bson.D{{Key: "a", Value: old}, {Key: "b", Value: old}})
	p := plan(bson.D{{Key: "a", Value: old}, {Key: "b", Value: other}, {Key: "c", Value: old}})
	p.only(earlier)
	if len(p.Changes) != 1 || p.Changes[0] != earlier.Changes[0] || len(p.Skipped) != 1 || p.Skipped[0].Path != "b" || p.Skipped[0].Value != (rule.Value{Subtype: 3}) || p.Skipped[0].Reason != changedListed {
		t.Errorf("%+v", p)
	}
}
