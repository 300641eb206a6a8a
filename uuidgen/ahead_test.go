package uuidgen

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidrep"
)

var timed = map[string]func(...Option) (*Generator, error){
	"6": NewV6Generator,
	"7": NewV7Generator,
	"8 csharpLegacy": func(opts ...Option) (*Generator, error) {
		return NewV8Generator(uuidrep.CSharpLegacy, opts...)
	},
	"8 javaLegacy": func(opts ...Option) (*Generator, error) {
		return NewV8Generator(uuidrep.JavaLegacy, opts...)
	},
}

func newTimed(t testing.TB, name string, opts ...Option) *Generator {
	t.Helper()
	g, err := timed[name](opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Ahead is the distance from the clock to the last id's timestamp, by the definition of a step.
func TestAhead(t *testing.T) {
	for name := range timed {
		start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		clock := testClock{start}
		g := newTimed(t, name, WithClock(clock.now))
		if d := g.Ahead(); d != 0 {
			t.Errorf("version %s: %v ahead before the first id", name, d)
		}
		newUUID(t, g)
		if d := g.Ahead(); d != 0 {
			t.Errorf("version %s: %v ahead after one id", name, d)
		}
		if err := g.Fill(make([]uuid.UUID, 100_000)); err != nil {
			t.Fatal(err)
		}
		want := 100_000 * time.Second / unixPerSecond
		if name == "6" {
			want = 100_000 * 100
		}
		if d := g.Ahead(); d < want || d > want+1 {
			t.Errorf("version %s: %v ahead after a Fill, want %v", name, d, want)
		}
		clock.t = start.Add(time.Hour)
		if d := g.Ahead(); d != 0 {
			t.Errorf("version %s: %v ahead of a clock that has caught up", name, d)
		}
		clock.t = start.Add(-time.Hour)
		if d := g.Ahead(); d < want+time.Hour || d > want+time.Hour+1 {
			t.Errorf("version %s: %v ahead of a clock set back, want %v", name, d, want+time.Hour)
		}
		clock.t = time.Unix(-1<<60, 0)
		if d := g.Ahead(); d != math.MaxInt64 {
			t.Errorf("version %s: %v ahead of a clock out of range", name, d)
		}
	}
	v4 := newGen(t, 4)
	newUUID(t, v4)
	if d := v4.Ahead(); d != 0 {
		t.Errorf("version 4: %v ahead", d)
	}
}

// One reading of the clock in the far future, also of the last instant, pins a Generator that has no
// limit behind its highest reading, until Renew.
func TestRenewRecovers(t *testing.T) {
	for name := range timed {
		for _, far := range []time.Time{
			time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(5236, 3, 31, 21, 21, 0, 684_697_500, time.UTC),
			time.UnixMilli(1<<48 - 1).Add(999_999),
		} {
			if name == "6" && far.Year() > 5236 {
				continue
			}
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			clock := testClock{now}
			g := newTimed(t, name, WithClock(clock.now), WithMaxRollback(math.MaxInt64), WithMaxAhead(time.Hour), WithMaxWait(0))
			newUUID(t, g)
			clock.t = far
			u := newUUID(t, g)
			clock.t = now
			if v, err := g.NewUUID(); err == nil && bytes.Compare(g.stored(u), g.stored(v)) >= 0 || err != nil && !errors.Is(err, ErrTimeRange) {
				t.Errorf("version %s, %v: %v after %v, %v", name, far, v, u, err)
			}
			if d := g.Ahead(); d < 173*365*24*time.Hour {
				t.Errorf("version %s, %v: %v ahead", name, far, d)
			}
			if err := g.Renew(); err != nil {
				t.Fatal(err)
			}
			v := newUUID(t, g)
			if d := g.Ahead(); d != 0 || u == v {
				t.Errorf("version %s, %v, renewed: %v ahead, %v after %v", name, far, d, v, u)
			}
		}
	}
}

// With a limit no timestamp is further ahead of the clock, and the call that would need one fails
// or waits.
func TestMaxAhead(t *testing.T) {
	for name := range timed {
		step := time.Second / unixPerSecond // 244 ns
		if name == "6" {
			step = 100
		}
		for _, limit := range []time.Duration{0, 1, step, time.Millisecond, math.MaxInt64} {
			clock := testClock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
			g := newTimed(t, name, WithClock(clock.now), WithMaxAhead(limit), WithMaxWait(0))
			n := 0
			for ; n < 20_000; n++ {
				u, err := g.NewUUID()
				if err != nil {
					if !errors.Is(err, ErrWait) || u != uuid.Nil {
						t.Errorf("version %s, limit %v: %v, %v", name, limit, u, err)
					}
					break
				}
				if d := g.Ahead(); d-1 > limit {
					t.Fatalf("version %s, limit %v: %v ahead", name, limit, d)
				}
			}
			// The steps in the limit, and one at the clock.
			want := 1 + int64(limit)/100
			if name != "6" {
				want = 1 + int64(limit/15625*64+limit%15625*64/15625)
			}
			if int64(n) != min(want, 20_000) {
				t.Errorf("version %s, limit %v: %d ids, want %d", name, limit, n, want)
			}
			if want > 20_000 {
				continue
			}
			ids := []uuid.UUID{uuid.Max, uuid.Max}
			if err := g.Fill(ids); !errors.Is(err, ErrWait) || ids[0] != uuid.Nil || ids[1] != uuid.Nil {
				t.Errorf("version %s, limit %v: Fill: %v, %v", name, limit, ids, err)
			}
			clock.t = clock.t.Add(time.Second)
			newUUID(t, g)
		}
	}
}

// A call at the limit waits for the clock, a batch as often as it must. The clock of a bubble moves
// while all wait.
func TestMaxAheadWaits(t *testing.T) {
	for name := range timed {
		synctest.Test(t, func(t *testing.T) {
			g := newTimed(t, name, WithMaxAhead(time.Millisecond), WithClock(time.Now))
			began := time.Now()
			ids := make([]uuid.UUID, 50_000) // at least 5 ms
			if err := g.Fill(ids); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d < 3*time.Millisecond || d > 20*time.Millisecond {
				t.Errorf("version %s: 50,000 ids took %v", name, d)
			}
			for i := 1; i < len(ids) && g.layout.version != 8; i++ {
				if !less(ids[i-1], ids[i]) {
					t.Fatalf("version %s: %v after %v", name, ids[i], ids[i-1])
				}
			}
		})
		synctest.Test(t, func(t *testing.T) {
			frozen := WithClock(func() time.Time { return time.Unix(1e9, 0) })
			g := newTimed(t, name, WithMaxAhead(0), frozen)
			newUUID(t, g)
			var group sync.WaitGroup
			for range 3 {
				group.Go(func() {
					began := time.Now()
					_, err := g.NewUUID()
					if d := time.Since(began); !errors.Is(err, ErrWait) || d < 2*time.Second || d > 3*time.Second {
						t.Errorf("version %s: %v after %v", name, err, d)
					}
				})
			}
			group.Wait()
		})
	}
}
