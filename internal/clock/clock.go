// Package clock reads the system's wall clock at about half its price, and finds out when the wall clock was set.
package clock

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsonids/bsonids/internal/fork"
)

const (
	// MaxAge is how long a change of the wall clock may go unnoticed.
	MaxAge = time.Millisecond

	// maxWidth is how long the two readings that make an anchor may take. They take some 60 ns unless the thread is
	// interrupted between them, and then they say little. maxStepWidth is the same for readings that others are compared
	// with.
	maxWidth     = 250 * time.Nanosecond
	maxStepWidth = time.Millisecond

	// minStep is the least step that counts under Linux. There the adjustments of NTP turn both clocks alike, so that
	// the distance between them is constant until the wall clock is set.
	minStep = 2 * time.Millisecond

	// minDriftStep is the least step that counts elsewhere, and driftShare the share of the time between two readings
	// that is added to it: only the wall clock may be adjusted, by up to 500 ppm, and it may advance in units of 16 ms.
	minDriftStep = 50 * time.Millisecond
	driftShare   = 1000
)

// Clock reads the wall clock through the monotonic clock: it remembers how far the one is from the other, for a
// millisecond at most. It is safe for concurrent use after [Clock.Start], and must not be copied.
//
// A step is a change of the wall clock that the monotonic clock does not show. The wall clock was set, or the machine
// was asleep, or this process is a copy: it was restored from a snapshot or a checkpoint, where the monotonic clock
// goes on from where it was and the wall clock shows the present. A generator whose ids must differ from those of its
// copies draws its random values again when the number of steps has changed.
//
// A copy whose clocks both go on from where they were, or both show the present, is not found.
type Clock struct {
	start  time.Time    // has a monotonic reading
	offset atomic.Int64 // wall clock minus monotonic clock, in nanoseconds
	anchor atomic.Int64 // when offset was taken, on the monotonic clock; stored after it, loaded before it
	steps  atomic.Uint64

	mu       sync.Mutex // held to change what follows
	compared bool
	distance int64         // wall clock minus monotonic clock when they were last compared
	at       time.Duration // when that was, on the monotonic clock
	skew     time.Duration // added to the wall clock in tests
}

// Start makes the clock ready. It must be called once, before all else.
func (c *Clock) Start() {
	c.start = time.Now()
	c.anchor.Store(math.MinInt64) // no anchor: old, whatever the monotonic clock shows
}

// Read returns the nanoseconds since 1970-01-01T00:00:00Z by the last reading of the wall clock, and whether that is
// less than a millisecond old; if not, ns means nothing: call [Clock.Now]. The time is not before what [time.Now]
// returned before the call, unless the wall clock was set since it was read.
func (c *Clock) Read() (ns uint64, ok bool) {
	return c.At(c.Elapsed())
}

// Elapsed returns the time since Start on the monotonic clock, and At what Read returns at such a time. They are Read in
// two parts, which the compiler puts in line.
func (c *Clock) Elapsed() time.Duration {
	return time.Since(c.start)
}

// At is described with [Clock.Elapsed].
func (c *Clock) At(mono time.Duration) (ns uint64, ok bool) {
	// Unsigned, so that an anchor after mono counts as old: a goroutine in a bubble of testing/synctest sees another
	// monotonic clock.
	age := uint64(int64(mono) - c.anchor.Load())
	return uint64(int64(mono) + c.offset.Load()), age < uint64(MaxAge)
}

// Now reads the wall clock and compares it with the monotonic clock.
func (c *Clock) Now() time.Time {
	// Without waiting: a lock that another thread held when the process was forked is never released.
	if !c.mu.TryLock() {
		return time.Now()
	}
	defer c.mu.Unlock()
	mono := time.Since(c.start)
	now := time.Now()
	width := now.Sub(c.start) - mono
	now = now.Add(c.skew)
	if s := now.Unix(); s < 0 || s >= math.MaxInt64/int64(time.Second) {
		return now // Read cannot return it
	}
	distance := now.UnixNano() - int64(mono)
	c.compare(distance, mono, width)
	if width <= maxWidth {
		// The monotonic reading before that of the wall clock counts, not the one with it: if they are apart, the time
		// is too late by that much, and never before the time that the caller knew.
		c.offset.Store(distance)
		c.anchor.Store(int64(mono))
	}
	return now
}

// Steps returns the number of steps that [Clock.Now] has found.
func (c *Clock) Steps() uint64 {
	return c.steps.Load()
}

// Origin tells when something was drawn: in a copy of the process that is made later, another Origin is current. It is
// comparable.
type Origin struct {
	fork  uint64 // the generation of package fork
	steps uint64 // of a Clock
}

// Origin returns the current Origin, as far as [Clock.Now] has found copies.
func (c *Clock) Origin() Origin {
	return Origin{fork.Check(), c.Steps()}
}

// Fork returns the generation of package fork.
func (o Origin) Fork() uint64 { return o.fork }

// Disturb moves the wall clock and the monotonic clock by the given durations as this Clock sees them, which is what a
// restored copy of the process finds. It is for tests, and not safe for concurrent use.
func (c *Clock) Disturb(wall, mono time.Duration) {
	c.skew += wall
	c.start = c.start.Add(-mono)
}

// compare counts a step if the distance, which is too great by up to width, is not the one before. It needs mu.
func (c *Clock) compare(distance int64, mono, width time.Duration) {
	limit := minStep
	if runtime.GOOS != "linux" && runtime.GOOS != "android" {
		limit = minDriftStep + (mono-c.at).Abs()/driftShare
	}
	stepped := c.compared && time.Duration(distance-c.distance).Abs() >= limit+max(width, 0)
	if stepped {
		c.steps.Add(1)
	}
	// A wide reading may find a step, but later ones are not compared with it if there is a better one.
	if width <= maxStepWidth || stepped || !c.compared {
		c.compared, c.distance, c.at = true, distance, mono
	}
}
