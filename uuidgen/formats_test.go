package uuidgen_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidgen/i3core"
	"github.com/bsonids/bsonids/uuidgen/peabody01"
	"github.com/bsonids/bsonids/uuidrep"
)

// A format is what a Generator makes.
type format struct {
	name string
	make func(...uuidgen.Option) (*uuidgen.Generator, error)

	// Of formats that begin new orders:
	order   uuidrep.Representation // in which the ids ascend
	noAhead bool                   // WithMaxAhead does not apply
}

func (f format) new(t *testing.T, opts ...uuidgen.Option) *uuidgen.Generator {
	t.Helper()
	g, err := f.make(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// stored returns the bytes in which the ids are in order.
func (f format) stored(u uuid.UUID) []byte {
	b := f.order.Permute(u)
	return b[:]
}

// ordered are the formats with orders.
var ordered = []format{
	{"version 6", uuidgen.NewV6Generator, uuidrep.Standard, false},
	{"version 7", uuidgen.NewV7Generator, uuidrep.Standard, false},
	{"version 8 for csharpLegacy", func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return uuidgen.NewV8Generator(uuidrep.CSharpLegacy, opts...)
	}, uuidrep.CSharpLegacy, false},
	{"version 8 for javaLegacy", func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return uuidgen.NewV8Generator(uuidrep.JavaLegacy, opts...)
	}, uuidrep.JavaLegacy, false},
	{"peabody01, version 6", peabody01.NewV6Generator, uuidrep.Standard, false},
	{"i3core, sequential", func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return i3core.NewSequentialGenerator(append(opts, i3core.WithVersion(0xD))...)
	}, uuidrep.CSharpLegacy, true},
	{"i3core, sequential for SQL Server", func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return i3core.NewSequentialGenerator(append(opts, i3core.WithVersion(0xD), i3core.WithDBMS(i3core.DBMSSQLServer))...)
	}, uuidrep.CSharpLegacy, true},
}

// others are the formats without.
var others = []format{
	{name: "version 4", make: uuidgen.NewV4Generator},
	{name: "peabody01, version 7", make: func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return peabody01.NewV7Generator(peabody01.Microsecond, opts...)
	}},
	{name: "peabody01, version 8", make: func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return peabody01.NewV8Generator(peabody01.Clock{Bits: 48, Tick: time.Millisecond, Epoch: time.Unix(0, 0)}, opts...)
	}},
	{name: "i3core, random", make: i3core.NewRandomGenerator},
	{name: "i3core, notifier", make: func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
		return i3core.NewNotifierGenerator([6]byte{1}, 1, opts...)
	}},
}

// A testClock is a clock that shows the time it is set to.
type testClock struct{ t time.Time }

func (c *testClock) now() time.Time { return c.t }

// sevens is a reader that gives the byte 7 for ever.
type sevens struct{}

func (sevens) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 7
	}
	return len(p), nil
}

func newUUID(t *testing.T, g *uuidgen.Generator) uuid.UUID {
	t.Helper()
	u, err := g.NewUUID()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The methods of the zero Generator return an error, or zero.
func TestZeroGenerator(t *testing.T) {
	var g uuidgen.Generator
	id, errID := g.NewID()
	u, errUUID := g.NewUUID()
	at, errAt := g.NewUUIDAt(time.Unix(1e9, 0))
	ids := []uuid.UUID{{1}}
	errFill, errRenew := g.Fill(ids), g.Renew()
	n := 0
	for _, err := range g.UUIDs(3) {
		if n++; err == nil || n > 1 {
			t.Error("UUIDs goes on")
		}
	}
	for _, err := range []error{errID, errUUID, errAt, errFill, errRenew} {
		if err == nil || err.Error() != "uuidgen: a Generator is made by one of the New…Generator functions" {
			t.Error(err)
		}
	}
	if id != nil || u != uuid.Nil || at != uuid.Nil || ids[0] != uuid.Nil || n != 1 || g.Ahead() != 0 || g.Orders() != 0 {
		t.Errorf("%v, %v, %v, %v, %d, %v, %d", id, u, at, ids, n, g.Ahead(), g.Orders())
	}
}

// An Option that a format cannot obey is an error of the constructor, in the name of the constructor's package.
func TestOptionsOfOtherFormats(t *testing.T) {
	own := map[string]uuidgen.Option{
		"WithMachineID": peabody01.WithMachineID(1, 8), "WithEncoding": peabody01.WithEncoding(peabody01.Floor),
		"WithCustom": i3core.WithCustom(1), "WithVersion": i3core.WithVersion(1), "WithDBMS": i3core.WithDBMS(i3core.DBMSBinary),
		"WithTimestamps": i3core.WithTimestamps(func() uint64 { return 0 }),
	}
	obeyed := map[string]string{
		"peabody01, version 6": "WithMachineID", "peabody01, version 7": "WithMachineID WithEncoding", "peabody01, version 8": "WithMachineID",
		"i3core, random": "WithCustom", "i3core, notifier": "WithCustom", "i3core, sequential": "WithVersion WithDBMS WithTimestamps",
		"i3core, sequential for SQL Server": "WithVersion WithDBMS WithTimestamps",
	}
	for _, f := range append(ordered, others...) {
		pkg, _, found := strings.Cut(f.name, ", ")
		if !found {
			pkg = "uuidgen"
		}
		for name, opt := range own {
			_, err := f.make(opt)
			refused := err != nil && strings.HasPrefix(err.Error(), pkg+": "+name+" does not apply to ")
			if refused == strings.Contains(obeyed[f.name], name) {
				t.Errorf("%s, %s: %v", f.name, name, err)
			}
		}
		if _, err := f.make(nil); err == nil || err.Error() != pkg+": nil Option" {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

// Formats whose ids have no orders count none, or the one that they begin with.
func TestOrdersOfOthers(t *testing.T) {
	for _, f := range others {
		g := f.new(t)
		random := strings.HasSuffix(f.name, "random") || f.name == "version 4"
		if n := g.Orders(); n != 1 && !random || n != 0 && random || g.Ahead() > time.Second {
			t.Errorf("%s: %d orders, %v ahead", f.name, n, g.Ahead())
		}
		if err := g.Renew(); err != nil || !random && g.Orders() != 2 {
			t.Errorf("%s, renewed: %v, %d orders", f.name, err, g.Orders())
		}
	}
}

// Ids for given instants are those of RFC 9562 alone.
func TestGivenInstantsOfOtherFormats(t *testing.T) {
	for _, f := range append(ordered, others...) {
		u, err := f.new(t).NewUUIDAt(time.Unix(1e9, 0))
		_, other, _ := strings.Cut(f.name, ", ")
		if refused := errors.Is(err, errors.ErrUnsupported); refused != (other != "") || (err != nil) != (u == uuid.Nil) {
			t.Errorf("%s: %v, %v", f.name, u, err)
		}
	}
}

// One reading of the clock a year ahead has no lasting effect: the next id is in a new order at the clock's time. A limit of
// uuidgen.WithMaxAhead does not turn the wrong reading into errors.
func TestOneBadReading(t *testing.T) {
	for _, f := range ordered {
		for _, opts := range [][]uuidgen.Option{nil, {uuidgen.WithMaxAhead(0), uuidgen.WithMaxWait(0)}} {
			if f.noAhead && opts != nil {
				continue
			}
			start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := testClock{start}
			g := f.new(t, append(opts, uuidgen.WithClock(clock.now))...)
			newUUID(t, g)
			clock.t = start.AddDate(1, 0, 0)
			newUUID(t, g)
			if g.Orders() != 1 {
				t.Errorf("%s: %d orders", f.name, g.Orders())
			}
			for i := range 3 {
				clock.t = start.Add(time.Duration(i+1) * time.Millisecond)
				newUUID(t, g)
				if g.Ahead() != 0 || g.Orders() != 2 {
					t.Errorf("%s: %v ahead, %d orders", f.name, g.Ahead(), g.Orders())
				}
			}
		}
	}
}

// The limit of WithMaxRollback is measured from the highest reading of the order, not from the last timestamp: a burst never
// ends an order, however far it runs ahead.
func TestMaxRollback(t *testing.T) {
	for _, f := range ordered {
		for _, limit := range []time.Duration{0, time.Millisecond, time.Minute, time.Hour, math.MaxInt64} {
			opts := []uuidgen.Option{uuidgen.WithMaxRollback(limit)}
			if limit == time.Minute {
				opts = nil // the default
			}
			start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := testClock{start}
			g := f.new(t, append(opts, uuidgen.WithClock(clock.now))...)
			ids := make([]uuid.UUID, 200_000) // 20 to 49 ms
			if err := g.Fill(ids); err != nil {
				t.Fatal(err)
			}
			last := ids[len(ids)-1]
			back := min(limit, 20*365*24*time.Hour)
			for _, at := range []time.Duration{0, -back / 2, -back, 0, -back} {
				clock.t = start.Add(at)
				u := newUUID(t, g)
				if bytes.Compare(f.stored(last), f.stored(u)) >= 0 || g.Orders() != 1 {
					t.Errorf("%s, limit %v, %v from the highest reading: %v after %v, %d orders", f.name, limit, at, u, last, g.Orders())
				}
				last = u
			}
			if limit == math.MaxInt64 {
				continue
			}
			clock.t = start.Add(-limit - time.Microsecond)
			u := newUUID(t, g)
			if bytes.Compare(f.stored(last), f.stored(u)) <= 0 || g.Ahead() != 0 || g.Orders() != 2 {
				t.Errorf("%s, limit %v, beyond it: %v after %v, %v ahead, %d orders", f.name, limit, u, last, g.Ahead(), g.Orders())
			}
		}
	}
}

// A batch lies in one order, on a clock of which every reading begins a new one, and whatever other goroutines do.
func TestFillLiesInOneOrder(t *testing.T) {
	for _, f := range ordered {
		var mu sync.Mutex
		asked := int64(0)
		wild := uuidgen.WithClock(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return time.Unix(1e9+asked%2*1000, 0)
		})
		for i, opts := range [][]uuidgen.Option{{wild}, {wild, uuidgen.WithRandom(sevens{})}, {wild, uuidgen.WithMaxAhead(time.Second)}} {
			if f.noAhead && i == 2 {
				continue
			}
			g := f.new(t, opts...)
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					rounds := 10
					if uuidgen.RaceEnabled {
						rounds = 1
					}
					for _, n := range []int{2, 200, 255, 256, 3000, 20_000} {
						ids := make([]uuid.UUID, n)
						for range rounds {
							if err := g.Fill(ids); err != nil && !errors.Is(err, uuidgen.ErrWait) {
								t.Error(err)
								return
							}
							for i := 1; i < n && ids[0] != uuid.Nil; i++ {
								if bytes.Compare(f.stored(ids[i-1]), f.stored(ids[i])) >= 0 {
									t.Errorf("%s: %v after %v", f.name, ids[i], ids[i-1])
									return
								}
							}
						}
					}
				})
			}
			group.Wait()
		}
	}
}

// A clock that does what clocks do, on goroutines that draw and look: nothing is made twice, and what was drawn in one order
// after a call had returned is greater.
func TestSimulatedClock(t *testing.T) {
	seeds := uint64(6)
	if uuidgen.RaceEnabled {
		seeds = 1
	}
	for _, f := range ordered {
		for seed := range seeds {
			rnd := rand.New(rand.NewPCG(seed, 7))
			var mu sync.Mutex
			now := time.Unix(1e9, 0)
			g := f.new(t, uuidgen.WithClock(func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				switch rnd.IntN(40) {
				case 0:
					now = now.Add(time.Duration(rnd.Int64N(int64(2 * time.Hour))))
				case 1:
					now = now.Add(-time.Duration(rnd.Int64N(int64(2 * time.Hour))))
				case 2:
					now = now.Add(-time.Duration(rnd.Int64N(int64(time.Minute))))
				case 3:
					return now.AddDate(1, 0, 0) // wrong once
				default:
					now = now.Add(time.Duration(rnd.Int64N(int64(time.Millisecond))))
				}
				return now
			}))
			var all sync.Map
			var shown struct {
				sync.Mutex
				order uint64
				last  uuid.UUID
			}
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for i := range 400 {
						shown.Lock()
						order, before := shown.order, shown.last
						shown.Unlock()
						first := g.Orders()
						ids := make([]uuid.UUID, 1+i%7)
						if i%50 == 0 {
							ids = make([]uuid.UUID, 1500)
						}
						if err := g.Fill(ids); err != nil {
							t.Error(err)
							return
						}
						for _, u := range ids {
							if _, loaded := all.LoadOrStore(u, true); loaded {
								t.Errorf("%v was made twice", u)
								return
							}
						}
						if g.Orders() != first {
							continue // one of two orders
						}
						if order == first && bytes.Compare(f.stored(before), f.stored(ids[0])) >= 0 {
							t.Errorf("%s, seed %d: %v after %v in order %d", f.name, seed, ids[0], before, order)
							return
						}
						shown.Lock()
						shown.order, shown.last = first, ids[len(ids)-1]
						shown.Unlock()
						if i == 200 {
							if err := g.Renew(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			group.Wait()
			if g.Orders() < 5 {
				t.Errorf("%s, seed %d: %d orders", f.name, seed, g.Orders())
			}
		}
	}
}
