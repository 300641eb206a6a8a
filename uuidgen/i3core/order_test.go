package i3core

import (
	"bytes"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func compareMemory(a, b uuid.UUID) int {
	x, y := Memory(a), Memory(b)
	return bytes.Compare(x[:], y[:])
}

// One reading of the clock a year ahead has no lasting effect. A new order has other random bits; that of SQL Server goes on
// with its counter.
func TestOneBadReading(t *testing.T) {
	for _, d := range []DBMS{DBMSBinary, DBMSSQLServer} {
		c := newClock(someTime)
		g, err := NewSequentialGenerator(WithVersion(0xD), WithClock(c.now), WithDBMS(d))
		must(t, err)
		next(t, g)
		c.add(365 * 24 * time.Hour)
		far := nextSequential(t, g)
		c.add(-365 * 24 * time.Hour)
		if g.Orders() != 1 {
			t.Errorf("%v: %d orders", d, g.Orders())
		}
		f := nextSequential(t, g)
		if !f.Time().Equal(someTime) || g.Ahead() != 0 || g.Orders() != 2 {
			t.Errorf("%v: %+v, %v ahead, %d orders", d, f, g.Ahead(), g.Orders())
		}
		kept := f.Random1 == far.Random1 && f.CounterHi == far.CounterHi && f.CounterLo == far.CounterLo+1
		if kept != (d == DBMSSQLServer) {
			t.Errorf("%v: %+v after %+v", d, f, far)
		}
	}
}

// The limit is measured from the highest reading, and is an option.
func TestMaxRollback(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Second, time.Minute, math.MaxInt64} {
		opts := []Option{WithVersion(0xD), WithMaxRollback(limit)}
		if limit == time.Minute {
			opts = opts[:1] // the default
		}
		c := newClock(someTime)
		g, err := NewSequentialGenerator(append(opts, WithClock(c.now))...)
		must(t, err)
		last := next(t, g)
		back := min(limit, 24*time.Hour)
		for _, step := range []time.Duration{-back / 2, -back + back/2, back, -back} {
			c.add(step)
			u := next(t, g)
			if compareMemory(last, u) >= 0 || g.Orders() != 1 {
				t.Errorf("limit %v: %v after %v, %d orders", limit, u, last, g.Orders())
			}
			last = u
		}
		c.add(-time.Microsecond)
		if u := next(t, g); (compareMemory(last, u) < 0) != (limit == math.MaxInt64) || g.Orders() == 1 != (limit == math.MaxInt64) {
			t.Errorf("limit %v, beyond it: %v after %v, %d orders", limit, u, last, g.Orders())
		}
	}
	if _, err := NewSequentialGenerator(WithVersion(0xD), WithMaxRollback(-1)); err == nil {
		t.Error("a negative limit is accepted")
	}
	if _, err := NewRandomGenerator(WithMaxRollback(1)); err == nil {
		t.Error("the random format has a limit")
	}
}

// A batch lies in one order, on a clock of which every reading begins a new one.
func TestFillLiesInOneOrder(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	g, err := NewSequentialGenerator(WithVersion(0xD), WithClock(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return someTime.Add(time.Duration(asked%2) * time.Hour)
	}))
	must(t, err)
	seen := map[uuid.UUID]bool{}
	for range 20 {
		ids := make([]uuid.UUID, 500)
		must(t, g.Fill(ids))
		for i, u := range ids {
			if seen[u] || i > 0 && compareMemory(ids[i-1], u) >= 0 {
				t.Fatalf("%v after %v, made before: %t", u, ids[i-1], seen[u])
			}
			seen[u] = true
		}
	}
}

// Restored copies are found by their clocks. Binary ones begin a new order with other random bits; for SQL Server the order of
// the counter goes on, and copies differ. Ids for given instants go on in order, too.
func TestRestored(t *testing.T) {
	for _, d := range []DBMS{DBMSBinary, DBMSSQLServer} {
		g, err := NewSequentialGenerator(WithVersion(0xD), WithDBMS(d))
		must(t, err)
		m := g.machine.Maker().(*sequentialMaker)
		number := func(f Sequential) uint64 { return uint64(f.CounterHi)<<16 | uint64(f.CounterLo) }
		at := func() Sequential {
			u, err := g.NewUUIDAt(someTime)
			must(t, err)
			f, err := DecodeSequential(u, 0xD)
			must(t, err)
			return f
		}
		before, given := nextSequential(t, g), at()
		if f := at(); number(f) != number(given)+1 || f.Random1 != given.Random1 {
			t.Errorf("%v: %+v after %+v", d, f, given)
		}
		m.stock.Disturb(time.Hour, 2*time.Millisecond, 0)
		if f := at(); number(f)-number(given) < 1000 || number(f) < number(given) || f.Random1 != given.Random1 {
			t.Errorf("%v, restored: %+v after %+v", d, f, given)
		}
		f := nextSequential(t, g)
		if d == DBMSSQLServer && (number(f) < number(before)+1000 || f.Random1 != before.Random1 || g.Orders() != 1) ||
			d == DBMSBinary && (f.Random1 == before.Random1 && f.CounterHi == before.CounterHi || g.Orders() != 2) {
			t.Errorf("%v, restored: %+v after %+v, %d orders", d, f, before, g.Orders())
		}
		if f.Random1 == given.Random1 {
			t.Errorf("%v: %+v has the random1 of %+v", d, f, given)
		}
	}
}

func minSequentialAt(t time.Time) (uuid.UUID, error) {
	r, err := ClosedSequential(t, t)
	return r.Min, err
}
func maxSequentialAt(t time.Time) (uuid.UUID, error) {
	r, err := ClosedSequential(t, t)
	return r.Max, err
}
