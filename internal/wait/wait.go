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

// Pause is how long For waits before it asks again. It begins by asking again at once, since most
// ticks are short; but one of a millisecond or a second should not burn the processor.
const (
	Pause    = 20 * time.Microsecond
	maxSpins = 64
)

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
		if time.Since(began) >= limit {
			return v, fmt.Errorf("%s: %w: %v", name, Err, limit)
		}
		if asks < maxSpins {
			runtime.Gosched()
		} else {
			time.Sleep(Pause)
		}
	}
}
