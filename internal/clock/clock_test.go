package clock

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func started() *Clock {
	c := new(Clock)
	c.Start()
	return c
}

func (c *Clock) nanos() int64 {
	if ns, ok := c.Read(); ok {
		return int64(ns)
	}
	return c.Now().UnixNano()
}

// The clock is never behind what time.Now returned before, and ahead of what it returns after by no more than the width
// of an anchor.
func TestRead(t *testing.T) {
	c := started()
	cached := 0
	for range 300_000 {
		before := time.Now().UnixNano()
		if _, ok := c.Read(); ok {
			cached++
		}
		got := c.nanos()
		after := time.Now().UnixNano()
		if got < before || got > after+int64(maxWidth) {
			t.Fatalf("%d is not in %d to %d", got, before, after)
		}
	}
	if cached == 0 {
		t.Error("the wall clock was read every time")
	}
}

// Read does not use an anchor that is too old, or from another monotonic clock.
func TestOldAnchor(t *testing.T) {
	for _, age := range []time.Duration{MaxAge, MaxAge + 1, 1e15, -time.Hour} {
		c := started()
		for range 100 { // until no interruption makes the readings too wide
			c.Now()
		}
		if c.anchor.Load() == math.MinInt64 {
			t.Skip("no two readings of the clock here are near each other")
		}
		c.offset.Add(int64(time.Hour))
		c.anchor.Store(int64(time.Since(c.start) - age))
		if ns, ok := c.Read(); ok {
			t.Errorf("anchor %v old: %d", age, ns)
		}
	}
}

// The steps that a bubble's clock, which is exact, finds.
func TestSteps(t *testing.T) {
	for _, test := range []struct {
		name       string
		wall, mono time.Duration
		want       uint64
	}{
		{"nothing", 0, 0, 0},
		{"set forward", time.Hour, 0, 1},
		{"set back", -time.Hour, 0, 1},
		{"set by 100 ms", 100 * time.Millisecond, 0, 1},
		{"set back by 100 ms", -100 * time.Millisecond, 0, 1},
		{"adjusted by 1 ms", time.Millisecond, 0, 0},
		{"adjusted back by 1 ms", -time.Millisecond, 0, 0},
		{"restored later, the monotonic clock goes on", 5 * time.Second, 0, 1},
		{"restored on a machine that started later", 0, -24 * time.Hour, 1},
		{"restored on a machine that started earlier", 0, 24 * time.Hour, 1},
		{"both clocks show the present: not found", time.Hour, time.Hour, 0},
		{"set to 200 years later", 200 * 365 * 24 * time.Hour, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := started()
				c.Now()
				time.Sleep(time.Second)
				c.Disturb(test.wall, test.mono)
				for range 3 {
					if got, want := c.Now(), time.Now().Add(test.wall); !got.Equal(want) {
						t.Errorf("Now() = %v, want %v", got, want)
					}
					if got := c.Steps(); got != test.want {
						t.Errorf("%d steps, want %d", got, test.want)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// Readings that an interruption has put apart find steps, but none that are not there.
func TestWideReadings(t *testing.T) {
	const wide = 20 * time.Millisecond
	for _, test := range []struct {
		name     string
		distance time.Duration // of the wide reading, from the one before
		want     uint64
	}{
		{"exact", 0, 0}, {"too great by its width", wide, 0}, {"set forward by an hour", time.Hour, 1}, {"set back by an hour", -time.Hour, 1},
		{"set by an hour, and too great", time.Hour + wide, 1},
	} {
		c := started()
		c.compare(0, 0, 0)
		c.compare(int64(test.distance), time.Second, wide)
		if got := c.Steps(); got != test.want {
			t.Errorf("%s: %d steps, want %d", test.name, got, test.want)
		}
		if test.want == 0 {
			c.compare(0, 2*time.Second, 0)
			if got := c.Steps(); got != 0 {
				t.Errorf("%s: %d steps after it, want 0", test.name, got)
			}
		}
	}
}

// Each step counts, and the first reading is none.
func TestStepsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := started()
		c.Disturb(time.Hour, 0)
		c.Now()
		for i := range uint64(10) {
			if got := c.Steps(); got != i {
				t.Fatalf("%d steps, want %d", got, i)
			}
			c.Disturb(time.Duration(1-2*int64(i%2))*time.Minute, 0)
			time.Sleep(MaxAge)
			if _, ok := c.Read(); ok {
				t.Fatal("a step goes unnoticed for longer than MaxAge")
			}
			c.Now()
		}
	})
}

// A wall clock out of the range that Read can return is returned by Now alone.
func TestOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at 2000-01-01
		for _, wall := range []time.Duration{-31 * 365 * 24 * time.Hour, 290 * 365 * 24 * time.Hour} {
			c := started()
			c.Disturb(wall, 0)
			if got, want := c.Now(), time.Now().Add(wall); !got.Equal(want) {
				t.Errorf("Now() = %v, want %v", got, want)
			}
			if ns, ok := c.Read(); ok {
				t.Errorf("Read() = %d at %v", ns, c.Now())
			}
		}
	})
}

// The real clocks of this machine do not step by themselves, whatever the load.
func TestNoSteps(t *testing.T) {
	c := started()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50_000 {
				c.Now()
				c.Read()
			}
		})
	}
	wg.Wait()
	if n := c.Steps(); n != 0 {
		t.Errorf("%d steps; was the clock set during the test?", n)
	}
}

// Now does not wait for a lock that nobody releases, as in the fork of a process whose other thread held it.
func TestLockIsHeldForEver(t *testing.T) {
	c := started()
	c.mu.Lock()
	before := time.Now()
	if got := c.nanos(); got < before.UnixNano() {
		t.Errorf("%d is before %v", got, before)
	}
}

func BenchmarkRead(b *testing.B) {
	c := started()
	for b.Loop() {
		if _, ok := c.Read(); !ok {
			c.Now()
		}
	}
}
