package uuidgen

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// With a limit, a burst is measured from the highest reading: a small step back does not stop the ids.
func TestMaxAheadFromHighest(t *testing.T) {
	clock := testClock{time.Unix(1e9, 0)}
	g := newTimed(t, "7", WithClock(clock.now), WithMaxAhead(time.Millisecond), WithMaxWait(0))
	newUUID(t, g)
	clock.t = clock.t.Add(-30 * time.Second)
	for range 4096 {
		newUUID(t, g)
	}
	if u, err := g.NewUUID(); !errors.Is(err, ErrWait) {
		t.Errorf("%v, %v", u, err)
	}
}

// The system's clock is set back: within a millisecond the order goes on, or a new one begins.
func TestSystemClockIsSetBack(t *testing.T) {
	for _, test := range []struct {
		back   time.Duration
		orders uint64
	}{{time.Second, 1}, {59 * time.Second, 1}, {61 * time.Second, 2}, {24 * time.Hour, 2}} {
		synctest.Test(t, func(t *testing.T) {
			g := newTimed(t, "7")
			last := newUUID(t, g)
			g.system.Disturb(-test.back, 0)
			time.Sleep(2 * time.Millisecond)
			u := newUUID(t, g)
			if g.Orders() != test.orders || less(last, u) != (test.orders == 1) {
				t.Errorf("back by %v: %v after %v, %d orders", test.back, u, last, g.Orders())
			}
			at, err := Time(u)
			if want := time.Now().Add(-test.back); err != nil || test.orders == 2 && (want.Sub(at) < 0 || want.Sub(at) > 245) {
				t.Errorf("back by %v: %v, want %v", test.back, at, want)
			}
		})
	}
}

// A reading counts for the order in which the clock was asked: one of a year ahead that waited on its way while a new order
// began does not take that one ahead, neither for one id nor for a batch.
func TestReadingOfAnotherOrder(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	far := start.AddDate(1, 0, 0)
	for name := range timed {
		for _, n := range []int{1, 3, 1000} {
			var mu sync.Mutex
			asked := 0
			asking, goOn := make(chan bool), make(chan bool)
			g := newTimed(t, name, WithClock(func() time.Time {
				mu.Lock()
				asked++
				call := asked
				mu.Unlock()
				switch call {
				case 2: // waits on its way
					asking <- true
					<-goOn
					return far
				case 3:
					return far
				}
				return start
			}))
			newUUID(t, g)
			ids := make([]uuid.UUID, n)
			done := make(chan error)
			go func() {
				if n > 1 {
					done <- g.Fill(ids)
					return
				}
				u, err := g.NewUUID()
				ids[0] = u
				done <- err
			}()
			<-asking
			newUUID(t, g)         // a year ahead
			last := newUUID(t, g) // in a new order
			close(goOn)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if g.Orders() != 2 || g.Ahead() > time.Second || bytes.Compare(g.stored(last), g.stored(ids[0])) >= 0 {
				t.Errorf("version %s, %d ids: %d orders, %v ahead, %v after %v", name, n, g.Orders(), g.Ahead(), ids[0], last)
			}
		}
	}
}
