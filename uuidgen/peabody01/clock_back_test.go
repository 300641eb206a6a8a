package peabody01

import (
	"crypto/rand"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/uuidgen"
)

// Version 6 counts timestamps up while the clock stands still, no further ahead than it may be
// behind.
func TestV6FrozenClock(t *testing.T) {
	c := newClock(someTime)
	const ticks = 50
	g, err := NewV6Generator(uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0), uuidgen.WithMaxAhead(ticks*gregorian.Tick))
	must(t, err)
	first, err := DecodeV6(next(t, g))
	must(t, err)
	if want := someTime.Truncate(100 * time.Nanosecond); !first.Time().Equal(want) {
		t.Fatalf("first at %v, want %v", first.Time(), want)
	}
	for i := range ticks {
		f, err := DecodeV6(next(t, g))
		must(t, err)
		if want := first.Timestamp + uint64(i) + 1; f.Timestamp != want || f.ClockSequence != first.ClockSequence {
			t.Fatalf("%+v, want timestamp %#x and clock sequence %#x", f, want, first.ClockSequence)
		}
	}
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrWait) {
		t.Fatalf("error %v, want uuidgen.ErrWait", err)
	}
	c.add(gregorian.Tick)
	next(t, g)
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrWait) {
		t.Fatalf("error %v, want uuidgen.ErrWait", err)
	}
	c.add(-gregorian.Tick) // back by less than the limit: the last timestamp stays, and is as far ahead as it may be
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrWait) {
		t.Fatalf("error %v, want uuidgen.ErrWait", err)
	}
	c.add(time.Second)
	if f, err := DecodeV6(next(t, g)); err != nil || !f.Time().Equal(c.now().Truncate(100*time.Nanosecond)) {
		t.Fatalf("%+v, %v, want the clock's time", f, err)
	}
}

// RFC 4122, section 4.1.5: when the clock is set back, the clock sequence is changed, and the
// timestamps are the clock's again. A step within the limit keeps both the timestamp and the order.
func TestV6ClockSetBack(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Microsecond, time.Second, time.Hour} {
		for name, source := range map[string]io.Reader{
			"random": rand.Reader, "always the same": new(octets), // which must change all the same
		} {
			c := newClock(someTime.Truncate(time.Hour))
			g, err := NewV6Generator(uuidgen.WithClock(c.now), uuidgen.WithMaxRollback(limit), uuidgen.WithMaxWait(0), uuidgen.WithRandom(source))
			must(t, err)
			seen := make(map[uuid.UUID]bool)
			nextV6 := func() V6 {
				t.Helper()
				u := next(t, g)
				if seen[u] {
					t.Fatalf("%v came twice", u)
				}
				seen[u] = true
				f, err := DecodeV6(u)
				must(t, err)
				return f
			}
			first := nextV6()
			if limit > 0 {
				c.add(-min(limit, time.Second)) // the default limit of how far it may be ahead
				f := nextV6()
				if f.ClockSequence != first.ClockSequence || f.Timestamp != first.Timestamp+1 {
					t.Errorf("%s, within %v: %+v after %+v", name, limit, f, first)
				}
				c.add(min(limit, time.Second))
			}
			for range 3 {
				before := nextV6()
				c.add(-limit - time.Microsecond)
				after := nextV6()
				if after.ClockSequence == before.ClockSequence || !after.Time().Equal(c.now()) {
					t.Errorf("%s, further than %v: %+v after %+v", name, limit, after, before)
				}
				if f := nextV6(); f.ClockSequence != after.ClockSequence || f.Timestamp != after.Timestamp+1 {
					t.Errorf("%s, further than %v, then: %+v after %+v", name, limit, f, after)
				}
				c.add(time.Hour)
				if f := nextV6(); f.ClockSequence != after.ClockSequence || !f.Time().Equal(c.now()) {
					t.Errorf("%s, an hour later: %+v after %+v", name, f, after)
				}
			}
		}
	}

	// A random source that fails in between: what comes after has still another clock sequence.
	c := newClock(someTime)
	source := &failing{r: rand.Reader}
	g, err := NewV6Generator(uuidgen.WithClock(c.now), uuidgen.WithRandom(source))
	must(t, err)
	before, err := DecodeV6(next(t, g))
	must(t, err)
	c.add(-time.Hour)
	source.err = errors.New("broken")
	for range 2 {
		if u, err := g.NewUUID(); !errors.Is(err, source.err) || u != uuid.Nil {
			t.Errorf("%v, %v, want %v", u, err, source.err)
		}
	}
	source.err = nil
	after, err := DecodeV6(next(t, g))
	if err != nil || after.ClockSequence == before.ClockSequence || !after.Time().Equal(c.now().Truncate(100)) {
		t.Errorf("%+v after %+v, %v", after, before, err)
	}
}

// renewing is a random source that begins a new order of g whenever it is read.
type renewing struct{ g *uuidgen.Generator }

func (r *renewing) Read(b []byte) (int, error) {
	if err := r.g.Renew(); err != nil {
		return 0, err
	}
	return rand.Read(b)
}

// Errors of version 6, whose Generator is one of package uuidgen, begin with the name of this package.
func TestV6Errors(t *testing.T) {
	frozen := uuidgen.WithClock(func() time.Time { return someTime })
	source := new(renewing)
	for name, tt := range map[string]struct {
		opts []uuidgen.Option
		n    int // how many ids are made at once
		is   error
		text string
	}{
		"random source":      {[]uuidgen.Option{uuidgen.WithRandom(&failing{err: io.EOF})}, 1, io.EOF, "random source: EOF"},
		"zeros":              {[]uuidgen.Option{uuidgen.WithRandom(zeros{})}, 1, nil, "the random source gives nothing but zeros"},
		"clock out of range": {[]uuidgen.Option{uuidgen.WithClock(func() time.Time { return time.Unix(1<<40, 0) })}, 1, uuidgen.ErrTimeRange, ""},
		"no timestamp left":  {[]uuidgen.Option{uuidgen.WithClock(func() time.Time { return gregorian.Time(1<<60 - 1) })}, 2, uuidgen.ErrTimeRange, ""},
		"frozen clock":       {[]uuidgen.Option{frozen, uuidgen.WithMaxAhead(0), uuidgen.WithMaxWait(0)}, 2, uuidgen.ErrWait, ""},
		"new orders":         {[]uuidgen.Option{frozen, uuidgen.WithMaxAhead(0), uuidgen.WithRandom(source)}, 3, uuidgen.ErrWait, "new orders interrupt the batch"},
	} {
		g, err := NewV6Generator(tt.opts...)
		must(t, err)
		source.g = g
		err = g.Fill(make([]uuid.UUID, tt.n))
		if err == nil || !strings.HasPrefix(err.Error(), "peabody01: ") || strings.Contains(err.Error(), "uuidgen: ") ||
			!strings.Contains(err.Error(), tt.text) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestClockRollback(t *testing.T) {
	for _, k := range sequenced() {
		t.Run(k.name, func(t *testing.T) {
			for _, c := range []struct {
				name   string
				opts   []uuidgen.Option
				within time.Duration
			}{
				{"default", nil, time.Second},
				{"an hour", []uuidgen.Option{uuidgen.WithMaxRollback(time.Hour)}, time.Hour},
				{"none", []uuidgen.Option{uuidgen.WithMaxRollback(0)}, 0},
			} {
				start := someTime.Truncate(time.Hour)
				ck := newClock(start)
				g, err := k.make(append(c.opts, uuidgen.WithClock(ck.now), uuidgen.WithMaxWait(0))...)
				must(t, err)
				last := next(t, g)
				hold := func() {
					t.Helper()
					u := next(t, g)
					if compare(last, u) >= 0 {
						t.Fatalf("%s: %v came after %v", c.name, u, last)
					}
					if got := k.time(t, u).Sub(start); got != 0 {
						t.Fatalf("%s: time %v from the last, want the last", c.name, got)
					}
					last = u
				}
				if c.within > 0 {
					for _, back := range []time.Duration{k.unit, c.within / 2} {
						ck.at.Store(start.Add(-back).UnixNano())
						hold()
					}
					ck.at.Store(start.Add(-c.within).UnixNano())
					hold()
				}
				for _, back := range []time.Duration{c.within + k.unit, 24 * time.Hour} {
					ck.at.Store(start.Add(-back).UnixNano())
					u, err := g.NewUUID()
					if !errors.Is(err, ErrClockRollback) || u != uuid.Nil {
						t.Fatalf("%s: %v back: %v, %v, want ErrClockRollback", c.name, back, u, err)
					}
				}
				// Errors have left the state alone.
				ck.at.Store(start.Add(time.Second).UnixNano())
				if u := next(t, g); compare(last, u) >= 0 || !k.time(t, u).Equal(start.Add(time.Second)) {
					t.Fatalf("%s: %v after %v", c.name, u, last)
				}
			}
		})
	}
}

// A clock that measures no time, a counter of a cluster, say, may stand still but not step back.
func TestV8OwnClock(t *testing.T) {
	var ticks uint64 = 0xFFFF_FFFF
	g, err := NewV8Generator(Clock{Bits: 32, Now: func() uint64 { return ticks }}, uuidgen.WithMaxWait(0))
	must(t, err)
	for i := range 2 {
		f, err := DecodeV8(next(t, g), 32, 0)
		if err != nil || f.Timestamp != ticks || f.Sequence != uint32(i) {
			t.Fatalf("%+v, %v, want %#x with sequence %d", f, err, ticks, i)
		}
	}
	ticks--
	if _, err := g.NewUUID(); !errors.Is(err, ErrClockRollback) {
		t.Fatalf("a step back: %v, want ErrClockRollback", err)
	}
	ticks = 1 << 32
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrTimeRange) {
		t.Fatalf("a timestamp too wide: %v, want uuidgen.ErrTimeRange", err)
	}

	// Every step back is an error, so that a limit cannot be obeyed.
	for _, limit := range []time.Duration{0, time.Second, math.MaxInt64} {
		g, err := NewV8Generator(Clock{Bits: 32, Now: func() uint64 { return ticks }}, uuidgen.WithMaxRollback(limit))
		if want := "peabody01: WithMaxRollback does not apply to version 8 with a Clock that has its own function and no Tick"; g != nil ||
			err == nil || err.Error() != want {
			t.Errorf("a limit of %v: %v, want %q", limit, err, want)
		}
	}

	// With a tick, a step back is measured by it; and however long it is, it does not wrap.
	ticks = 1<<64 - 1
	g, err = NewV8Generator(Clock{Bits: 64, Tick: time.Minute, Now: func() uint64 { return ticks }},
		uuidgen.WithMaxWait(0), uuidgen.WithMaxRollback(time.Hour))
	must(t, err)
	next(t, g)
	for back, want := range map[uint64]error{60: nil, 80: ErrClockRollback, 1<<64 - 1: ErrClockRollback} {
		ticks = 1<<64 - 1 - back
		if _, err := g.NewUUID(); !errors.Is(err, want) {
			t.Fatalf("%d minutes back: %v, want %v", back, err, want)
		}
	}
}

// A clock that was wrong by more years than a Duration holds is within a limit that is none.
func TestClockRollbackWithoutLimit(t *testing.T) {
	kinds := map[string]func(...uuidgen.Option) (*uuidgen.Generator, error){
		"version 6": NewV6Generator,
		"version 7": func(opts ...uuidgen.Option) (*uuidgen.Generator, error) { return NewV7Generator(Second, opts...) },
		"version 8": func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
			return NewV8Generator(Clock{Bits: 60, Tick: time.Second, Epoch: unix}, opts...)
		},
	}
	for name, make := range kinds {
		at := instant(t, "2500-01-01T00:00:00Z")
		g, err := make(uuidgen.WithClock(func() time.Time { return at }), uuidgen.WithMaxRollback(math.MaxInt64), uuidgen.WithMaxWait(0))
		must(t, err)
		before := next(t, g)
		at = instant(t, "2026-01-01T00:00:00Z")
		after, err := g.NewUUID()
		if err != nil || compare(before, after) >= 0 || g.Orders() != 1 {
			t.Errorf("%s: %v after %v, %v, in %d orders, want one order", name, after, before, err, g.Orders())
		}
	}
}
