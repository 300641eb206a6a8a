package decide

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A value that is proven in one collection decides about an equal value in another one of the
// database, and not in one of another database.
func TestSurveyShares(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	p := newPass(t)
	orders, elsewhere := p.collection("d", "d.orders"), p.collection("other", "other.orders")
	var last [16]byte
	for range 50 {
		last = uuidrep.JavaLegacy.Permute(v4(r))
		p.add("_id", last)
	}
	for _, c := range []*Surveyed{orders, elsewhere} {
		put(t, c, "customer", kinds.Subtype3, kinds.Spelled{UUID: last})
	}
	p.decide(uuidrep.JavaLegacy)
	for c, want := range map[*Surveyed]bool{orders: true, elsewhere: false} {
		d := c.Decision(kindstest.Kind(t, "javaLegacy"))
		if reason := d.Judge(uuidrep.JavaLegacy).Value([]byte("customer"), last); (reason == "") != want {
			t.Errorf("%s: %q", c.Namespace, reason)
		}
	}
}

// The decisions about a collection that is read again are those about one that was read once, whatever the
// order of the values.
func TestReadAgain(t *testing.T) {
	type value struct {
		field  string
		stored kinds.Stored
		of     kinds.Spelled
	}
	sources := []source{random, v4, v7, v1, hash, func(*rand.Rand) (u uuid.UUID) { return u }}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 77))
		var values [2][]value
		var pool [][16]byte
		for n := range values {
			for i := range 100 + r.IntN(800) {
				u := [16]byte(sources[r.IntN(1+r.IntN(len(sources)))](r))
				if len(pool) > 0 && r.IntN(6) == 0 {
					u = pool[r.IntN(len(pool))]
				}
				pool = append(pool, u)
				v := value{fmt.Sprint("f", i%4), kinds.Subtype3, kinds.Spelled{UUID: legacy[i%3].Permute(u)}}
				if ways := kinds.All(); r.IntN(2) == 0 {
					v.stored = ways[r.IntN(len(ways))].Stored()
					v.of = kinds.Spelled{UUID: u, Certain: v.stored == kinds.Subtype4 || !v.stored.IsBinary() && r.IntN(2) == 0}
				}
				values[n] = append(values[n], v)
			}
		}
		decisions := func(twice bool) (out []Decision) {
			p := newPass(t)
			all := []*Surveyed{p.of, p.collection("d", "d.b")}
			for n, c := range all {
				if twice { // the first time ends early
					for _, v := range values[n][:len(values[n])/2] {
						put(t, c, v.field, v.stored, v.of)
					}
					c.Forget()
					r.Shuffle(len(values[n]), func(i, j int) { values[n][i], values[n][j] = values[n][j], values[n][i] })
				}
				for _, v := range values[n] {
					put(t, c, v.field, v.stored, v.of)
				}
			}
			p.decide(uuidrep.JavaLegacy)
			for _, c := range all {
				for _, k := range kinds.All() {
					out = append(out, c.Decision(k))
				}
			}
			return out
		}
		if once, again := decisions(false), decisions(true); !reflect.DeepEqual(once, again) {
			t.Fatalf("seed %d:\n%+v\nwant\n%+v", seed, again, once)
		}
	}
}
