package uuidgen

import (
	"testing"
	"testing/synctest"
	"time"
)

func (c *systemClock) nanos() int64 {
	if ns, ok := c.read(); ok {
		return int64(ns)
	}
	return c.now().UnixNano()
}

// The clock is never behind what time.Now gave before, and ahead of what it gives after by no more than an anchor may be
// wide.
func TestSystemClock(t *testing.T) {
	var c systemClock
	c.init()
	for range 300_000 {
		before := time.Now().UnixNano()
		got := c.nanos()
		after := time.Now().UnixNano()
		if got < before || got > after+int64(anchorWidth) {
			t.Fatalf("%d is not in %d to %d", got, before, after)
		}
	}
}

// A wall clock that was set is as an offset that no longer holds: it is not used longer than anchorAge.
func TestSystemClockSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour} {
		for _, age := range []int64{anchorAge, anchorAge + 1, 1e15, -1, -1e9} { // below zero: another monotonic clock
			var c systemClock
			c.init()
			c.nanos()
			c.offset.Add(int64(by))
			c.anchor.Store(int64(time.Since(c.start)) - age)
			if age < 0 {
				c.anchor.Add(int64(time.Hour))
			}
			before := time.Now().UnixNano()
			got := c.nanos()
			if got < before || got > time.Now().UnixNano()+int64(anchorWidth) {
				t.Errorf("set by %v, anchor %d ns old: %d, want %d", by, age, got, before)
			}
		}
	}
}

// A Generator that is first used under the clock of a testing/synctest bubble follows it, and the real one afterwards.
func TestBubble(t *testing.T) {
	g := newGen(t, 7)
	synctest.Test(t, func(t *testing.T) {
		for range 5 {
			want := time.Now()
			got, err := Time(newUUID(t, g))
			if err != nil || !got.Equal(want.Truncate(time.Millisecond)) {
				t.Errorf("in the bubble: %v, %v; want %v", got, err, want)
			}
			time.Sleep(time.Second + 5*time.Millisecond)
		}
	})
	before := time.Now().Truncate(time.Millisecond)
	got, err := Time(newUUID(t, g))
	if err != nil || got.Before(before) || got.After(time.Now().Add(time.Millisecond)) {
		t.Errorf("after the bubble: %v, %v; want %v", got, err, before)
	}
}
