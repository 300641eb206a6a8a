package patience

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// In the bubbles of synctest, time passes only while everything waits.

var lost = mongo.CommandError{Code: 10107, Message: "not primary"}

// An operation is tried again until it succeeds. The pauses double up to a maximum, and the limit is
// that of each series of errors.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notices []time.Duration
		p := New(time.Minute, func(_ error, left time.Duration) { notices = append(notices, left) })
		for _, failing := range []int{6, 0, 6} {
			var at []time.Duration
			begin := time.Now()
			err := p.Do(t.Context(), func() error {
				if at = append(at, time.Since(begin)); len(at) <= failing {
					return lost
				}
				return nil
			})
			// Pauses of 0.25, 0.5, 1, 2, 4 and 8 s.
			want := []time.Duration{0, 250e6, 750e6, 1750e6, 3750e6, 7750e6, 15750e6}[:failing+1]
			if err != nil || !slices.Equal(at, want) {
				t.Fatalf("%v, tried at %v, want %v", err, at, want)
			}
		}
		// One notice at once, and one after 20 s.
		if len(notices) != 2 || notices[0] != time.Minute {
			t.Errorf("notices: %v", notices)
		}
		begin := time.Now()
		if err := p.Do(t.Context(), func() error { return lost }); !errors.As(err, new(mongo.CommandError)) || time.Since(begin) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		if l := p.Lost(); l.IsZero() || time.Since(l) > longestPause || !(*Patience)(nil).Lost().IsZero() {
			t.Errorf("lost at %v", l)
		}
	})
}

// A server that is lost during an interrupt is lost: what was sent may have no answer.
func TestLostInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(time.Minute, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Do(ctx, func() error { return context.Canceled }); !errors.Is(err, context.Canceled) || !p.Lost().IsZero() {
			t.Errorf("%v, lost at %v", err, p.Lost())
		}
		calls := 0
		if err := p.Do(ctx, func() error { calls++; return lost }); !errors.As(err, new(mongo.CommandError)) || calls != 1 || !p.Lost().Equal(time.Now()) {
			t.Errorf("%v after %d calls, lost at %v", err, calls, p.Lost())
		}
	})
}

// An operation is not tried again without patience, if the error stays, or if the work is interrupted.
func TestDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := mongo.CommandError{Code: 13}
		for name, tt := range map[string]struct {
			p   *Patience
			err error
		}{
			"none": {nil, lost}, "no time": {New(0, nil), lost}, "not transient": {New(time.Minute, nil), denied},
		} {
			calls := 0
			if err := tt.p.Do(t.Context(), func() error { calls++; return tt.err }); err == nil || calls != 1 {
				t.Errorf("%s: %v after %d calls", name, err, calls)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		if err := New(time.Minute, nil).Do(ctx, func() error { return lost }); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 10*time.Second {
			t.Errorf("interrupted: %v after %v", err, time.Since(begin))
		}
	})
}

// A pass that fails again, longer after the first time than the limit, is made again: what was read in
// between shows that the server was back. A server that is not back is given up after the limit, and a
// pass that never comes further is given up too.
func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(time.Minute, nil)
		for name, tt := range map[string]struct {
			read []int // minutes, and documents, of each pass; the last one is repeated
			fail int   // passes that fail
			want int   // passes
		}{
			"comes further": {[]int{0, 90, 50, 0, 120}, 4, 5},
			"a bit further": {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 12, 13},
			"no further":    {[]int{50}, 1000, maxVain + 1},
		} {
			passes := 0
			err := p.Pass(t.Context(), func(progress func(int)) error {
				passes++
				for range tt.read[min(passes, len(tt.read))-1] {
					time.Sleep(time.Minute)
					progress(1)
				}
				if passes <= tt.fail {
					return lost
				}
				return nil
			})
			if (err == nil) != (tt.fail < tt.want) || passes != tt.want {
				t.Errorf("%s: %v after %d passes", name, err, passes)
			}
		}
		begin := time.Now()
		if err := p.Pass(t.Context(), func(func(int)) error { return lost }); !errors.As(err, new(mongo.CommandError)) || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// The pause after a slow batch is as long as the batch took too long.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(Latency)
		batch := func(n int, took time.Duration) time.Duration {
			answered := l.Start()
			time.Sleep(took)
			begin := time.Now()
			answered(t.Context(), n)
			return time.Since(begin)
		}
		for range 3 {
			if d := batch(100, 100*time.Millisecond); d != 0 {
				t.Fatalf("pause %v", d)
			}
		}
		for _, tt := range []struct {
			n          int
			took, want time.Duration
		}{
			{100, 400 * time.Millisecond, 0},
			{100, time.Second, 600 * time.Millisecond},
			{10, 200 * time.Millisecond, 0}, // short
			{10, 260 * time.Millisecond, 10 * time.Millisecond},
			{1000, 4 * time.Second, 0},
			{100, 5 * time.Minute, 30 * time.Second},
			{0, time.Hour, 0},
		} {
			l.usual = float64(time.Millisecond)
			if d := batch(tt.n, tt.took); d != tt.want {
				t.Errorf("%d documents in %v: pause %v, want %v", tt.n, tt.took, d, tt.want)
			}
		}
		// A lasting change becomes usual.
		for range 200 {
			batch(100, time.Second)
		}
		if d := batch(100, time.Second); d != 0 {
			t.Errorf("pause %v", d)
		}
		(*Latency)(nil).Start()(t.Context(), 5)
	})
}
