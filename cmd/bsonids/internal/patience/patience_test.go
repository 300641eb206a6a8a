package patience

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// testClock is a clock whose time passes only in Sleep.
type testClock struct {
	now    time.Time
	slept  []time.Duration
	cancel func() // called in Sleep
}

func (c *testClock) clock() Clock {
	return Clock{func() time.Time { return c.now }, func(ctx context.Context, d time.Duration) error {
		c.now = c.now.Add(d)
		c.slept = append(c.slept, d)
		if c.cancel != nil {
			c.cancel()
		}
		return ctx.Err()
	}}
}

var lost = mongo.CommandError{Code: 10107, Message: "not primary"}

// An operation is tried again until it succeeds. The pauses double up to a maximum, and the limit is
// that of each series of errors.
func TestDo(t *testing.T) {
	c := &testClock{now: time.Unix(1e9, 0)}
	var notices []time.Duration
	p := New(time.Minute, c.clock(), func(_ error, left time.Duration) { notices = append(notices, left) })
	for _, failing := range []int{6, 0, 6} {
		c.slept = nil
		calls := 0
		err := p.Do(t.Context(), func() error {
			if calls++; calls <= failing {
				return lost
			}
			return nil
		})
		if err != nil || calls != failing+1 || len(c.slept) != failing {
			t.Fatalf("%v after %d calls", err, calls)
		}
		for i, d := range c.slept {
			if want := min(firstPause<<i, longestPause); d != want {
				t.Errorf("pause %d: %v, want %v", i, d, want)
			}
		}
	}
	// Each of the two lasts 0.25 + 0.5 + 1 + 2 + 4 + 8 = 15.75 s: one notice at once, and one after 20 s.
	if len(notices) != 2 || notices[0] != time.Minute {
		t.Errorf("notices: %v", notices)
	}
}

func TestDoLimit(t *testing.T) {
	c := &testClock{now: time.Unix(1e9, 0)}
	begin := c.now
	p := New(time.Minute, c.clock(), nil)
	calls := 0
	if err := p.Do(t.Context(), func() error { calls++; return lost }); !errors.As(err, new(mongo.CommandError)) {
		t.Errorf("got %v", err)
	}
	if c.now.Sub(begin) != time.Minute {
		t.Errorf("ended after %v and %d calls", c.now.Sub(begin), calls)
	}
}

func TestDoNot(t *testing.T) {
	c := &testClock{now: time.Unix(1e9, 0)}
	denied := mongo.CommandError{Code: 13}
	for _, tt := range []struct {
		name string
		p    *Patience
		err  error
	}{
		{"none", nil, lost},
		{"no time", New(0, c.clock(), nil), lost},
		{"not transient", New(time.Minute, c.clock(), nil), denied},
	} {
		calls := 0
		if err := tt.p.Do(t.Context(), func() error { calls++; return tt.err }); err == nil || calls != 1 {
			t.Errorf("%s: %v after %d calls", tt.name, err, calls)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	if err := New(time.Minute, c.clock(), nil).Do(ctx, func() error { return lost }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// The pause after a slow batch is as long as the batch took too long.
func TestLatency(t *testing.T) {
	c := &testClock{now: time.Unix(1e9, 0)}
	l := NewLatency(c.clock())
	batch := func(n int, took time.Duration) time.Duration {
		answered := l.Start()
		c.now = c.now.Add(took)
		c.slept = []time.Duration{0}
		answered(t.Context(), n)
		return c.slept[len(c.slept)-1]
	}
	for range 3 {
		if d := batch(100, 100*time.Millisecond); d != 0 {
			t.Fatalf("pause %v", d)
		}
	}
	l.usual = float64(time.Millisecond)
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
}
