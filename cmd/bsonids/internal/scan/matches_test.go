package scan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// The order of values without version bits is found from the same ids in a field of another
// collection, as subtype 4 or text.
func TestMatches(t *testing.T) {
	for _, n := range []int{1, 3, 1000, 20000} {
		for rep, want := range map[uuidrep.Representation]string{
			uuidrep.PythonLegacy: "pythonLegacy", uuidrep.CSharpLegacy: "csharpLegacy", uuidrep.JavaLegacy: "javaLegacy",
		} {
			for _, text := range []bool{false, true} {
				r := rand.New(rand.NewPCG(5, 5))
				s := newScan(t)
				legacy, users := s.collector(t, "orders"), s.collector(t, "users")
				for range n {
					id := randomOctets(r)
					collect(t, legacy, bson.D{{Key: "user", Value: stored(id, 3, rep)}})
					var ref any = stored(id, 4, uuidrep.Standard)
					if text {
						ref = uuid.UUID(id).String()
					}
					collect(t, users, bson.D{{Key: "_id", Value: ref}})
				}
				e := evidence(t, s)
				o := order(e, want)
				if string(e.Verdict) != want || o.Matches != e.Distinct || o.MatchedIn != "db.users _id" {
					t.Errorf("%d in %v, text %v: %s %+v", n, rep, text, e.Verdict, e.Orders)
				}
			}
		}
	}
}

// If the version bits and equal ids contradict each other, no order is named.
func TestMatchesDisagree(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	s := newScan(t)
	c, users := s.collector(t, "c"), s.collector(t, "users")
	for i := range 200 {
		id, rep := randomOctets(r), uuidrep.JavaLegacy
		if i%2 == 0 {
			rep = uuidrep.CSharpLegacy
		}
		collect(t, c, bson.D{{Key: "user", Value: stored(id, 3, rep)}})
		collect(t, users, bson.D{{Key: "_id", Value: stored(id, 4, uuidrep.Standard)}})
	}
	if e := evidence(t, s); e.Verdict != "mixed" && e.Verdict != "undetermined" {
		t.Errorf("%s %+v", e.Verdict, e.Orders)
	}
}

// A program changed the subtype from 3 to 4 and kept the bytes. The equal ids then indicate network
// order, and the version bits indicate the actual order. A conversion leaves these values, which prove no second order.
func TestMatchesAgainstBits(t *testing.T) {
	for _, tt := range []struct {
		copied int
		want   string
	}{{1000, "undetermined"}, {300, "javaLegacy"}, {1, "javaLegacy"}, {0, "javaLegacy"}} {
		r := rand.New(rand.NewPCG(16, 16))
		s := newScan(t)
		c, users := s.collector(t, "c"), s.collector(t, "users")
		for i := range 1000 {
			b := stored(v4(r, 0), 3, uuidrep.JavaLegacy)
			collect(t, c, bson.D{{Key: "user", Value: b}})
			if b.Subtype = 4; i < tt.copied {
				collect(t, users, bson.D{{Key: "_id", Value: b}})
			}
		}
		e := evidence(t, s)
		reasons := strings.Join(e.Reasons, "\n")
		if string(e.Verdict) != tt.want || tt.copied > 1 && !strings.Contains(reasons, "db.users _id") || order(e, "javaLegacy").Conversion.Values != int64(1000-tt.copied) {
			t.Errorf("%d copied: %s %+v %q %q", tt.copied, e.Verdict, order(e, "javaLegacy").Conversion, e.Reasons, e.Settle)
		}
	}
}
