package decide

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidrep"
)

// clocked returns values of one generator that counts in the byte of the variant, and otherwise writes the same bytes: in network
// order, all of them have the variant and one version. Other bytes are those that a seed gives.
func clocked(seed uint64) source {
	u, n := stamped(rand.New(rand.NewPCG(seed, 9)), []byte{2, 3, 4, 5, 8}[seed%5]), byte(0) // without those of a time
	return func(r *rand.Rand) uuid.UUID {
		u[8], n = 0x80|n&0x3f, n+1
		u[9] = byte(r.Uint32())
		return u
	}
}

// Values of a counter have 64 different cells, and prove no order, alone or beside UUIDs, of which chance makes some
// fit as they do.
func TestCountersProveNothing(t *testing.T) {
	for seed := range uint64(16) {
		for _, is := range legacy {
			for _, from := range legacy {
				d, _ := decided(t, seed, from, nil, group{500, clocked(seed), is})
				if f := d.Fields[0]; f.Basis != None || len(f.Against) > 0 {
					t.Errorf("seed %d, %s as %s: %+v", seed, is, from, f)
				}
				// Those of 1000 random values that fit by chance have most of the bits beside the version that there are.
				d, _ = decided(t, seed, from, nil, group{60, clocked(seed), is}, group{1000, hash, uuidrep.PythonLegacy})
				if f := d.Fields[0]; f.Basis != None || len(f.Against) > 0 {
					t.Errorf("seed %d, %s beside hashes, as %s: %+v", seed, is, from, f)
				}
				beside := named(uuid.NewSHA1)
				d, _ = decided(t, seed, from, nil, group{300, beside, uuidrep.JavaLegacy}, group{500, clocked(seed), is})
				f := d.Fields[0]
				for _, a := range f.Against {
					if a.Order != "javaLegacy" {
						t.Errorf("seed %d, %s beside javaLegacy, as %s: %+v", seed, is, from, f)
					}
				}
				if from == uuidrep.JavaLegacy && !slices.Equal(f.Versions, []int{5}) || from != uuidrep.JavaLegacy && f.Basis != None {
					t.Errorf("seed %d, %s beside javaLegacy, as %s: %+v", seed, is, from, f)
				}
			}
		}
	}
}

// A version of a tenth of the values is found beside another one, whose values have the variant, too.
func TestSmallerVersionIsFound(t *testing.T) {
	for _, from := range legacy {
		for _, n := range []int{200, 1000, 5000} {
			d, _ := decided(t, uint64(n), from, nil, group{n * 8 / 10, v4, from}, group{n / 10, named(uuid.NewMD5), from}, group{n / 10, hash, from})
			if f := d.Fields[0]; !slices.Equal(f.Versions, []int{3, 4}) || len(f.Against) > 0 {
				t.Errorf("%d as %s: %+v", n, from, f)
			}
		}
	}
}
