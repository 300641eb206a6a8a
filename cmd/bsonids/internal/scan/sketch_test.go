package scan

import (
	"math/rand/v2"
	"testing"

	"github.com/bsonids/bsonids/uuidrep"
)

func TestSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var once, often sketch
	values := make([][16]byte, 50_000)
	for i := range values {
		values[i] = randomOctets(r)
		once.add(values[i])
	}
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	for range 3 {
		for _, v := range values {
			often.add(v)
		}
	}
	// The sample does not depend on the order and number of the values.
	if len(once.entries) != sketchSize || len(often.entries) != sketchSize || len(once.held) != sketchSize {
		t.Fatalf("%d and %d entries", len(once.entries), len(often.entries))
	}
	for v := range once.held {
		if _, ok := often.held[v]; !ok {
			t.Fatal("the samples differ")
		}
	}
	if d := once.distinct(); d < 45_000 || d > 55_000 {
		t.Errorf("about %d distinct values, want 50000 within 10 %%", d)
	}
	for _, rep := range []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy} {
		if u := values[0]; hash(u) != hash(rep.Permute(u)) {
			t.Errorf("%v changes the hash", rep)
		}
	}
}
