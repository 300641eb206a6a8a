package patience

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pace limits the number of documents that are written per second, by all that share it. It is safe
// for concurrent use. A nil Pace does not limit.
type Pace struct {
	limiter *rate.Limiter
	burst   int
}

// NewPace returns a Pace of the number of documents per second, or nil if it is 0.
func NewPace(perSecond int) *Pace {
	if perSecond == 0 {
		return nil
	}
	// The limiter admits a whole batch at once, so a batch has at most the documents of half a
	// second.
	burst := max(1, perSecond/2)
	return &Pace{rate.NewLimiter(rate.Limit(perSecond), burst), burst}
}

// Batch returns the size of a batch, at most n.
func (p *Pace) Batch(n int) int {
	if p == nil {
		return n
	}
	return min(n, p.burst)
}

// Wait waits until n more documents, at most the size of a batch, may be written.
func (p *Pace) Wait(ctx context.Context, n int) error {
	if p == nil {
		return nil
	}
	return p.limiter.WaitN(ctx, n)
}

// The rule by which a conversion slows down.
const (
	tolerated     = 4                      // times as long as usual
	leastSlow     = 250 * time.Millisecond // shorter batches are not slow
	longestDelay  = 30 * time.Second
	usualIncrease = 1.01
)

// Latency slows down a conversion if the server does. A batch is slow if it takes more than four
// times as long, by document, as is usual, and more than a quarter of a second. After a slow batch,
// the conversion pauses for as long as the batch took too long, at most 30 seconds. What is usual is
// the shortest time that a batch has taken, and increases by 1 % with each batch that takes longer,
// so that it follows a lasting change. A Latency is safe for concurrent use. A nil Latency does not
// slow down.
type Latency struct {
	clock Clock

	mu    sync.Mutex
	usual float64 // nanoseconds for a document
}

// NewLatency returns a Latency for one conversion.
func NewLatency(clock Clock) *Latency { return &Latency{clock: clock} }

// Start notes that a batch is sent. The function it returns must be called with the number of
// documents when the batch is answered, and returns how long to pause.
func (l *Latency) Start() func(documents int) time.Duration {
	if l == nil {
		return func(int) time.Duration { return 0 }
	}
	begin := l.clock.Now()
	return func(n int) time.Duration {
		if n == 0 {
			return 0
		}
		took := l.clock.Now().Sub(begin)
		each := float64(took) / float64(n)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.usual == 0 || each < l.usual {
			l.usual = each
			return 0
		}
		allowed := time.Duration(l.usual * tolerated * float64(n))
		l.usual *= usualIncrease
		if took <= max(allowed, leastSlow) {
			return 0
		}
		return min(took-max(allowed, leastSlow), longestDelay)
	}
}

// Pause waits.
func (l *Latency) Pause(ctx context.Context, d time.Duration) error {
	if l == nil || d <= 0 {
		return nil
	}
	return l.clock.Sleep(ctx, d)
}
