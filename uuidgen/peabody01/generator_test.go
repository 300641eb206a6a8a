package peabody01

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen/internal/wait"
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
func next(t testing.TB, g *Generator) uuid.UUID {
	t.Helper()
	u, err := g.NewUUID()
	must(t, err)
	return u
}

var someTime = time.Unix(1645557742, 123456789)

// kind is a generator of each format, with what a test needs to know of it.
type kind struct {
	name     string
	make     func(opts ...Option) (*Generator, error)
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
	} {
		decode := func(t testing.TB, u uuid.UUID) V7 {
			t.Helper()
			f, err := DecodeV7(u, p, RoundUp)
			must(t, err)
			return f
		}
		k.version = 7
		k.make = func(opts ...Option) (*Generator, error) { return NewV7(p, opts...) }
		k.sequence = func(t testing.TB, u uuid.UUID) int { return int(decode(t, u).Sequence) }
		k.time = func(t testing.TB, u uuid.UUID) time.Time { return decode(t, u).Time() }
		k.node = func(t testing.TB, u uuid.UUID) (uint64, int) {
			return decode(t, u).Node, map[Precision]int{Millisecond: 62, Microsecond: 48, Nanosecond: 40}[p]
		}
		ks = append(ks, k)
	}
	for size, k := range map[int]kind{
		32: {name: "v8 of 32 bits", unit: time.Second, capacity: 4096},
		48: {name: "v8 of 48 bits", unit: time.Millisecond, capacity: 4096},
		60: {name: "v8 of 60 bits", unit: 100 * time.Nanosecond, capacity: 256},
		64: {name: "v8 of 64 bits", unit: 16 * time.Nanosecond, capacity: 256}, // of its 1 ns, the upper 60 bits
	} {
		c := Clock{Bits: size, Tick: k.unit}
		if size == 64 {
			c.Tick = 1
		}
		decode := func(t testing.TB, u uuid.UUID) V8 {
			t.Helper()
			f, err := DecodeV8(u, size)
			must(t, err)
			return f
		}
		k.version = 8
		k.make = func(opts ...Option) (*Generator, error) { return NewV8(c, opts...) }
		k.sequence = func(t testing.TB, u uuid.UUID) int { return int(decode(t, u).Sequence) }
		k.time = func(t testing.TB, u uuid.UUID) time.Time {
			at, err := c.Time(decode(t, u).Timestamp)
			must(t, err)
			return at
		}
		k.node = func(t testing.TB, u uuid.UUID) (uint64, int) {
			return decode(t, u).Node, map[int]int{32: 62, 48: 62, 60: 54, 64: 54}[size]
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
		name: "v6", make: NewV6, unit: 100 * time.Nanosecond, version: 6,
		node: func(t testing.TB, u uuid.UUID) (uint64, int) { return decode(t, u).Node, 48 },
		time: func(t testing.TB, u uuid.UUID) time.Time { return decode(t, u).Time() },
	})
}

func TestSequence(t *testing.T) {
	for _, k := range sequenced() {
		t.Run(k.name, func(t *testing.T) {
			// On the hour, so that a step within a unit is one.
			c := newClock(someTime.Truncate(time.Hour))
			g, err := k.make(WithClock(c.now), WithMaxWait(0))
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

// With a clock that does not move, a timestamp gives exactly its capacity, and then errors until the clock moves.
func TestExhaustion(t *testing.T) {
	for _, k := range sequenced() {
		t.Run(k.name, func(t *testing.T) {
			c := newClock(someTime)
			g, err := k.make(WithClock(c.now), WithMaxWait(0))
			must(t, err)
			for i := range k.capacity {
				if got := k.sequence(t, next(t, g)); got != i {
					t.Fatalf("sequence %d, want %d", got, i)
				}
			}
			for range 3 {
				if u, err := g.NewUUID(); !errors.Is(err, ErrExhausted) || u != uuid.Nil {
					t.Fatalf("after %d: %v, %v, want ErrExhausted", k.capacity, u, err)
				}
			}
			if id, err := g.NewID(); !errors.Is(err, ErrExhausted) || id != nil {
				t.Fatalf("NewID: %v, %v, want ErrExhausted", id, err)
			}
			c.add(-k.unit / 2) // behind, and still used up
			if _, err := g.NewUUID(); !errors.Is(err, ErrExhausted) {
				t.Fatalf("behind the clock: %v, want ErrExhausted", err)
			}
			c.add(2 * k.unit)
			if got := k.sequence(t, next(t, g)); got != 0 {
				t.Fatalf("at the new timestamp: sequence %d, want 0", got)
			}
		})
	}
}

// Version 6 counts timestamps up while the clock stands still, no further ahead than it may be behind.
func TestV6FrozenClock(t *testing.T) {
	c := newClock(someTime)
	const ticks = 50
	g, err := NewV6(WithClock(c.now), WithMaxWait(0), WithMaxRollback(ticks*gregorianTick))
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
	if _, err := g.NewUUID(); !errors.Is(err, ErrExhausted) {
		t.Fatalf("error %v, want ErrExhausted", err)
	}
	c.add(gregorianTick)
	next(t, g)
	if _, err := g.NewUUID(); !errors.Is(err, ErrExhausted) {
		t.Fatalf("error %v, want ErrExhausted", err)
	}
	c.add(-gregorianTick)
	if _, err := g.NewUUID(); !errors.Is(err, ErrClockRollback) {
		t.Fatalf("error %v, want ErrClockRollback", err)
	}
	c.add(time.Second)
	if f, err := DecodeV6(next(t, g)); err != nil || !f.Time().Equal(c.now().Truncate(100*time.Nanosecond)) {
		t.Fatalf("%+v, %v, want the clock's time", f, err)
	}
}

// A generator without a limit of its own asks the clock again until it moves on.
func TestWaitForTick(t *testing.T) {
	for _, k := range sequenced() {
		t.Run(k.name, func(t *testing.T) {
			c := newClock(someTime)
			asks := 0
			g, err := k.make(WithClock(func() time.Time {
				if asks++; asks == k.capacity+100 { // more than the generator asks without a pause
					c.add(k.unit)
				}
				return c.now()
			}))
			must(t, err)
			for range k.capacity {
				next(t, g)
			}
			if got := k.sequence(t, next(t, g)); got != 0 || asks != k.capacity+100 {
				t.Fatalf("sequence %d after %d asks, want 0 after %d", got, asks, k.capacity+100)
			}
		})
	}
}

// The default limit ends the wait, and the lock is free meanwhile. The bubble's clock moves only while all sleep.
func TestWaitLimit(t *testing.T) {
	for _, limit := range []time.Duration{defaultWait, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var opts []Option
			if limit != defaultWait {
				opts = append(opts, WithMaxWait(limit))
			}
			g, err := NewV7(Nanosecond, append(opts, WithClock(func() time.Time { return someTime }))...)
			must(t, err)
			for range 256 {
				next(t, g)
			}
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					began := time.Now()
					_, err := g.NewUUID()
					if d := time.Since(began); !errors.Is(err, ErrExhausted) || d < limit || d > limit+2*wait.Pause {
						t.Errorf("%v after %v, want ErrExhausted after %v", err, d, limit)
					}
				})
			}
			callers.Wait()
		})
	}
}

// With time itself for a clock, exhaustion costs a wait and no error.
func TestWaitByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := NewV7(Millisecond)
		must(t, err)
		began := time.Now()
		var us []uuid.UUID
		for range 3 * 4096 {
			us = append(us, next(t, g))
		}
		if d := time.Since(began); d < 2*time.Millisecond || d > 2*time.Millisecond+wait.Pause {
			t.Errorf("three milliseconds' UUIDs took %v, want 2ms", d)
		}
		if !slices.IsSortedFunc(us, compare) {
			t.Error("not in order")
		}
	})
}

func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func TestClockRollback(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for _, c := range []struct {
				name   string
				opts   []Option
				within time.Duration
			}{
				{"default", nil, time.Second},
				{"an hour", []Option{WithMaxRollback(time.Hour)}, time.Hour},
				{"none", []Option{WithMaxRollback(0)}, 0},
			} {
				start := someTime.Truncate(time.Hour)
				ck := newClock(start)
				g, err := k.make(append(c.opts, WithClock(ck.now), WithMaxWait(0))...)
				must(t, err)
				last := next(t, g)
				hold := func() {
					t.Helper()
					u := next(t, g)
					if compare(last, u) >= 0 {
						t.Fatalf("%s: %v came after %v", c.name, u, last)
					}
					// Version 6 counts its timestamp on.
					if got := k.time(t, u).Sub(start); got < 0 || got > time.Microsecond {
						t.Fatalf("%s: time %v from the last, want the last", c.name, got)
					}
					last = u
				}
				if c.within > 0 {
					for _, back := range []time.Duration{k.unit, c.within / 2} {
						ck.at.Store(start.Add(-back).UnixNano())
						hold()
					}
					// The last of version 6 is some ticks ahead by now.
					ck.at.Store(start.Add(-c.within + 1000*time.Nanosecond).Truncate(k.unit).UnixNano())
					if k.unit < time.Second {
						hold()
					}
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
	g, err := NewV8(Clock{Bits: 32, Now: func() uint64 { return ticks }}, WithMaxWait(0))
	must(t, err)
	for i := range 2 {
		f, err := DecodeV8(next(t, g), 32)
		if err != nil || f.Timestamp != ticks || f.Sequence != uint16(i) {
			t.Fatalf("%+v, %v, want %#x with sequence %d", f, err, ticks, i)
		}
	}
	ticks--
	if _, err := g.NewUUID(); !errors.Is(err, ErrClockRollback) {
		t.Fatalf("a step back: %v, want ErrClockRollback", err)
	}
	ticks = 1 << 32
	if _, err := g.NewUUID(); !errors.Is(err, ErrTimeRange) {
		t.Fatalf("a timestamp too wide: %v, want ErrTimeRange", err)
	}

	// Every step back is an error, whatever the limit.
	ticks = 9
	g, err = NewV8(Clock{Bits: 32, Now: func() uint64 { return ticks }}, WithMaxRollback(math.MaxInt64))
	must(t, err)
	next(t, g)
	ticks--
	if _, err := g.NewUUID(); !errors.Is(err, ErrClockRollback) {
		t.Fatalf("a step back: %v, want ErrClockRollback", err)
	}

	// With a tick, a step back is measured by it; and however long it is, it does not wrap.
	ticks = 1<<64 - 1
	g, err = NewV8(Clock{Bits: 64, Tick: time.Minute, Now: func() uint64 { return ticks }},
		WithMaxWait(0), WithMaxRollback(time.Hour))
	must(t, err)
	next(t, g)
	for back, want := range map[uint64]error{60: nil, 80: ErrClockRollback, 1<<64 - 1: ErrClockRollback} {
		ticks = 1<<64 - 1 - back
		if _, err := g.NewUUID(); !errors.Is(err, want) {
			t.Fatalf("%d minutes back: %v, want %v", back, err, want)
		}
	}
}

// octets gives these, and then ones.
type octets []byte

func (o *octets) Read(b []byte) (int, error) {
	n := copy(b, *o)
	*o = (*o)[n:]
	for i := n; i < len(b); i++ {
		b[i] = 0xFF
	}
	return len(b), nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestNode(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			// The node is what was drawn, and zeros are drawn again: 7 nodes, and what version 6 draws at first.
			source := make(octets, 7*8)
			if k.version == 6 {
				source = make(octets, 8*8)
			}
			g, err := k.make(WithRandom(&source))
			must(t, err)
			if got, width := k.node(t, next(t, g)); got != 1<<width-1 {
				t.Errorf("node %#x, want %d ones", got, width)
			}

			g, err = k.make(WithRandom(zeros{}))
			must(t, err)
			if u, err := g.NewUUID(); !errors.Is(err, ErrRandom) || u != uuid.Nil {
				t.Errorf("of zeros alone: %v, %v, want ErrRandom", u, err)
			}

			// The machine id is right after the sequence, and is enough for a node that is not zero.
			_, width := k.node(t, uuid.Must(g0(k).NewUUID()))
			for _, bits := range []int{1, 10, width - 16} {
				for _, id := range []uint64{0, 1, 1<<bits - 1} {
					g, err := k.make(WithMachineID(id, bits))
					must(t, err)
					if got, _ := k.node(t, next(t, g)); got>>(width-bits) != id || got == 0 {
						t.Errorf("machine %#x of %d bits: node %#x", id, bits, got)
					}
				}
				g, err := k.make(WithMachineID(1, bits), WithRandom(zeros{}))
				must(t, err)
				if got, _ := k.node(t, next(t, g)); got != 1<<(width-bits) {
					t.Errorf("machine 1 of %d bits, zeros: node %#x", bits, got)
				}
				g, err = k.make(WithMachineID(0, bits), WithRandom(zeros{}))
				must(t, err)
				if _, err := g.NewUUID(); !errors.Is(err, ErrRandom) {
					t.Errorf("machine 0, zeros: %v, want ErrRandom", err)
				}
			}
			for _, c := range []struct {
				id   uint64
				bits int
			}{{0, 0}, {0, -1}, {0, width - 15}, {0, 64}, {2, 1}, {1 << 20, 20}} {
				if _, err := k.make(WithMachineID(c.id, c.bits)); err == nil {
					t.Errorf("machine %#x of %d bits: no error", c.id, c.bits)
				}
			}
		})
	}
}

func g0(k kind) *Generator {
	g, err := k.make()
	if err != nil {
		panic(err)
	}
	return g
}

func TestRandomSourceFails(t *testing.T) {
	broken := errors.New("broken")
	for _, k := range kinds() {
		for name, c := range map[string]struct {
			r    io.Reader
			want error
		}{
			"at once":  {iotest.ErrReader(broken), broken},
			"at end":   {bytes.NewReader(nil), io.EOF},
			"too soon": {bytes.NewReader(make([]byte, 3)), io.ErrUnexpectedEOF},
		} {
			g, err := k.make(WithRandom(c.r))
			if err == nil {
				var u uuid.UUID
				if u, err = g.NewUUID(); u != uuid.Nil {
					t.Errorf("%s, %s: made %v", k.name, name, u)
				}
			}
			if !errors.Is(err, c.want) || !errors.Is(err, ErrRandom) {
				t.Errorf("%s, %s: error %v, want %v and ErrRandom", k.name, name, err, c.want)
			}
		}
		// What failed costs no sequence, and a source that stutters is read to the end.
		frozen := WithClock(func() time.Time { return someTime })
		source := &failing{r: iotest.OneByteReader(new(octets))}
		g, err := k.make(WithRandom(source), frozen)
		must(t, err)
		a := next(t, g)
		source.err = broken
		if _, err := g.NewUUID(); !errors.Is(err, broken) {
			t.Errorf("%s: error %v, want %v", k.name, err, broken)
		}
		source.err = nil
		b := next(t, g)
		if compare(a, b) >= 0 || k.sequence != nil && k.sequence(t, b) != 1 {
			t.Errorf("%s: %v follows %v", k.name, b, a)
		}
	}
}

type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.r.Read(b)
}

func TestOptions(t *testing.T) {
	for _, k := range kinds() {
		for name, opt := range map[string]Option{
			"nil clock": WithClock(nil), "nil random source": WithRandom(nil),
			"negative rollback": WithMaxRollback(-1), "negative wait": WithMaxWait(-1),
		} {
			if _, err := k.make(opt); err == nil {
				t.Errorf("%s, %s: no error", k.name, name)
			}
		}
		if _, err := k.make(WithEncoding(Floor)); (err == nil) != (k.version == 7) {
			t.Errorf("%s with an encoding: %v", k.name, err)
		}
		for _, at := range []time.Time{instant(t, "1500-01-01T00:00:00Z"), time.Unix(1<<40, 0)} {
			if k.name == "v8 of 60 bits" && at.Year() > 1970 {
				continue // its 100 ns are enough for a while
			}
			g, err := k.make(WithClock(func() time.Time { return at }))
			must(t, err)
			if _, err := g.NewUUID(); !errors.Is(err, ErrTimeRange) {
				t.Errorf("%s at %v: %v, want ErrTimeRange", k.name, at, err)
			}
		}
	}
	for name, err := range map[string]error{
		"a precision that is none": func() error { _, err := NewV7(3); return err }(),
		"an encoding that is none": func() error { _, err := NewV7(Millisecond, WithEncoding(3)); return err }(),
		"an empty clock":           func() error { _, err := NewV8(Clock{}); return err }(),
		"two clocks": func() error {
			_, err := NewV8(Clock{Bits: 32, Now: func() uint64 { return 0 }}, WithClock(time.Now))
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNewID(t *testing.T) {
	if id, err := new(Generator).NewID(); id != nil || err == nil {
		t.Errorf("the zero value made %v, %v", id, err)
	}
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

// Ten million UUIDs over the formats, from generators shared by all cores: in order for each caller, and none twice.
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
		// A clock that moves on by four units or more for the UUIDs of one, and steps back at times.
		var asks atomic.Int64
		g, err := k.make(WithClock(func() time.Time {
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
