package peabody01

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/wait"
	"github.com/bsonids/bsonids/uuidgen"
)

// A generator without a limit of its own asks the clock again until it moves on.
func TestWaitForTick(t *testing.T) {
	for _, k := range sequenced() {
		if k.capacity > 1<<15 {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			c := newClock(someTime)
			asks := 0
			g, err := k.make(uuidgen.WithClock(func() time.Time {
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

// The default limit ends the wait, and the lock is free meanwhile. The bubble's clock moves only
// while all sleep.
func TestWaitLimit(t *testing.T) {
	for _, limit := range []time.Duration{idoption.DefaultWait, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var opts []uuidgen.Option
			if limit != idoption.DefaultWait {
				opts = append(opts, uuidgen.WithMaxWait(limit))
			}
			g, err := NewV7Generator(Nanosecond, append(opts, uuidgen.WithClock(func() time.Time { return someTime }))...)
			must(t, err)
			for range 256 {
				next(t, g)
			}
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					began := time.Now()
					_, err := g.NewUUID()
					if d := time.Since(began); !errors.Is(err, uuidgen.ErrWait) || d < limit || d > limit {
						t.Errorf("%v after %v, want uuidgen.ErrWait after %v", err, d, limit)
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
		g, err := NewV7Generator(Millisecond)
		must(t, err)
		began := time.Now()
		var us []uuid.UUID
		for range 3 * 4096 {
			us = append(us, next(t, g))
		}
		if d := time.Since(began); d < 2*time.Millisecond || d > 2*time.Millisecond+2*wait.Pause(time.Millisecond) {
			t.Errorf("three milliseconds' UUIDs took %v, want 2ms", d)
		}
		if !slices.IsSortedFunc(us, compare) {
			t.Error("not in order")
		}
	})
}
