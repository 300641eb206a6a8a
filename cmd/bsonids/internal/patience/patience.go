// Package patience tries an operation again while a server is lost or overloaded, and slows down if
// a server does.
package patience

import (
	"context"
	"sync"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// The pauses between attempts double from the first to the longest.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 15 * time.Second
	noticeEvery  = 20 * time.Second
)

// maxVain is how often a pass is made again that reads some documents, and fails before it comes further.
const maxVain = 10

// Patience determines for how long operations are tried again. It is safe for concurrent use. A nil
// Patience tries everything once.
type Patience struct {
	limit  time.Duration
	notice func(err error, left time.Duration)

	mu      sync.Mutex
	noticed time.Time
	lost    time.Time
}

// New returns a Patience that ends limit after the first of several errors in a row. notice is
// called from time to time while an operation is tried again, with the time that is left; it may be
// nil.
func New(limit time.Duration, notice func(err error, left time.Duration)) *Patience {
	return &Patience{limit: limit, notice: notice}
}

// Do calls f until it succeeds, or until it fails with an error that is not transient or for longer
// than the limit. It returns the last error of f, or that of ctx if it ends during a pause.
func (p *Patience) Do(ctx context.Context, f func() error) error {
	return p.Pass(ctx, func(func(int)) error { return f() })
}

// Ask is like [Patience.Do] for an f that has a result. It returns that of the last call.
func Ask[T any](ctx context.Context, p *Patience, f func() (T, error)) (v T, err error) {
	err = p.Do(ctx, func() error {
		v, err = f()
		return err
	})
	return v, err
}

// Pass is like Do for an f that reads much, and begins again when it is tried again. f reports the
// documents that it has read, and the limit begins again with each. An f that comes no further than before
// is tried again maxVain times.
func (p *Patience) Pass(ctx context.Context, f func(progress func(documents int)) error) error {
	s := p.Streak()
	furthest := 0
	for vain := 0; ; vain++ {
		n := 0
		err := f(func(documents int) {
			s.End()
			if n += documents; n > furthest {
				furthest, vain = n, 0
			}
		})
		switch {
		case err == nil:
			return nil
		case n > 0 && vain >= maxVain:
			return err
		}
		if err := s.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// Streak is a series of errors without a success in between. It is not safe for concurrent use.
type Streak struct {
	p     *Patience
	began time.Time
	pause time.Duration
}

// Streak returns a streak without errors.
func (p *Patience) Streak() *Streak { return &Streak{p: p} }

// Wait pauses after err. It returns nil if the operation should be tried again. Otherwise it returns
// err, or the error of ctx if it ends during the pause.
func (s *Streak) Wait(ctx context.Context, err error) error {
	p := s.p
	if p == nil || !failure.Transient(err) {
		return err
	}
	now := time.Now()
	if s.pause == 0 {
		s.began, s.pause = now, firstPause
	}
	left := p.limit - now.Sub(s.began)
	p.mu.Lock()
	p.lost = now
	if ctx.Err() != nil { // what was sent has no answer all the same
		p.mu.Unlock()
		return err
	}
	tell := left > 0 && p.notice != nil && (p.noticed.IsZero() || now.Sub(p.noticed) >= noticeEvery)
	if tell {
		p.noticed = now
	}
	p.mu.Unlock()
	if left <= 0 {
		return err
	}
	if tell {
		p.notice(err, left)
	}
	pause := min(s.pause, left)
	s.pause = min(2*s.pause, longestPause)
	return Sleep(ctx, pause)
}

// Lost returns when an operation failed last because the server was lost or overloaded, or zero if none
// did. What was sent until then may have no answer.
func (p *Patience) Lost() time.Time {
	if p == nil {
		return time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// End ends the streak, because the operation succeeded.
func (s *Streak) End() { s.pause = 0 }

// Sleep waits. It returns the error of ctx if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Undated returns a context that ends with ctx and does not tell its deadline. With it, the driver
// retries a read once. With a deadline, it retries without a pause until then.
func Undated(ctx context.Context) context.Context { return undated{ctx} }

type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }
