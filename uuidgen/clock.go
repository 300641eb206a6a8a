package uuidgen

import (
	"math"
	"sync/atomic"
	"time"
)

// systemClock reads the system's wall clock at the price of its monotonic clock, about half: it remembers how far the
// one is from the other, for anchorAge at most. It is safe for concurrent use.
type systemClock struct {
	start  time.Time    // has a monotonic reading
	offset atomic.Int64 // wall clock minus monotonic clock, nanoseconds
	anchor atomic.Int64 // when offset was taken, on the monotonic clock; stored after it, loaded before it
}

const (
	// anchorAge is how long a change of the wall clock may go unnoticed.
	anchorAge = int64(time.Millisecond)

	// anchorWidth is how long the two readings that make an anchor may take. They take some 60 ns unless the thread is
	// interrupted between them, and then they say nothing.
	anchorWidth = 250 * time.Nanosecond
)

func (c *systemClock) init() {
	c.start = time.Now()
	c.anchor.Store(math.MinInt64) // no anchor: old, whatever the monotonic clock reads
}

// read returns the nanoseconds since 1970 by the anchor, and whether there is one that is not too old. The time is never
// behind what time.Now gave before the call, unless the wall clock was set since the anchor was taken.
func (c *systemClock) read() (ns uint64, ok bool) {
	mono := int64(time.Since(c.start))
	// Unsigned, so that an anchor after mono counts as old: a goroutine in a testing/synctest bubble sees another
	// monotonic clock.
	if uint64(mono-c.anchor.Load()) >= uint64(anchorAge) {
		return 0, false
	}
	return uint64(mono + c.offset.Load()), true
}

// now returns the time by the wall clock, and takes an anchor.
func (c *systemClock) now() time.Time {
	mono := time.Since(c.start)
	now := time.Now()
	if s := now.Unix(); s >= 0 && s < math.MaxInt64/int64(time.Second) && now.Sub(c.start)-mono <= anchorWidth {
		// The monotonic reading before the wall's, not the one with it: where the two are apart, ids err towards the
		// future by that much, and never lie before the time that the caller knew.
		c.offset.Store(now.UnixNano() - int64(mono))
		c.anchor.Store(int64(mono))
	}
	return now
}
