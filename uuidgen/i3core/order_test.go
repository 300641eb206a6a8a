package i3core

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/serial/serialtest"
	"github.com/bsonids/bsonids/uuidgen"
)

// newSequential returns a Generator and what it draws from.
func newSequential(t *testing.T, opts ...uuidgen.Option) (g *uuidgen.Generator, m *sequentialMaker) {
	t.Helper()
	m = serialtest.Maker[*sequentialMaker](func() {
		var err error
		g, err = NewSequentialGenerator(opts...)
		must(t, err)
	})
	return g, m
}

// A new order has other random bits; that of SQL Server goes on with its counter.
func TestNewOrder(t *testing.T) {
	for _, d := range []DBMS{DBMSBinary, DBMSSQLServer} {
		c := newClock(someTime)
		g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now), WithDBMS(d))
		must(t, err)
		before := nextSequential(t, g)
		c.add(-time.Hour)
		f := nextSequential(t, g)
		kept := f.Random1 == before.Random1 && f.CounterHi == before.CounterHi && f.CounterLo == before.CounterLo+1
		if g.Orders() != 2 || kept != (d == DBMSSQLServer) {
			t.Errorf("%v: %+v after %+v, %d orders", d, f, before, g.Orders())
		}
	}
}

// Restored copies are found by their clocks. Binary ones begin a new order with other random bits; for SQL Server the order of
// the counter goes on, and copies differ. Ids for given instants go on in order, too.
func TestRestored(t *testing.T) {
	for _, d := range []DBMS{DBMSBinary, DBMSSQLServer} {
		g, m := newSequential(t, WithVersion(0xD), WithDBMS(d))
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
