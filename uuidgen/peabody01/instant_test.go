package peabody01

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// A Generator whose clock was once far ahead tells how far, and comes back with Renew.
func TestRenewRecovers(t *testing.T) {
	for _, k := range kinds() {
		c := newClock(someTime)
		g, err := k.make(uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0))
		must(t, err)
		if d := g.Ahead(); d != 0 {
			t.Errorf("%s: %v ahead before the first", k.name, d)
		}
		next(t, g)
		if d := g.Ahead(); d != 0 {
			t.Errorf("%s: %v ahead", k.name, d)
		}
		c.add(50 * 365 * 24 * time.Hour)
		far := next(t, g)
		c.at.Store(someTime.UnixNano())
		if d := g.Ahead(); d < 50*365*24*time.Hour-k.unit || d > 50*365*24*time.Hour+k.unit {
			t.Errorf("%s: %v ahead", k.name, d)
		}
		if u, err := g.NewUUID(); k.version != 6 && !errors.Is(err, ErrClockRollback) {
			t.Errorf("%s: %v, %v", k.name, u, err)
		}
		must(t, g.Renew())
		u := next(t, g)
		if compare(u, far) >= 0 || g.Ahead() != 0 || someTime.Sub(k.time(t, u)) >= k.unit {
			t.Errorf("%s, renewed: %v at %v, %v ahead", k.name, u, k.time(t, u), g.Ahead())
		}
	}
	now := uint64(5)
	g, err := NewV8Generator(Clock{Bits: 48, Now: func() uint64 { return now }})
	must(t, err)
	next(t, g)
	now = 4
	if d := g.Ahead(); d != math.MaxInt64 {
		t.Errorf("a clock that measures no time: %v ahead", d)
	}
	if err := new(uuidgen.Generator).Renew(); err == nil || new(uuidgen.Generator).Ahead() != 0 {
		t.Error("the zero Generator renews itself")
	}
}

// Timestamps of more than 64 bits, such as the 96 bits of TAI64N, keep the order.
func TestWideClock(t *testing.T) {
	var hi, lo uint64 = 1, 1<<64 - 2
	c := Clock{Bits: 96, SequenceBits: 9, NowWide: func() (uint64, uint64) { return hi, lo }}
	g, err := NewV8Generator(c, uuidgen.WithMaxWait(0))
	must(t, err)
	var last uuid.UUID
	for range 5 {
		for seq := range uint32(3) {
			u := next(t, g)
			f, err := DecodeV8(u, 96, 9)
			if err != nil || f.TimestampHigh != hi || f.Timestamp != lo || f.Sequence != seq || compare(last, u) >= 0 {
				t.Fatalf("%+v, %v, want %d %d, sequence %d", f, err, hi, lo, seq)
			}
			last = u
		}
		if lo++; lo == 0 {
			hi++
		}
	}
	hi = 1 << 32
	if u, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrTimeRange) {
		t.Errorf("97 bits: %v, %v", u, err)
	}
}

// A UUID is in a range exactly if its timestamp is in the span.
func TestRanges(t *testing.T) {
	c := Clock{Bits: 40, Tick: time.Second, Epoch: unix}
	for name, f := range map[string]struct {
		unit             time.Duration
		make             func(...uuidgen.Option) (*uuidgen.Generator, error)
		halfOpen, closed func(from, to time.Time) (uuidgen.Range, error)
	}{
		"v6": {100, NewV6Generator, uuidgen.HalfOpenV6, uuidgen.ClosedV6},
		"v7": {time.Microsecond, func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
			return NewV7Generator(Microsecond, append(opts, WithEncoding(Floor))...)
		},
			func(from, to time.Time) (uuidgen.Range, error) { return HalfOpenV7(from, to, Microsecond, Floor) },
			func(from, to time.Time) (uuidgen.Range, error) { return ClosedV7(from, to, Microsecond, Floor) }},
		"v8": {time.Second, func(opts ...uuidgen.Option) (*uuidgen.Generator, error) { return NewV8Generator(c, opts...) },
			func(from, to time.Time) (uuidgen.Range, error) { return HalfOpenV8(from, to, c) },
			func(from, to time.Time) (uuidgen.Range, error) { return ClosedV8(from, to, c) }},
	} {
		base := someTime.Truncate(time.Hour)
		instant := func() time.Time { return base.Add(time.Duration(rand.IntN(20)) * f.unit / 4) }
		for range 5000 {
			at, from, to := instant(), instant(), instant()
			if from.After(to) {
				if _, err := f.halfOpen(from, to); err == nil {
					t.Fatalf("%s: from %v to %v: no error", name, from, to)
				}
				from, to = to, from
			}
			u := made(t, f.make, at)
			unit, first, last := at.Truncate(f.unit), from.Truncate(f.unit), to.Truncate(f.unit)
			halfOpen, err := f.halfOpen(from, to)
			must(t, err)
			closed, err := f.closed(from, to)
			must(t, err)
			if halfOpen.Contains(u) != (!unit.Before(first) && unit.Before(last)) ||
				closed.Contains(u) != (!unit.Before(first) && !unit.After(last)) {
				t.Fatalf("%s: %v from %v to %v", name, at, from, to)
			}
			if _, err := closed.Filter("_id", uuidrep.Standard); err != nil {
				t.Fatal(err)
			}
			if _, err := closed.Filter("_id", uuidrep.CSharpLegacy); !errors.Is(err, uuidgen.ErrOrder) {
				t.Fatal(err)
			}
		}
		u := made(t, f.make, base)
		for _, at := range []time.Time{time.Unix(-1<<60, 0), time.Unix(1<<60, 0)} {
			if r, err := f.closed(at, at); err != nil || r.Max != uuid.Nil || r.Contains(u) {
				t.Errorf("%s at %v: %+v, %v", name, at, r, err)
			}
		}
	}
}

func TestBatches(t *testing.T) {
	for _, k := range kinds() {
		c := newClock(someTime)
		g, err := k.make(uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0), uuidgen.WithMaxRollback(0))
		must(t, err)
		us := make([]uuid.UUID, 10)
		must(t, g.Fill(us))
		for u, err := range g.UUIDs(20) {
			must(t, err)
			us = append(us, u)
		}
		if len(us) != 30 || !slices.IsSortedFunc(us, compare) || len(slices.Compact(us)) != 30 {
			t.Errorf("%s: %v", k.name, us)
		}
		c.at.Store(math.MinInt64)
		if k.version == 6 {
			c.at.Store(time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
			continue
		}
		if err := g.Fill(us); !errors.Is(err, uuidgen.ErrTimeRange) || us[0] != uuid.Nil || us[29] != uuid.Nil {
			t.Errorf("%s: %v, %v", k.name, err, us)
		}
		n := 0
		for u, err := range g.UUIDs(5) {
			if n++; n > 1 || !errors.Is(err, uuidgen.ErrTimeRange) || u != uuid.Nil {
				t.Errorf("%s: %v, %v", k.name, u, err)
			}
		}
	}
}

// Drawing allocates nothing for each UUID.
func TestAllocs(t *testing.T) {
	for _, k := range kinds() {
		g := g0(k)
		if n := testing.AllocsPerRun(100, func() { _, _ = g.NewUUID() }); n != 0 {
			t.Errorf("%s: %v allocations", k.name, n)
		}
	}
}

// Clocks of 61 to 64 bits: the unit is what a UUID holds. An id is in the ranges of its instant.
func TestUnitOfLongClocks(t *testing.T) {
	for size := 59; size <= 66; size++ {
		for _, epoch := range []time.Time{unix, someTime.Add(-12345)} {
			c := Clock{Bits: size, Tick: time.Nanosecond, Epoch: epoch}
			if epoch == unix && size < 61 {
				continue // ends in 2006
			}
			unit := time.Duration(1)
			if size > 60 && size <= 64 {
				unit = 1 << (size - 60)
			}
			make := func(opts ...uuidgen.Option) (*uuidgen.Generator, error) { return NewV8Generator(c, opts...) }
			for range 500 {
				base := someTime.Add(time.Duration(rand.IntN(1000)))
				units := func(at time.Time) int64 { return int64(at.Sub(epoch) / unit) }
				at := base.Add(time.Duration(rand.IntN(60)))
				u := made(t, make, at)
				from := base.Add(time.Duration(rand.IntN(60)))
				to := from.Add(time.Duration(rand.IntN(60)))
				halfOpen, err := HalfOpenV8(from, to, c)
				must(t, err)
				closed, err := ClosedV8(from, to, c)
				must(t, err)
				same, err := ClosedV8(at, at, c)
				must(t, err)
				after, err := HalfOpenV8(at, at.Add(unit), c)
				must(t, err)
				if halfOpen.Contains(u) != (units(from) <= units(at) && units(at) < units(to)) ||
					closed.Contains(u) != (units(from) <= units(at) && units(at) <= units(to)) || !same.Contains(u) || !after.Contains(u) {
					t.Fatalf("%d bits: %v from %v to %v", size, at, from, to)
				}
			}
		}
	}
}

// The ends of clocks of every width, beyond 64 bits too, and instants that they cannot hold.
func TestRangesWithoutBounds(t *testing.T) {
	for size := 1; size <= 98; size++ {
		c := Clock{Bits: size, Tick: time.Nanosecond, Epoch: unix}
		first, err := V8{Bits: size, Node: 1}.UUID()
		must(t, err)
		last := V8{Bits: size, Timestamp: 1<<min(size, 64) - 1, Node: 1}
		if size > 64 {
			last.TimestampHigh = 1<<(size-64) - 1
		}
		lastID, err := last.UUID()
		must(t, err)
		past, future := time.Unix(-1<<60, 0), time.Unix(1<<62, 0)
		begin := time.Unix(0, 0)
		for i, test := range []struct {
			from, to    time.Time
			first, last bool
		}{
			{past, future, true, size < 92}, {begin, future, true, size < 92}, {past, begin, false, false}, {past, begin.Add(-1), false, false},
			{time.Time{}, time.Time{}, false, false},
		} {
			r, err := HalfOpenV8(test.from, test.to, c)
			must(t, err)
			if r.Contains(first) != test.first || r.Contains(lastID) != test.last {
				t.Errorf("%d bits, span %d: %+v contains %t and %t", size, i, r, r.Contains(first), r.Contains(lastID))
			}
		}
		if r, err := ClosedV8(past, begin, c); err != nil || !r.Contains(first) || size < 90 && r.Contains(lastID) {
			t.Errorf("%d bits: %+v, %v", size, r, err)
		}
		if _, err := ClosedV8(future, past, c); err == nil {
			t.Errorf("%d bits: backwards", size)
		}
	}
	end := time.Unix(1<<36, 0)
	for p := range Precision(len(precisions)) {
		for _, e := range []Encoding{RoundUp, Floor, RawCount} {
			r, err := HalfOpenV7(end.Add(-time.Second), end.Add(time.Hour), p, e)
			must(t, err)
			u := made(t, func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
				return NewV7Generator(p, append(opts, WithEncoding(e))...)
			}, end.Add(-1))
			if !r.Contains(u) {
				t.Errorf("%v, %v: %+v does not contain %v", p, e, r, u)
			}
			if r, err := ClosedV7(end, end, p, e); err != nil || r.Max != uuid.Nil {
				t.Errorf("%v, %v: %+v, %v", p, e, r, err)
			}
		}
	}
	// from after to is checked first.
	for _, f := range []func() error{
		func() error { _, err := HalfOpenV7(end, end.Add(-1), 99, RoundUp); return err },
		func() error { _, err := HalfOpenV8(end, end.Add(-1), Clock{}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "after its end") {
			t.Errorf("backwards: %v", err)
		}
	}
	for _, f := range []func() error{
		func() error { _, err := HalfOpenV7(end, end, 99, RoundUp); return err },
		func() error { _, err := HalfOpenV8(end, end, Clock{}); return err },
	} {
		if err := f(); err == nil {
			t.Error("no error")
		}
	}
}
