package decide

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidrep"
)

// In data without UUIDs of an order, the tests find the order no more often than the level allows.
func TestLevelBySimulation(t *testing.T) {
	const level, fields = 0.3, 3000
	for name, tt := range map[string]struct {
		of     source
		is     uuidrep.Representation
		judged []int
	}{
		"random octets":                   {random, uuidrep.JavaLegacy, []int{network, csharp, java}},
		"version 4 in C# order":           {v4, uuidrep.CSharpLegacy, []int{network, java}},
		"version 4 in network order":      {v4, uuidrep.PythonLegacy, []int{csharp, java}},
		"version 4 in Java order":         {v4, uuidrep.JavaLegacy, []int{network, csharp}},
		"version 7, variant in one order": {v7, uuidrep.CSharpLegacy, []int{network}},
	} {
		r := rand.New(rand.NewPCG(40, 1))
		found := 0
		for range fields {
			var l tally
			for range 20 + r.IntN(60) {
				l.add(tt.is.Permute(tt.of(r)), now)
			}
			any := false
			for _, o := range tt.judged {
				versions, _ := l.evidence(o, l.count(o, nil), level)
				any = any || len(versions) > 0
			}
			if any {
				found++
			}
		}
		// The bound is three standard deviations above the mean. The tests must also find
		// something.
		if most := level*fields + 3*30; float64(found) > most || found == 0 {
			t.Errorf("%s: an order is found in %d of %d fields, want from 1 to %.0f", name, found, fields, most)
		}
	}
}

// Whatever a field contains, a wrong value that is converted fits by variant and version, and its
// field has no proof of an order. A value in the order of --from that is not converted fits another
// order, or has a version that the field does not have.
func TestAnyMixture(t *testing.T) {
	sources := []source{v4, v7, v1, hash, fixedBeginning, func(r *rand.Rand) uuid.UUID { return stamped(r, byte(1+r.IntN(8))) }}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 50))
		from := legacy[r.IntN(3)]
		var groups []group
		for range 1 + r.IntN(3) {
			groups = append(groups, group{1 + r.IntN(1<<r.IntN(11)), sources[r.IntN(len(sources))], legacy[r.IntN(3)]})
		}
		d, values := decided(t, seed, from, nil, groups...)
		j, f := d.Judge(from), d.Fields[0]
		for i, g := range groups {
			for _, v := range values[i] {
				if j.Value([]byte("a"), v) != "" {
					continue
				}
				n := version(&v, orderOf(from))
				if f.Basis != Evidence || !slices.Contains(f.Versions, n) {
					t.Fatalf("seed %d: %x is converted: %+v", seed, v, f)
				}
				for _, rival := range f.Against {
					if g.order.String() == rival.Order && slices.Contains(rival.Versions, version(&v, orderOf(g.order))) {
						t.Fatalf("seed %d: %x is converted, though it fits %s: %+v", seed, v, rival.Order, f)
					}
				}
			}
		}
	}
}
