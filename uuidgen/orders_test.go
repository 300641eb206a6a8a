package uuidgen

import (
	"bytes"
	"errors"
	"math"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// One reading of the clock a year ahead has no lasting effect: the next id is in a new order at the clock's time. A limit of
// WithMaxAhead does not turn the wrong reading into errors.
func TestOneBadReading(t *testing.T) {
	for name := range timed {
		for _, opts := range [][]Option{nil, {WithMaxAhead(0), WithMaxWait(0)}} {
			start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := testClock{start}
			g := newTimed(t, name, append(opts, WithClock(clock.now))...)
			newUUID(t, g)
			clock.t = start.AddDate(1, 0, 0)
			newUUID(t, g)
			if g.Orders() != 1 {
				t.Errorf("version %s: %d orders", name, g.Orders())
			}
			for i := range 3 {
				clock.t = start.Add(time.Duration(i+1) * time.Millisecond)
				newUUID(t, g)
				if g.Ahead() != 0 || g.Orders() != 2 {
					t.Errorf("version %s: %v ahead, %d orders", name, g.Ahead(), g.Orders())
				}
			}
		}
	}
}

// The limit of WithMaxRollback is measured from the highest reading of the order, not from the last timestamp: a burst never
// ends an order, however far it runs ahead.
func TestMaxRollback(t *testing.T) {
	for name := range timed {
		for _, limit := range []time.Duration{0, time.Millisecond, time.Minute, time.Hour, math.MaxInt64} {
			opts := []Option{WithMaxRollback(limit)}
			if limit == time.Minute {
				opts = nil // the default
			}
			start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := testClock{start}
			g := newTimed(t, name, append(opts, WithClock(clock.now))...)
			ids := make([]uuid.UUID, 1_000_000) // 244 ms
			if err := g.Fill(ids); err != nil {
				t.Fatal(err)
			}
			last := ids[len(ids)-1]
			back := min(limit, 50*365*24*time.Hour)
			for _, at := range []time.Duration{0, -back / 2, -back, 0, -back} {
				clock.t = start.Add(at)
				u := newUUID(t, g)
				if bytes.Compare(g.stored(last), g.stored(u)) >= 0 || g.Orders() != 1 {
					t.Errorf("version %s, limit %v, %v from the highest reading: %v after %v, %d orders", name, limit, at, u, last, g.Orders())
				}
				last = u
			}
			if limit == math.MaxInt64 {
				continue
			}
			clock.t = start.Add(-limit - time.Microsecond)
			u := newUUID(t, g)
			if bytes.Compare(g.stored(last), g.stored(u)) <= 0 || g.Ahead() != 0 || g.Orders() != 2 {
				t.Errorf("version %s, limit %v, beyond it: %v after %v, %v ahead, %d orders", name, limit, u, last, g.Ahead(), g.Orders())
			}
		}
	}
	var zero Generator
	if zero.Orders() != 0 || DefaultV4().Orders() != 0 || DefaultV7().Orders() != 1 {
		t.Errorf("orders %d, %d, %d", zero.Orders(), DefaultV4().Orders(), DefaultV7().Orders())
	}
}

// With a limit, a burst is measured from the highest reading: a small step back does not stop the ids.
func TestMaxAheadFromHighest(t *testing.T) {
	clock := testClock{time.Unix(1e9, 0)}
	g := newTimed(t, "7", WithClock(clock.now), WithMaxAhead(time.Millisecond), WithMaxWait(0))
	newUUID(t, g)
	clock.t = clock.t.Add(-30 * time.Second)
	for range 4096 {
		newUUID(t, g)
	}
	if u, err := g.NewUUID(); !errors.Is(err, ErrWait) {
		t.Errorf("%v, %v", u, err)
	}
}

// A batch lies in one order, on a clock of which every reading begins a new one, and whatever other goroutines do.
func TestFillLiesInOneOrder(t *testing.T) {
	for name := range timed {
		var mu sync.Mutex
		asked := int64(0)
		wild := WithClock(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return time.Unix(1e9+asked%2*1000, 0)
		})
		for _, opts := range [][]Option{{wild}, {wild, WithRandom(repeat(7))}, {wild, WithMaxAhead(time.Second)}} {
			g := newTimed(t, name, opts...)
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					rounds := 10
					if raceEnabled {
						rounds = 1
					}
					for _, n := range []int{2, 200, 255, 256, 3000, 20_000} {
						ids := make([]uuid.UUID, n)
						for range rounds {
							if err := g.Fill(ids); err != nil && !errors.Is(err, ErrWait) {
								t.Error(err)
								return
							}
							for i := 1; i < n && ids[0] != uuid.Nil; i++ {
								if bytes.Compare(g.stored(ids[i-1]), g.stored(ids[i])) >= 0 {
									t.Errorf("version %s: %v after %v", name, ids[i], ids[i-1])
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
	if raceEnabled {
		seeds = 1
	}
	for name := range timed {
		for seed := range seeds {
			rnd := mathrand.New(mathrand.NewPCG(seed, 7))
			var mu sync.Mutex
			now := time.Unix(1e9, 0)
			g := newTimed(t, name, WithClock(func() time.Time {
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
						if order == first && bytes.Compare(g.stored(before), g.stored(ids[0])) >= 0 {
							t.Errorf("version %s, seed %d: %v after %v in order %d", name, seed, ids[0], before, order)
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
				t.Errorf("version %s, seed %d: %d orders", name, seed, g.Orders())
			}
		}
	}
}

// The system's clock is set back: within a millisecond the order goes on, or a new one begins.
func TestSystemClockIsSetBack(t *testing.T) {
	for _, test := range []struct {
		back   time.Duration
		orders uint64
	}{{time.Second, 1}, {59 * time.Second, 1}, {61 * time.Second, 2}, {24 * time.Hour, 2}} {
		synctest.Test(t, func(t *testing.T) {
			g := newTimed(t, "7")
			last := newUUID(t, g)
			g.system.Disturb(-test.back, 0)
			time.Sleep(2 * time.Millisecond)
			u := newUUID(t, g)
			if g.Orders() != test.orders || less(last, u) != (test.orders == 1) {
				t.Errorf("back by %v: %v after %v, %d orders", test.back, u, last, g.Orders())
			}
			at, err := Time(u)
			if want := time.Now().Add(-test.back); err != nil || test.orders == 2 && (want.Sub(at) < 0 || want.Sub(at) > 245) {
				t.Errorf("back by %v: %v, want %v", test.back, at, want)
			}
		})
	}
}

// A reading counts for the order in which the clock was asked: one of a year ahead that waited on its way while a new order
// began does not take that one ahead, neither for one id nor for a batch.
func TestReadingOfAnotherOrder(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	far := start.AddDate(1, 0, 0)
	for name := range timed {
		for _, n := range []int{1, 3, 1000} {
			var mu sync.Mutex
			asked := 0
			asking, goOn := make(chan bool), make(chan bool)
			g := newTimed(t, name, WithClock(func() time.Time {
				mu.Lock()
				asked++
				call := asked
				mu.Unlock()
				switch call {
				case 2: // waits on its way
					asking <- true
					<-goOn
					return far
				case 3:
					return far
				}
				return start
			}))
			newUUID(t, g)
			ids := make([]uuid.UUID, n)
			done := make(chan error)
			go func() {
				if n > 1 {
					done <- g.Fill(ids)
					return
				}
				u, err := g.NewUUID()
				ids[0] = u
				done <- err
			}()
			<-asking
			newUUID(t, g)         // a year ahead
			last := newUUID(t, g) // in a new order
			close(goOn)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if g.Orders() != 2 || g.Ahead() > time.Second || bytes.Compare(g.stored(last), g.stored(ids[0])) >= 0 {
				t.Errorf("version %s, %d ids: %d orders, %v ahead, %v after %v", name, n, g.Orders(), g.Ahead(), ids[0], last)
			}
		}
	}
}
