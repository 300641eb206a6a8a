package peabody01

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// One reading of the clock a year ahead begins a new order of version 6 when it is over; bursts do not end an order.
func TestOrders(t *testing.T) {
	c := newClock(someTime)
	g, err := NewV6Generator(WithClock(c.now), WithMaxAhead(time.Hour))
	must(t, err)
	us := make([]uuid.UUID, 20_000) // 2 ms
	must(t, g.Fill(us))
	last := us[len(us)-1]
	c.add(-time.Minute)
	if u := next(t, g); compare(last, u) >= 0 || g.Orders() != 1 {
		t.Errorf("%v after %v, %d orders", u, last, g.Orders())
	}
	c.add(time.Minute + 365*24*time.Hour)
	last = next(t, g)
	c.add(-365 * 24 * time.Hour)
	if u := next(t, g); compare(last, u) <= 0 || g.Orders() != 2 || g.Ahead() != 0 {
		t.Errorf("%v after %v, %d orders, %v ahead", u, last, g.Orders(), g.Ahead())
	}
	must(t, g.Renew())
	if g.Orders() != 3 || new(Generator).Orders() != 0 {
		t.Errorf("%d orders after Renew, %d of the zero Generator", g.Orders(), new(Generator).Orders())
	}
}

// A batch of version 6 lies in one order, on a clock of which every reading begins a new one.
func TestFillLiesInOneOrder(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	g, err := NewV6Generator(WithMaxAhead(time.Hour), WithClock(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return someTime.Add(time.Duration(asked%2) * time.Hour)
	}))
	must(t, err)
	seen := map[uuid.UUID]bool{}
	for range 20 {
		us := make([]uuid.UUID, 500)
		must(t, g.Fill(us))
		for i, u := range us {
			if seen[u] || i > 0 && compare(us[i-1], u) >= 0 {
				t.Fatalf("%v after %v, made before: %t", u, us[i-1], seen[u])
			}
			seen[u] = true
		}
	}
}

// Restored copies are found by their clocks: the numbers for given instants jump ahead.
func TestRestored(t *testing.T) {
	for _, k := range kinds() {
		g, err := k.make()
		must(t, err)
		next(t, g)
		m := g.machine.Maker().(*maker)
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
