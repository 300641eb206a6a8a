package peabody01

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// clock is a time that a test sets.
type clock struct{ at atomic.Int64 }

func newClock(at time.Time) *clock {
	c := new(clock)
	c.at.Store(at.UnixNano())
	return c
}

func (c *clock) now() time.Time      { return time.Unix(0, c.at.Load()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
func next(t testing.TB, g *uuidgen.Generator) uuid.UUID {
	t.Helper()
	u, err := g.NewUUID()
	must(t, err)
	return u
}

var (
	someTime = time.Unix(1645557742, 123456789)
	unix     = time.Unix(0, 0) // the epoch of most clocks
)

// made returns a UUID of a new Generator whose clock shows at.
func made(t testing.TB, make func(...uuidgen.Option) (*uuidgen.Generator, error), at time.Time) uuid.UUID {
	t.Helper()
	g, err := make(uuidgen.WithClock(func() time.Time { return at }))
	must(t, err)
	return next(t, g)
}

// kind is a generator of each format, with what a test needs to know of it.
type kind struct {
	name     string
	make     func(opts ...uuidgen.Option) (*uuidgen.Generator, error)
	unit     time.Duration // of the timestamp
	capacity int           // UUIDs at one timestamp
	version  uuid.Version
	sequence func(t testing.TB, u uuid.UUID) int
	node     func(t testing.TB, u uuid.UUID) (node uint64, width int)
	time     func(t testing.TB, u uuid.UUID) time.Time
}

// Version 6 has no sequence and is not among them.
func sequenced() []kind {
	var ks []kind
	for p, k := range map[Precision]kind{
		Millisecond: {name: "v7 ms", unit: time.Millisecond, capacity: 4096},
		Microsecond: {name: "v7 µs", unit: time.Microsecond, capacity: 16384},
		Nanosecond:  {name: "v7 ns", unit: time.Nanosecond, capacity: 256},
		Second:      {name: "v7 s", unit: time.Second, capacity: 1 << 24},
	} {
		decode := func(t testing.TB, u uuid.UUID) V7 {
			t.Helper()
			f, err := DecodeV7(u, p, RoundUp)
			must(t, err)
			return f
		}
		k.version = 7
		k.make = func(opts ...uuidgen.Option) (*uuidgen.Generator, error) { return NewV7Generator(p, opts...) }
		k.sequence = func(t testing.TB, u uuid.UUID) int { return int(decode(t, u).Sequence) }
		k.time = func(t testing.TB, u uuid.UUID) time.Time { return decode(t, u).Time() }
		k.node = func(t testing.TB, u uuid.UUID) (uint64, int) {
			return decode(t, u).Node, map[Precision]int{Millisecond: 62, Microsecond: 48, Nanosecond: 40, Second: 62}[p]
		}
		ks = append(ks, k)
	}
	for size, k := range map[int]kind{
		32: {name: "v8 of 32 bits", unit: time.Second, capacity: 4096},
		36: {name: "v8 of 36 bits", unit: time.Second, capacity: 1 << 20},
		66: {name: "v8 of 66 bits", unit: time.Nanosecond, capacity: 256},
		48: {name: "v8 of 48 bits", unit: time.Millisecond, capacity: 4096},
		60: {name: "v8 of 60 bits", unit: 100 * time.Nanosecond, capacity: 256},
		64: {name: "v8 of 64 bits", unit: 16 * time.Nanosecond, capacity: 256}, // of its 1 ns, the upper 60 bits
	} {
		c := Clock{Bits: size, Tick: k.unit, Epoch: unix}
		if size == 64 {
			c.Tick = 1
		}
		if size == 36 {
			c.SequenceBits = 20
		}
		decode := func(t testing.TB, u uuid.UUID) V8 {
			t.Helper()
			f, err := DecodeV8(u, size, c.SequenceBits)
			must(t, err)
			return f
		}
		k.version = 8
		k.make = func(opts ...uuidgen.Option) (*uuidgen.Generator, error) { return NewV8Generator(c, opts...) }
		k.sequence = func(t testing.TB, u uuid.UUID) int { return int(decode(t, u).Sequence) }
		k.time = func(t testing.TB, u uuid.UUID) time.Time {
			at, err := c.Time(decode(t, u).Timestamp)
			must(t, err)
			return at
		}
		k.node = func(t testing.TB, u uuid.UUID) (uint64, int) {
			return decode(t, u).Node, map[int]int{32: 62, 36: 54, 48: 62, 60: 54, 64: 54, 66: 48}[size]
		}
		ks = append(ks, k)
	}
	return ks
}

func kinds() []kind {
	decode := func(t testing.TB, u uuid.UUID) V6 {
		t.Helper()
		f, err := DecodeV6(u)
		must(t, err)
		return f
	}
	return append(sequenced(), kind{
		name: "v6", make: NewV6Generator, unit: 100 * time.Nanosecond, version: 6,
		node: func(t testing.TB, u uuid.UUID) (uint64, int) { return decode(t, u).Node, 48 },
		time: func(t testing.TB, u uuid.UUID) time.Time { return decode(t, u).Time() },
	})
}

func TestSequence(t *testing.T) {
	for _, k := range sequenced() {
		t.Run(k.name, func(t *testing.T) {
			// On the hour, so that a step within a unit is one.
			c := newClock(someTime.Truncate(time.Hour))
			g, err := k.make(uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0))
			must(t, err)
			at := c.now()
			var last uuid.UUID
			for tick := range 3 {
				for i := range 5 {
					u := next(t, g)
					if got := k.sequence(t, u); got != i {
						t.Fatalf("tick %d: sequence %d, want %d", tick, got, i)
					}
					if got := k.time(t, u); !got.Equal(at) {
						t.Fatalf("tick %d: time %v, want %v", tick, got, at)
					}
					if bytes.Compare(last[:], u[:]) >= 0 {
						t.Fatalf("%v came after %v", u, last)
					}
					last = u
					c.add(k.unit / 10) // the same timestamp
				}
				at = at.Add(k.unit)
				c.at.Store(at.UnixNano())
			}
		})
	}
}

// With a clock that does not move, a timestamp gives exactly its capacity, and then errors until
// the clock moves.
func TestExhaustion(t *testing.T) {
	for _, k := range sequenced() {
		t.Run(k.name, func(t *testing.T) {
			c := newClock(someTime)
			g, err := k.make(uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0))
			must(t, err)
			for i := 0; i < k.capacity; i++ {
				if i == 20 && k.capacity > 1<<15 { // all but the last
					us := make([]uuid.UUID, 1<<15-40)
					for ; i < k.capacity-20; i += len(us) {
						us = us[:min(len(us), k.capacity-20-i)]
						must(t, g.Fill(us))
					}
				}
				if got := k.sequence(t, next(t, g)); got != i {
					t.Fatalf("sequence %d, want %d", got, i)
				}
			}
			for range 3 {
				if u, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrWait) || u != uuid.Nil {
					t.Fatalf("after %d: %v, %v, want uuidgen.ErrWait", k.capacity, u, err)
				}
			}
			if id, err := g.NewID(); !errors.Is(err, uuidgen.ErrWait) || id != nil {
				t.Fatalf("NewID: %v, %v, want uuidgen.ErrWait", id, err)
			}
			c.add(-k.unit / 2) // behind, and still used up
			if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrWait) {
				t.Fatalf("behind the clock: %v, want uuidgen.ErrWait", err)
			}
			c.add(2 * k.unit)
			if got := k.sequence(t, next(t, g)); got != 0 {
				t.Fatalf("at the new timestamp: sequence %d, want 0", got)
			}
		})
	}
}

func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func TestOptions(t *testing.T) {
	for _, k := range kinds() {
		name := fmt.Sprintf("version %d", k.version)
		for _, tt := range []struct {
			opt  uuidgen.Option
			want string
			but  uuid.Version // has no error
		}{
			{nil, "nil Option", 0},
			{uuidgen.WithClock(nil), "WithClock: nil function", 0},
			{uuidgen.WithRandom(nil), "WithRandom: nil reader", 0},
			{uuidgen.WithMaxRollback(-1), "WithMaxRollback: negative duration -1ns", 0},
			{uuidgen.WithMaxWait(-1), "WithMaxWait: negative duration -1ns", 0},
			{uuidgen.WithMaxAhead(-1), "WithMaxAhead: negative duration -1ns", 0},
			{WithEncoding(3), "WithEncoding: Encoding(3) is not an encoding of sub-seconds", 0},
			{uuidgen.WithMaxAhead(1), "WithMaxAhead does not apply to " + name, 6},
			{WithEncoding(Floor), "WithEncoding does not apply to " + name, 7},
		} {
			g, err := k.make(uuidgen.WithMaxWait(0), tt.opt)
			if tt.but == k.version {
				must(t, err)
			} else if g != nil || err == nil || err.Error() != "peabody01: "+tt.want {
				t.Errorf("%s: %v, want %q", k.name, err, tt.want)
			}
		}
		for _, at := range []time.Time{instant(t, "1500-01-01T00:00:00Z"), time.Unix(1<<40, 0)} {
			if k.name == "v8 of 60 bits" && at.Year() > 1970 {
				continue // its 100 ns are enough for a while
			}
			g, err := k.make(uuidgen.WithClock(func() time.Time { return at }))
			must(t, err)
			if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrTimeRange) {
				t.Errorf("%s at %v: %v, want uuidgen.ErrTimeRange", k.name, at, err)
			}
		}
	}
	for name, err := range map[string]error{
		"a precision that is none": func() error { _, err := NewV7Generator(4); return err }(),
		"an encoding that is none": func() error { _, err := NewV7Generator(Millisecond, WithEncoding(3)); return err }(),
		"an epoch in the year 1": func() error {
			_, err := NewV8Generator(Clock{Bits: 60, Tick: time.Second, Epoch: time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 0))})
			return err
		}(),
		"an empty clock": func() error { _, err := NewV8Generator(Clock{}); return err }(),
		"two functions": func() error {
			_, err := NewV8Generator(Clock{Bits: 70, Now: func() uint64 { return 0 },
				NowWide: func() (uint64, uint64) { return 0, 0 }})
			return err
		}(),
		"two clocks": func() error {
			_, err := NewV8Generator(Clock{Bits: 32, Now: func() uint64 { return 0 }}, uuidgen.WithClock(time.Now))
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNewID(t *testing.T) {
	for _, k := range kinds() {
		id, err := g0(k).NewID()
		u, ok := id.(uuid.UUID)
		if err != nil || !ok || u.Version() != k.version || u.Variant() != uuid.RFC4122 {
			t.Errorf("%s: %T %v, %v", k.name, id, id, err)
		}
		if got := k.time(t, u); time.Since(got).Abs() > time.Minute {
			t.Errorf("%s: time %v", k.name, got)
		}
	}
}

// Ten million UUIDs over the formats, from generators shared by all cores: in order for each
// caller, and none twice.
func TestUnique(t *testing.T) {
	total := 10_000_000
	if testing.Short() {
		total = 400_000
	}
	ks := kinds()
	workers := max(2, runtime.GOMAXPROCS(0))
	each := total/len(ks)/workers + 1
	us := make([]uuid.UUID, workers*each)
	for _, k := range ks {
		// A clock that moves on by four units or more for the UUIDs of one, and steps back at
		// times.
		var asks atomic.Int64
		g, err := k.make(uuidgen.WithClock(func() time.Time {
			n := asks.Add(1)
			back := time.Duration(0)
			if n%1000 > 990 {
				back = 900 * time.Millisecond
			}
			return someTime.Add(time.Duration(n) * max(1, k.unit*4/time.Duration(max(4, k.capacity)))).Add(-back)
		}))
		must(t, err)
		var group sync.WaitGroup
		for w := range workers {
			own := us[w*each : (w+1)*each]
			group.Go(func() {
				for i := range own {
					var err error
					if own[i], err = g.NewUUID(); err != nil {
						t.Errorf("%s: %v", k.name, err)
						return
					}
				}
				for i := 1; i < len(own); i++ {
					if compare(own[i-1], own[i]) >= 0 {
						t.Errorf("%s: %v came after %v", k.name, own[i], own[i-1])
						return
					}
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		slices.SortFunc(us, compare)
		if n := len(slices.CompactFunc(us, func(a, b uuid.UUID) bool { return a == b })); n != len(us) {
			t.Fatalf("%s: %d of %d are duplicates", k.name, len(us)-n, len(us))
		}
	}
}
