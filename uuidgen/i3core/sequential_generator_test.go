package i3core

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

func TestSequentialGenerator(t *testing.T) {
	c := newClock(someTime)
	g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now), WithDBMS(DBMSSQLServer))
	must(t, err)
	first := nextSequential(t, g)
	if first.Timestamp != someMicros || first.DBMS != DBMSSQLServer || !first.Time().Equal(someTime) {
		t.Fatalf("%+v, want timestamp %#x", first, someMicros)
	}
	// The counter's start is random: two generators agree with a chance of 2^-60.
	other, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now))
	must(t, err)
	if f := nextSequential(t, other); f.Random1 == first.Random1 && f.CounterHi == first.CounterHi && f.CounterLo == first.CounterLo {
		t.Errorf("two generators begin with %+v", f)
	} else if f.DBMS != DBMSBinary {
		t.Errorf("DBMS type %v, want binary", f.DBMS)
	}
	// Whatever the clock does, +1 for each, and the highest timestamp seen.
	want := first
	for i, step := range []time.Duration{0, 0, time.Microsecond, 999, 1, -time.Microsecond, -59 * time.Second, 0, 48 * time.Hour} {
		c.add(step)
		if want.CounterLo++; want.CounterLo == 0 {
			want.CounterHi++
		}
		now, err := microseconds(c.now())
		must(t, err)
		want.Timestamp = max(want.Timestamp, now)
		if got := nextSequential(t, g); got != want {
			t.Fatalf("step %d: %+v, want %+v", i, got, want)
		}
	}
}

// random1, random2 and counterLo come from the two numbers drawn: 12 bits of the first, 32 and 16
// of the second.
func start(random1 uint16, counterHi uint32, counterLo uint16) uuidgen.Option {
	return uuidgen.WithRandom(bytes.NewReader([]byte{
		0, 0, 0, 0, 0, 0, byte(random1 >> 8), byte(random1),
		0, 0, byte(counterHi >> 24), byte(counterHi >> 16), byte(counterHi >> 8), byte(counterHi),
		byte(counterLo >> 8), byte(counterLo),
	}))
}

func TestSequentialCounterOverflow(t *testing.T) {
	frozen := uuidgen.WithClock(func() time.Time { return someTime })
	g, err := NewSequentialGenerator(WithVersion(0xD), frozen, start(0xABC, 0x0000FFFF, 0xFFFE))
	must(t, err)
	var last [16]byte
	for _, want := range []struct {
		hi uint32
		lo uint16
	}{{0xFFFF, 0xFFFE}, {0xFFFF, 0xFFFF}, {0x10000, 0}, {0x10000, 1}} {
		u := next(t, g)
		f, err := DecodeSequential(u, 0xD)
		if err != nil || f.CounterHi != want.hi || f.CounterLo != want.lo || f.Random1 != 0xABC {
			t.Fatalf("%+v, %v, want %+v", f, err, want)
		}
		m := inMemory(u)
		if bytes.Compare(last[:], m[:]) >= 0 {
			t.Fatalf("%x came after %x", m, last)
		}
		last = m
	}
}

// At its end the counter starts anew with the next timestamp, in the order of memory; within one it
// is an error. For SQL Server it never starts anew, since its numbers are the order there.
func TestSequentialCounterEnd(t *testing.T) {
	for _, d := range []DBMS{DBMSBinary, DBMSSQLServer} {
		c := newClock(someTime)
		g, m := sequentialOf(t, WithVersion(0xD), uuidgen.WithClock(c.now), WithDBMS(d))
		first := nextSequential(t, g)
		m.counter.Start(1<<48 - 1<<32 - 2)
		f := nextSequential(t, g)
		if f.CounterHi != 0xFFFEFFFF || f.CounterLo != 0xFFFF {
			t.Fatalf("%v: %+v", d, f)
		}
		for _, step := range []time.Duration{0, 0, -time.Minute, time.Minute} {
			c.add(step)
			if u, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrExhausted) || u != uuid.Nil {
				t.Fatalf("%v: %v, %v, want uuidgen.ErrExhausted", d, u, err)
			}
		}
		c.add(time.Microsecond)
		if d == DBMSBinary {
			next := nextSequential(t, g)
			if next.Timestamp != f.Timestamp+1 || next.CounterHi != first.CounterHi || next.CounterLo != first.CounterLo {
				t.Errorf("%+v after %+v, want the counter of %+v", next, f, first)
			}
			continue
		}
		if u, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrExhausted) || u != uuid.Nil {
			t.Errorf("%v, new timestamp: %v, %v, want uuidgen.ErrExhausted", d, u, err)
		}
		must(t, g.Renew())
		if f := nextSequential(t, g); f.CounterHi>>31 != 0 {
			t.Errorf("%v, renewed: %+v, want a counter in its lower half", d, f)
		}
	}
}

// SQL Server compares the bytes of a uniqueidentifier in this order, as the type SqlGuid of .NET
// does.
var sqlServerOrder = [16]int{10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3}

func sqlServer(m [16]byte) (key [16]byte) {
	for i, at := range sqlServerOrder {
		key[i] = m[at]
	}
	return key
}

// The UUIDs of one generator for SQL Server ascend in its order and in that of memory, whatever the
// clock does, as long as it is not renewed. Those of two generators are in the order of their
// counters.
func TestSQLServerOrder(t *testing.T) {
	c := newClock(someTime)
	g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now), WithDBMS(DBMSSQLServer), start(1, 0x7FFFFFFF, 0xFF00))
	must(t, err)
	var last [16]byte
	for i := range 200_000 { // over the overflow of counterLo
		c.add(time.Duration(i%7-2) * time.Millisecond)
		m := inMemory(next(t, g))
		key, lastKey := sqlServer(m), sqlServer(last)
		if bytes.Compare(lastKey[:], key[:]) >= 0 || bytes.Compare(last[:], m[:]) >= 0 {
			t.Fatalf("%x after %x", m, last)
		}
		last = m
	}
	later, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now), WithDBMS(DBMSSQLServer), start(1, 0, 1))
	must(t, err)
	c.add(time.Hour)
	m := inMemory(next(t, later))
	if key, lastKey := sqlServer(m), sqlServer(last); bytes.Compare(lastKey[:], key[:]) < 0 || bytes.Compare(last[:], m[:]) >= 0 {
		t.Errorf("%x of a later generator after %x", m, last)
	}
}

func TestRange(t *testing.T) {
	at := someTime
	halfOpen, err := HalfOpenSequential(at, at.Add(time.Microsecond))
	must(t, err)
	closed, err := ClosedSequential(at, at.Add(time.Microsecond))
	must(t, err)
	made := func(at time.Time) uuid.UUID {
		g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(func() time.Time { return at }))
		must(t, err)
		return next(t, g)
	}
	for d, want := range map[time.Duration][2]bool{-1: {}, 0: {true, true}, 999: {true, true}, 1000: {false, true}, 1999: {false, true}, 2000: {}} {
		u := made(at.Add(d))
		if got := [2]bool{halfOpen.Contains(u), closed.Contains(u)}; got != want {
			t.Errorf("%v after: %v, want %v", d, got, want)
		}
	}
	if _, err := closed.Filter("_id", uuidrep.CSharpLegacy); err != nil {
		t.Error(err)
	}
	if _, err := closed.Filter("_id", uuidrep.Standard); !errors.Is(err, uuidgen.ErrOrder) {
		t.Errorf("standard: %v, want ErrOrder", err)
	}
	if r, err := ClosedSequential(at, at.Add(-1)); err == nil || r != (uuidgen.Range{}) {
		t.Errorf("backwards: %v, %v", r, err)
	}
	// Instants are compared without bounds.
	u := made(at)
	past, future := time.Unix(0, 0), time.Unix(1<<60, 0)
	for i, test := range []struct {
		from, to time.Time
		in       bool
	}{{past, future, true}, {past, at, false}, {at, future, true}, {past, past, false}, {future, future, false}, {past, timeOf(0), false}} {
		if r, err := HalfOpenSequential(test.from, test.to); err != nil || r.Contains(u) != test.in || i > 2 && r.Max != uuid.Nil {
			t.Errorf("span %d: %+v, %v", i, r, err)
		}
	}
}

// A clock that never moves stops no sequential generator: the counter goes on past all that its low
// bytes hold.
func TestSequentialFrozenClock(t *testing.T) {
	g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(func() time.Time { return someTime }))
	must(t, err)
	a := nextSequential(t, g)
	for range 1 << 16 {
		next(t, g)
	}
	b := nextSequential(t, g)
	counter := func(f Sequential) uint64 { return uint64(f.CounterHi)<<16 | uint64(f.CounterLo) }
	if b.Timestamp != a.Timestamp || counter(b)-counter(a) != 1<<16+1 {
		t.Errorf("from %+v to %+v", a, b)
	}
}

func TestSequentialTimestamps(t *testing.T) {
	var now uint64 = 5
	g, err := NewSequentialGenerator(WithVersion(0xD), WithTimestamps(func() uint64 { return now }))
	must(t, err)
	for _, c := range []struct{ now, want uint64 }{{5, 5}, {7, 7}, {6, 7}, {1<<56 - 1, 1<<56 - 1}} {
		now = c.now
		if f := nextSequential(t, g); f.Timestamp != c.want {
			t.Errorf("at %d: %+v, want timestamp %d", now, f, c.want)
		}
	}
	now = 1 << 56
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrTimeRange) {
		t.Errorf("57 bits: %v, want uuidgen.ErrTimeRange", err)
	}
	g, err = NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(func() time.Time { return time.Unix(0, 0) }))
	must(t, err)
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrTimeRange) {
		t.Errorf("in 1970: %v, want uuidgen.ErrTimeRange", err)
	}
}
