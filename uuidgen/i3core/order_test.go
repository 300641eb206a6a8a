package i3core

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// sequentialOf returns a Generator and what it draws from.
func sequentialOf(t *testing.T, opts ...uuidgen.Option) (g *uuidgen.Generator, m *sequentialMaker) {
	t.Helper()
	m, c, err := newSequential(opts)
	must(t, err)
	return newGenerator(c, m), m
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
// the counter goes on, and copies differ.
func TestRestored(t *testing.T) {
	for _, d := range []DBMS{DBMSBinary, DBMSSQLServer} {
		g, m := sequentialOf(t, WithVersion(0xD), WithDBMS(d))
		number := func(f Sequential) uint64 { return uint64(f.CounterHi)<<16 | uint64(f.CounterLo) }
		before := nextSequential(t, g)
		m.stock.Disturb(time.Hour, 2*time.Millisecond, 0)
		f := nextSequential(t, g)
		if d == DBMSSQLServer && (number(f) < number(before)+1000 || f.Random1 != before.Random1 || g.Orders() != 1) ||
			d == DBMSBinary && (f.Random1 == before.Random1 && f.CounterHi == before.CounterHi || g.Orders() != 2) {
			t.Errorf("%v, restored: %+v after %+v, %d orders", d, f, before, g.Orders())
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
