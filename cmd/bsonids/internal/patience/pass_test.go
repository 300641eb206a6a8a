package patience

import (
	"errors"
	"testing"
	"time"
)

// A pass that fails again, longer after the first time than the limit, is made again: what was read in
// between shows that the server was back. A server that is not back is given up after the limit, and a
// pass that never comes further is given up too.
func TestPass(t *testing.T) {
	c := &testClock{now: time.Unix(1e9, 0)}
	p := New(time.Minute, c.clock(), nil)
	passes := 0
	read := func(n int, progress func(int)) {
		for range n {
			c.now = c.now.Add(time.Minute)
			progress(1)
		}
	}
	err := p.Pass(t.Context(), func(progress func(int)) error {
		passes++
		read([]int{0, 90, 50, 0, 120}[passes-1], progress)
		if passes < 5 {
			return lost
		}
		return nil
	})
	if err != nil || passes != 5 {
		t.Errorf("%v after %d passes", err, passes)
	}
	begun := c.now
	if err := p.Pass(t.Context(), func(func(int)) error { return lost }); !errors.As(err, new(interface{ HasErrorCode(int) bool })) || c.now.Sub(begun) != time.Minute {
		t.Errorf("%v after %v", err, c.now.Sub(begun))
	}
	passes = 0
	err = p.Pass(t.Context(), func(progress func(int)) error {
		passes++
		read(50, progress)
		return lost
	})
	if err == nil || passes != maxVain+1 {
		t.Errorf("%v after %d passes", err, passes)
	}
}
