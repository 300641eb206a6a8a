package patience

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// Pace limits the number of documents that are written per second, by all that share it. It is safe
// for concurrent use. A nil Pace does not limit.
type Pace struct {
	steering  Steering
	say       func(format string, args ...any)
	mu        sync.Mutex
	perSecond int       // 0 for no limit
	next      time.Time // when the next documents may be written
	paused    bool
	wrong     string // what was said about the file of the rate
}

// lookAgain is how long a paused or limited Pace waits before it looks at the files again.
const lookAgain = time.Second

// Steering is two files that a person writes while the work goes on. While the file Pause exists, nothing is
// written. The file Rate has the number of documents that may be written per second, as decimal digits; 0, or
// no file, is no limit. An empty name stands for no file.
type Steering struct{ Pause, Rate string }

// Paused reports whether there is a file Pause. What cannot be known counts as a pause.
func (s Steering) Paused() bool {
	_, err := os.Lstat(s.Pause)
	return !errors.Is(err, fs.ErrNotExist)
}

// Limit returns the number of documents per second, or 0. It is an error if the file Rate cannot be read or
// is not a number.
func (s Steering) Limit() (int, error) {
	if err := files.Regular(s.Rate); err != nil { // reading a pipe may never end
		return 0, errors.New(s.Rate + " is " + err.Error())
	}
	text, err := os.ReadFile(s.Rate)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31)
	if err != nil {
		return 0, errors.New(s.Rate + " is not a number of documents per second from 0 to " + strconv.Itoa(math.MaxInt32))
	}
	return int(n), nil
}

// Steered returns a Pace that obeys the files. It calls say when there is a pause, also one that was there
// before, when the pause ends, and when the file of the rate is wrong, in which case the limit stays.
func Steered(s Steering, say func(format string, args ...any)) *Pace {
	p := &Pace{steering: s, say: say}
	p.look()
	return p
}

// look reads the files.
func (p *Pace) look() {
	switch paused := p.steering.Paused(); {
	case paused && !p.paused:
		p.say("paused: nothing is written until %s is removed", p.steering.Pause)
		p.paused = true
	case !paused && p.paused:
		p.say("%s was removed: going on", p.steering.Pause)
		p.paused = false
	}
	limit, err := p.steering.Limit()
	if err != nil {
		if p.wrong != err.Error() {
			p.wrong = err.Error()
			stays := "none"
			if p.perSecond > 0 {
				stays = strconv.Itoa(p.perSecond) + " documents per second"
			}
			p.say("%v: the limit stays at %s", err, stays)
		}
		return
	}
	p.wrong = ""
	if limit != p.perSecond {
		p.perSecond, p.next = limit, time.Time{}
	}
}

// Limited reports whether there is a limit now.
func (p *Pace) Limited() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.perSecond > 0 || p.paused
}

// Batch returns the size of a batch, at most n: with a limit, a batch has at most the documents of half a
// second.
func (p *Pace) Batch(n int) int {
	if p == nil {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.perSecond == 0 {
		return n
	}
	return min(n, max(1, p.perSecond/2))
}

// Wait waits until n more documents may be written. After them, it lets nothing pass for as long as they take
// at the limit.
func (p *Pace) Wait(ctx context.Context, n int) error {
	if p == nil {
		return nil
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := p.admit(n)
		if left <= 0 {
			return nil
		}
		if err := Sleep(ctx, min(left, lookAgain)); err != nil {
			return err
		}
	}
}

// Hold waits while there is a pause, and not for the limit. It is for what was admitted before the pause.
func (p *Pace) Hold(ctx context.Context) error {
	for p != nil {
		p.mu.Lock()
		p.look()
		paused := p.paused
		p.mu.Unlock()
		if !paused {
			break
		}
		if err := Sleep(ctx, lookAgain); err != nil {
			return err
		}
	}
	return nil
}

// admit returns 0 if n documents may be written now, and otherwise how long to wait before asking again.
func (p *Pace) admit(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look()
	if p.paused {
		return lookAgain
	}
	if p.perSecond == 0 {
		return 0
	}
	now := time.Now()
	if left := p.next.Sub(now); left > 0 {
		return left
	}
	p.next = now.Add(time.Duration(float64(n) / float64(p.perSecond) * float64(time.Second)))
	return 0
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
// so that it follows a lasting change. A Latency is of one conversion, and safe for concurrent use. A nil
// Latency does not slow down.
type Latency struct {
	mu    sync.Mutex
	usual float64 // nanoseconds for a document
}

// Start notes that a batch is sent. The function it returns must be called when the batch is answered, with the
// number of documents. It pauses if the batch was slow; a pause that ctx cuts short is no error.
func (l *Latency) Start() (answered func(ctx context.Context, documents int)) {
	if l == nil {
		return func(context.Context, int) {}
	}
	begin := time.Now()
	return func(ctx context.Context, n int) {
		if pause := l.pause(time.Since(begin), n); pause > 0 {
			_ = Sleep(ctx, pause)
		}
	}
}

// pause returns how long to pause after a batch of n documents.
func (l *Latency) pause(took time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	each := float64(took) / float64(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usual == 0 || each < l.usual {
		l.usual = each
		return 0
	}
	allowed := max(time.Duration(l.usual*tolerated*float64(n)), leastSlow)
	l.usual *= usualIncrease
	return min(took-allowed, longestDelay)
}
