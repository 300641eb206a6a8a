// Package wait is how a generator waits for its clock to move on.
package wait

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Err is the error of a call that waited for the clock as long as it may. Each package exports it as ErrWait and wraps it
// behind its own name. [errors.Is] thus matches across packages.
var Err = errors.New("waited too long for the clock")

// For begins by asking again at once, since most ticks are short. Then it pauses, so that a tick of a
// millisecond or a second does not burn the processor: for a part of the time that it has waited, so
// that the end of the tick is found soon after.
const (
	maxSpins = 64
	minPause = 20 * time.Microsecond
	maxPause = 5 * time.Millisecond
	part     = 32
)

// Pause returns how long For pauses when it has waited so long.
func Pause(waited time.Duration) time.Duration {
	return min(max(waited/part, minPause), maxPause)
}

// For calls try until it is ok or fails, and returns what it gave. After limit, in real time
// whatever clock try asks, it returns an error that wraps [Err], behind the name of the package.
// It holds no lock between the calls: goroutines wait side by side, each only as long as its own
// limit.
func For[T any](limit time.Duration, name string, try func() (v T, ok bool, err error)) (T, error) {
	var began time.Time
	for asks := 0; ; asks++ {
		v, ok, err := try()
		if ok || err != nil {
			return v, err
		}
		if asks == 0 {
			began = time.Now()
		}
		waited := time.Since(began)
		if waited >= limit {
			return v, fmt.Errorf("%s: %w: %v", name, Err, limit)
		}
		if asks < maxSpins {
			runtime.Gosched()
		} else {
			time.Sleep(min(Pause(waited), limit-waited))
		}
	}
}
