package uuidgen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A model in arbitrary precision: the timestamp is the clock's, rounded down to a step, or the last
// one plus one, whichever is greater.
type model struct {
	epoch    time.Time
	num, den int64 // steps per nanosecond
	next     *big.Int
}

func (m *model) draw(now time.Time) *big.Int {
	ns := new(big.Int).Mul(big.NewInt(now.Unix()-m.epoch.Unix()), big.NewInt(1e9))
	ns.Add(ns, big.NewInt(int64(now.Nanosecond())))
	step := ns.Mul(ns, big.NewInt(m.num))
	step.Div(step, big.NewInt(m.den))
	if step.Cmp(m.next) < 0 {
		step.Set(m.next)
	}
	m.next.Add(step, big.NewInt(1))
	return step
}

func (m *model) uuid(version byte, step *big.Int) uuid.UUID {
	high := new(big.Int).Rsh(step, 12)
	high.Lsh(high, 4).Or(high, big.NewInt(int64(version)))
	high.Lsh(high, 12).Or(high, new(big.Int).And(step, big.NewInt(0xfff)))
	var u uuid.UUID
	high.FillBytes(u[:8])
	u[8] = 0x80
	if version == 6 {
		u[10] = 1
	}
	return u
}

func TestModel(t *testing.T) {
	for _, version := range []byte{6, 7} {
		for seed := range uint64(30) {
			rnd := mathrand.New(mathrand.NewPCG(seed, uint64(version)))
			m := model{epoch: time.Unix(0, 0), num: 4096, den: 1e6, next: new(big.Int)}
			if version == 6 {
				m = model{epoch: time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), num: 1, den: 100, next: new(big.Int)}
			}
			clock := testClock{time.Unix(rnd.Int64N(4e9), rnd.Int64N(1e9))}
			fromReader := newGen(t, version, WithClock(clock.now), WithRandom(repeat(0)))
			fromStock := newGen(t, version, WithClock(clock.now)) // only its timestamps can be foretold
			for range 100 {
				switch rnd.IntN(8) {
				case 0: // years ahead, in the end beyond what a page counts
					clock.t = clock.t.AddDate(rnd.IntN(20), 0, 0)
				case 1: // back
					clock.t = clock.t.Add(-time.Duration(rnd.Int64N(int64(time.Second))))
				case 2: // a moment
					clock.t = clock.t.Add(time.Duration(rnd.Int64N(int64(time.Millisecond))))
				case 3:
					if err := errors.Join(fromStock.Renew(), fromReader.Renew()); err != nil {
						t.Fatal(err)
					}
					m.next.SetInt64(0)
				}
				n := 1
				if rnd.IntN(10) == 0 {
					n = rnd.IntN(2500)
				}
				ids, others := make([]uuid.UUID, n), make([]uuid.UUID, n)
				if n == 1 {
					ids[0], others[0] = newUUID(t, fromReader), newUUID(t, fromStock)
				} else if err := errors.Join(fromReader.Fill(ids), fromStock.Fill(others)); err != nil {
					t.Fatal(err)
				}
				for i, got := range ids {
					want := m.uuid(version, m.draw(clock.t))
					if got != want {
						t.Fatalf("seed %d, clock %v, id %d of %d: %v, want %v", seed, clock.t, i, n, got, want)
					}
					if other := others[i]; [8]byte(other[:8]) != [8]byte(want[:8]) {
						t.Fatalf("seed %d, clock %v, id %d of %d: %v, want the timestamp of %v", seed, clock.t, i, n, other, want)
					}
				}
			}
		}
	}
}

// A clock that leaps further than the state of a page counts, and back.
func TestLeaps(t *testing.T) {
	for _, version := range []byte{6, 7} {
		clock := testClock{time.Unix(0, 0)}
		g := newGen(t, version, WithClock(clock.now), WithMaxRollback(math.MaxInt64))
		last := newUUID(t, g)
		for _, year := range []int{2400, 1990, 2700, 3100, 5000, 2026, 5235} {
			clock.t = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			u := newUUID(t, g)
			if !less(last, u) {
				t.Fatalf("version %d, year %d: %v after %v", version, year, u, last)
			}
			got, err := Time(u)
			if err != nil || got.Year() < year {
				t.Fatalf("version %d, year %d: %v, %v", version, year, got, err)
			}
			last = u
		}
	}
}

// With a clock that stands still the timestamp counts on, and after 4096 ids carries into the
// milliseconds.
func TestFrozenClock(t *testing.T) {
	clock := testClock{time.UnixMilli(1_700_000_000_123)}
	g := newGen(t, 7, WithClock(clock.now))
	ids := make([]uuid.UUID, 10_000)
	for i := range ids {
		ids[i] = newUUID(t, g)
		ms := int64(binary.BigEndian.Uint64(ids[i][:8]) >> 16)
		fraction := int(binary.BigEndian.Uint16(ids[i][6:]) & 0xfff)
		if ms != 1_700_000_000_123+int64(i)/4096 || fraction != i%4096 {
			t.Fatalf("id %d: %d ms and %d", i, ms, fraction)
		}
	}
	// Ten thousand ids are 2.44 ms, so that 3 ms later the clock has caught up.
	clock.t = clock.t.Add(3 * time.Millisecond)
	u := newUUID(t, g)
	if got, err := Time(u); err != nil || !got.Equal(clock.t) {
		t.Errorf("3 ms later: %v, %v; want %v", got, err, clock.t)
	}
	if !less(ids[len(ids)-1], u) {
		t.Errorf("%v after %v", u, ids[len(ids)-1])
	}
}

func TestStepBack(t *testing.T) {
	for _, version := range []byte{6, 7} {
		start := time.UnixMilli(1_700_000_000_000)
		clock := testClock{start}
		g := newGen(t, version, WithClock(clock.now), WithMaxRollback(time.Hour))
		last := newUUID(t, g)
		for i := range 3000 {
			clock.t = start.Add(-time.Hour + time.Duration(i)*time.Millisecond)
			u := newUUID(t, g)
			if !less(last, u) {
				t.Fatalf("version %d, id %d after the step back: %v after %v", version, i, u, last)
			}
			if held, err := Time(u); err != nil || held.Sub(start) > time.Millisecond {
				t.Fatalf("version %d, id %d after the step back: %v, %v; want %v held", version, i, held, err, start)
			}
			last = u
		}
	}
}

// The order of ids from two generators is the order of their clocks, to a step of the timestamp.
func TestOrderIsTime(t *testing.T) {
	rnd := mathrand.New(mathrand.NewPCG(3, 4))
	for version, step := range map[byte]int64{6: 100, 7: 245} {
		for range 2000 {
			a := testClock{time.Unix(rnd.Int64N(9e10), rnd.Int64N(1e9))}
			b := testClock{a.t.Add(time.Duration(step + rnd.Int64N(1<<rnd.IntN(60))))}
			u := newUUID(t, newGen(t, version, WithClock(a.now), WithRandom(repeat(0xff))))
			v := newUUID(t, newGen(t, version, WithClock(b.now), WithRandom(repeat(0))))
			if !less(u, v) {
				t.Fatalf("%v of %v, %v of %v", u, a.t, v, b.t)
			}
		}
	}
}

// What one goroutine has, the next id of every other is greater than.
func TestConcurrentOrder(t *testing.T) {
	for _, version := range []byte{6, 7} {
		for name, opts := range map[string][]Option{
			"system": nil,
			"reader": {WithRandom(mathrand.NewChaCha8([32]byte{}))},
			"frozen": {WithClock(func() time.Time { return time.Unix(1e9, 0) })},
		} {
			g := newGen(t, version, opts...)
			var shown atomic.Pointer[uuid.UUID]
			shown.Store(new(uuid.UUID))
			var wg sync.WaitGroup
			for worker := range 8 {
				wg.Go(func() {
					ids := make([]uuid.UUID, 1)
					for i := range 2000 {
						if i%100 == 99 {
							ids = make([]uuid.UUID, 1+(i*worker)%1500)
						}
						before := *shown.Load()
						if len(ids) == 1 {
							u, err := g.NewUUID()
							if err != nil {
								t.Error(err)
								return
							}
							ids[0] = u
						} else if err := g.Fill(ids); err != nil {
							t.Error(err)
							return
						}
						for _, u := range ids {
							if !less(before, u) {
								t.Errorf("version %d, %s: %v after %v", version, name, u, before)
								return
							}
							before = u
						}
						shown.Store(&before)
						ids = ids[:1]
					}
				})
			}
			wg.Wait()
		}
	}
}

// Ten million ids, drawn on all processors, are distinct.
func TestUnique(t *testing.T) {
	total := 10_000_000
	if testing.Short() || raceEnabled {
		total = 300_000
	}
	for _, version := range []byte{4, 6, 7} {
		g := newGen(t, version)
		all := make([]uuid.UUID, total)
		workers := runtime.GOMAXPROCS(0)
		var parts [][]uuid.UUID
		var wg sync.WaitGroup
		for w := range workers {
			part := all[total/workers*w : total/workers*(w+1)]
			parts = append(parts, part)
			wg.Go(func() {
				for rest := part; len(rest) > 0; {
					n := min(len(rest), 1500)
					if err := g.Fill(rest[:n/2]); err != nil {
						t.Error(err)
					}
					for i := n / 2; i < n; i++ {
						var err error
						if rest[i], err = g.NewUUID(); err != nil {
							t.Error(err)
						}
					}
					rest = rest[n:]
				}
				if version == 4 {
					slices.SortFunc(part, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
				}
			})
		}
		wg.Wait()

		// The parts are sorted, those of versions 6 and 7 as they came. Merge them.
		var last uuid.UUID
		merged := 0
		for {
			next := -1
			for i, p := range parts {
				if len(p) > 0 && (next < 0 || less(p[0], parts[next][0])) {
					next = i
				}
			}
			if next < 0 {
				break
			}
			u := parts[next][0]
			if !less(last, u) {
				t.Fatalf("version %d: %v after %v among %d ids", version, u, last, total)
			}
			last, parts[next] = u, parts[next][1:]
			merged++
		}
		if want := total / workers * workers; merged != want {
			t.Errorf("version %d: %d ids, want %d", version, merged, want)
		}
	}
}
