package i3core

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/uuidgen"
)

func TestNotifierGenerator(t *testing.T) {
	c := newClock(someTime)
	g, err := NewNotifierGenerator(someNode, 0x1234, WithCustom(0xAB), uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0))
	must(t, err)
	// Strictly above the start and strictly below the present: nothing fits before two microseconds
	// are over.
	for _, step := range []time.Duration{0, time.Microsecond} {
		c.add(step)
		if u, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrWait) || u != uuid.Nil {
			t.Fatalf("%v after the start: %v, %v, want uuidgen.ErrWait", step, u, err)
		}
	}
	c.add(time.Microsecond)
	want := Notifier{someMicros + 1, 0xAB, 0x1234, someNode}
	if got := nextNotifier(t, g); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	must(t, want.ValidateTimes(someTime, c.now()))
	// The same microsecond, and a step back: wait.
	for _, step := range []time.Duration{0, 999, -time.Hour} {
		c.add(step)
		if id, err := g.NewID(); !errors.Is(err, uuidgen.ErrWait) || id != nil {
			t.Fatalf("%v: %v, %v, want uuidgen.ErrWait", step, id, err)
		}
	}
	c.add(2 * time.Hour)
	if f := nextNotifier(t, g); f.InstanceSequence != want.InstanceSequence+3600e6 {
		t.Errorf("an hour later: %+v, want %#x", f, want.InstanceSequence+3600e6)
	}
	// Time itself, and no custom byte.
	g, err = NewNotifierGenerator(someNode, 1)
	must(t, err)
	if f := nextNotifier(t, g); time.Since(f.Time()).Abs() > time.Minute || f.Custom != 0 {
		t.Errorf("now: %+v at %v", f, f.Time())
	}
	// What ends within reach.
	end := newClock(time.Date(2142, 9, 17, 23, 53, 47, 370495000, time.UTC)) // the last microsecond but one
	g, err = NewNotifierGenerator(someNode, 1, uuidgen.WithClock(end.now), uuidgen.WithMaxWait(0))
	must(t, err)
	end.add(2 * time.Microsecond)
	if _, err := g.NewUUID(); !errors.Is(err, uuidgen.ErrTimeRange) {
		t.Errorf("after the end: %v, want uuidgen.ErrTimeRange", err)
	}
}

// The generator asks its clock again until it has moved on, and no longer than it may.
func TestNotifierWait(t *testing.T) {
	c := newClock(someTime)
	asks := 0
	g, err := NewNotifierGenerator(someNode, 1, uuidgen.WithClock(func() time.Time {
		if asks++; asks == 100 { // more than it asks without a pause
			c.add(2 * time.Microsecond)
		}
		return c.now()
	}))
	must(t, err)
	if f := nextNotifier(t, g); f.InstanceSequence != someMicros+1 || asks != 100 {
		t.Errorf("%+v after %d asks, want 100", f, asks)
	}
	for _, limit := range []time.Duration{idoption.DefaultWait, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			g, err := NewNotifierGenerator(someNode, 1, uuidgen.WithClock(func() time.Time { return someTime }), uuidgen.WithMaxWait(limit))
			must(t, err)
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
	synctest.Test(t, func(t *testing.T) { // by time itself: a bubble's stands still until all sleep
		g, err := NewNotifierGenerator(someNode, 1)
		must(t, err)
		for range 10 {
			next(t, g)
		}
	})
}
