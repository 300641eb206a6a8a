package peabody01

import (
	"testing"
	"time"

	"github.com/bsonids/bsonids/internal/serial/serialtest"
	"github.com/bsonids/bsonids/uuidgen"
)

// Restored copies are found by their clocks: the numbers for given instants jump ahead.
func TestRestored(t *testing.T) {
	for _, k := range kinds() {
		var g *uuidgen.Generator
		m := serialtest.Maker[*maker](func() { g = g0(k) })
		next(t, g)
		at := func() uint64 {
			u, err := g.NewUUIDAt(someTime)
			must(t, err)
			node, _ := k.node(t, u)
			return node
		}
		before := at()
		if n := at(); n <= before || n-before > 1<<20 {
			t.Errorf("%s: node %#x after %#x", k.name, n, before)
		}
		m.stock.Disturb(time.Hour, 2*time.Millisecond, 0)
		if n := at(); n-before < 1<<20 || n < before {
			t.Errorf("%s, restored: node %#x after %#x", k.name, n, before)
		}
	}
}
