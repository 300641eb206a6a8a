package uuidgen

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"

	"github.com/bsonids/bsonids/internal/idoption"
)

// An Option configures a [Generator]. An Option that is nil, has an invalid value or does not apply
// to the format is an error of the constructor. If an Option is given twice, the last one is used.
// Packages peabody01 and i3core have Options for their formats.
type Option func(*idoption.Config) error

func newConfig(l *layout, opts []Option, apply ...string) (*idoption.Config, error) {
	c := idoption.New("uuidgen", l.String(), apply...)
	return c, idoption.Apply(c, opts)
}

// WithClock makes a [Generator] whose ids have a time read it from now, which must be safe for
// concurrent use.
//
// By default the time is the system's. It is read through the monotonic clock, which is compared
// with the wall clock every millisecond: when the wall clock is set, the Generator follows within
// that time.
func WithClock(now func() time.Time) Option {
	return func(c *idoption.Config) error {
		if now == nil {
			return errors.New("WithClock: nil function")
		}
		c.Now = now
		return c.Check("WithClock")
	}
}

// WithRandom makes a [Generator] take every random bit from r, which need not be safe for
// concurrent use. An id of version 4 takes 16 bytes, an id of another version takes 8. They become
// the last bytes of the id in the order read; version, variant and multicast bit are written over
// them. Nothing is read ahead. An error of r is an error of the call. [Generator.NewUUIDAt] takes 8
// bytes and uses them otherwise.
func WithRandom(r io.Reader) Option {
	return func(c *idoption.Config) error {
		if r == nil {
			return errors.New("WithRandom: nil reader")
		}
		c.Random = r
		return c.Check("WithRandom")
	}
}

// WithMaxAhead limits how far the timestamps of a [Generator] of version 6, 7 or 8 may be ahead of
// the highest reading of its clock in the present order; see [Generator.Ahead]. At the limit, a call
// waits until the clock has moved on. [WithMaxWait] limits the wait, which then ends in [ErrWait].
// With a limit of zero no id has a timestamp later than the clock has shown. A negative limit is an
// error of the constructor.
//
// By default, and with [math.MaxInt64], there is no limit, and no call waits.
func WithMaxAhead(limit time.Duration) Option {
	return func(c *idoption.Config) error { return setLimit(c, "WithMaxAhead", &c.MaxAhead, limit) }
}

// WithMaxRollback limits how far the clock of a [Generator] of version 6, 7 or 8 may be behind its
// highest reading; see the section Order of Generator. Up to the limit, which is included, ids count
// up from the last timestamp. Beyond it, a new order begins at the clock's time. With a limit of zero
// that happens at every step back, with [math.MaxInt64] never: there is one order until
// [Generator.Renew]. A negative limit is an error of the constructor.
//
// The default is one minute.
func WithMaxRollback(limit time.Duration) Option {
	return func(c *idoption.Config) error { return setLimit(c, "WithMaxRollback", &c.MaxRollback, limit) }
}

// WithMaxWait sets how long a call waits at the limit of [WithMaxAhead] before it returns
// [ErrWait]: 2 s by default. With zero it does not wait. A [Generator.Fill] may wait more than
// once. The limit is in real time, also with [WithClock]. A negative limit is an error of the
// constructor.
func WithMaxWait(limit time.Duration) Option {
	return func(c *idoption.Config) error { return setLimit(c, "WithMaxWait", &c.MaxWait, limit) }
}

func setLimit(c *idoption.Config, name string, limit *time.Duration, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: negative duration %v", name, d)
	}
	*limit = d
	return c.Check(name)
}

// steps returns how many timestamps of the layout a duration spans, rounded down. Without a limit
// they are so many that a sum with a timestamp does not overflow.
func (l *layout) steps(d time.Duration) uint64 {
	if d == idoption.NoLimit {
		return math.MaxUint64 / 2
	}
	hi, lo := bits.Mul64(uint64(d), l.perSecond)
	steps, _ := bits.Div64(hi, lo, 1e9)
	return steps
}
