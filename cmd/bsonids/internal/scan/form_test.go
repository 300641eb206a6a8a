package scan

import (
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// The evidence for text and for documents of Go structs counts how they are written, the versions, and
// the ids that other fields have in whatever form.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	users, visits := NewCollector("db.users"), NewCollector("db.visits")
	for i := range 40 {
		u := uuid.UUID(v4(r, i))
		text := []string{u.String(), u.URN(), "{" + u.String() + "}", hex.EncodeToString(u[:])}[i%4]
		doc := bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
		if i%4 > 0 {
			doc = append(doc, bson.E{Key: "valid", Value: true})
		}
		other := any(bson.Binary{Subtype: 4, Data: u[:]})
		if i >= 20 {
			other = uuid.New().String()
		}
		collect(t, users, bson.D{{Key: "_id", Value: other}})
		collect(t, visits, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: text}, {Key: "by", Value: doc}})
	}
	collect(t, visits, bson.D{{Key: "_id", Value: 1}, {Key: "user", Value: uuid.Nil.String()},
		{Key: "by", Value: bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}})
	collect(t, visits, bson.D{{Key: "_id", Value: 2}, {Key: "user", Value: "d41d8cd98f00b204e9800998ecf8427"}})
	fields := Judge([]*Collector{users, visits}, now)[1].Fields
	form := func(path string) FormEvidence {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Path == path })
		if i < 0 || len(fields[i].Forms) != 1 {
			t.Fatalf("%s: %+v", path, fields)
		}
		return fields[i].Forms[0]
	}
	want := FormEvidence{Form: "text", Distinct: 41, Sample: 40, Uninformative: 1, Fits: 40, Versions: [9]int{4: 40},
		Written: Written{Hyphens: 11, URN: 10, Braces: 10, Digits: 10}, Matches: 20, MatchedIn: "db.users _id", Comparable: 40,
		Reasons: []string{"11 with hyphens, 10 in braces, 10 after urn:uuid:, 10 with 32 digits and no hyphens",
			"40 of 40 distinct UUIDs have the variant and a version of RFC 9562: 4", "1 have no version, such as the nil UUID", "20 of 40 comparable UUIDs equal ids in db.users _id"}}
	if got := form("user"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Form, want.Written, want.Reasons = "goStruct", Written{UUID: 10, Valid: 30, Null: 1}, slices.Clone(want.Reasons)
	want.Reasons[0] = "10 {uuid: …}, 30 {uuid: …, valid: true}, 1 {uuid: …, valid: false}, which is no UUID"
	// The text with 32 digits has no known order.
	want.Matches, want.MatchedIn, want.Reasons[3] = 30, "db.visits user", "30 of 40 comparable UUIDs equal ids in db.visits user"
	if got := form("by"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// The union of two samples has the values with the least hashes of those that either has seen.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 10, sketchSize, 3 * sketchSize} {
		for _, m := range []int{0, 10, sketchSize - 1, 5 * sketchSize} {
			var a, b, both sketch
			for i := range n + m {
				v := noBits(r, i)
				both.add(v)
				if i < n {
					a.add(v)
				} else {
					b.add(v)
				}
			}
			a.merge(&b)
			if a.full != both.full && a.limit() > both.limit() || len(a.entries) > sketchSize || len(a.entries) != len(a.held) {
				t.Errorf("%d and %d: %d entries, full %v", n, m, len(a.entries), a.full)
			}
			for _, e := range both.entries {
				if _, held := a.held[e.value]; !held && e.hash < a.limit() {
					t.Errorf("%d and %d: a value below the limit is missing", n, m)
				}
			}
			if d := float64(a.distinct()); d < 0.8*float64(n+m) || d > 1.2*float64(n+m) {
				t.Errorf("%d and %d: about %.0f distinct values", n, m, d)
			}
		}
	}
}
