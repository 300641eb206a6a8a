package uuidgen

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"
)

// An Option configures a [Generator]. An Option that is nil, has an invalid value or does not apply
// to the version is an error of the constructor. If an Option is given twice, the last one is used.
type Option func(*config) error

type config struct {
	format  string
	options []string // names of those that apply

	now         func() time.Time // nil: the system's clock
	random      io.Reader        // nil: the system's source
	maxAhead    time.Duration
	maxRollback time.Duration
	maxWait     time.Duration
}

const (
	noLimit         = math.MaxInt64
	defaultRollback = time.Minute
	defaultWait     = 2 * time.Second
)

func newConfig(format string, opts []Option, apply ...string) (*config, error) {
	c := &config{format: format, options: apply, maxAhead: noLimit, maxRollback: defaultRollback, maxWait: defaultWait}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("uuidgen: nil Option")
		}
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// check returns an error if the option does not apply to the format.
func (c *config) check(name string) error {
	if !slices.Contains(c.options, name) {
		return fmt.Errorf("uuidgen: %s does not apply to %s", name, c.format)
	}
	return nil
}

// WithClock makes a [Generator] of version 6, 7 or 8 read the time from now, which must be safe for
// concurrent use.
//
// By default the time is the system's. It is read through the monotonic clock, which is compared
// with the wall clock every millisecond: when the wall clock is set, the Generator follows within
// that time.
func WithClock(now func() time.Time) Option {
	return func(c *config) error {
		if now == nil {
			return errors.New("uuidgen: WithClock: nil function")
		}
		c.now = now
		return c.check("WithClock")
	}
}

// WithRandom makes a [Generator] take every random bit from r, which need not be safe for
// concurrent use. An id of version 4 takes 16 bytes, an id of another version takes 8. They become
// the last bytes of the id in the order read; version, variant and multicast bit are written over
// them. Nothing is read ahead. An error of r is an error of the call. [Generator.NewUUIDAt] takes 8
// bytes and uses them otherwise.
func WithRandom(r io.Reader) Option {
	return func(c *config) error {
		if r == nil {
			return errors.New("uuidgen: WithRandom: nil reader")
		}
		c.random = r
		return c.check("WithRandom")
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
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("uuidgen: WithMaxAhead: negative duration %v", limit)
		}
		c.maxAhead = limit
		return c.check("WithMaxAhead")
	}
}

// WithMaxRollback limits how far the clock of a [Generator] of version 6, 7 or 8 may be behind its
// highest reading; see the section Order of Generator. Up to the limit, which is included, ids count
// up from the last timestamp. Beyond it, a new order begins at the clock's time. With a limit of zero
// that happens at every step back, with [math.MaxInt64] never: there is one order until
// [Generator.Renew]. A negative limit is an error of the constructor.
//
// The default is one minute.
func WithMaxRollback(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("uuidgen: WithMaxRollback: negative duration %v", limit)
		}
		c.maxRollback = limit
		return c.check("WithMaxRollback")
	}
}

// WithMaxWait sets how long a call waits at the limit of [WithMaxAhead] before it returns
// [ErrWait]: 2 s by default. With zero it does not wait. A [Generator.Fill] may wait more than
// once. The limit is in real time, also with [WithClock]. A negative limit is an error of the
// constructor.
func WithMaxWait(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("uuidgen: WithMaxWait: negative duration %v", limit)
		}
		c.maxWait = limit
		return c.check("WithMaxWait")
	}
}

// steps returns how many timestamps of the layout a duration spans, rounded down. Without a limit
// they are so many that a sum with a timestamp does not overflow.
func (l *layout) steps(d time.Duration) uint64 {
	if d == noLimit {
		return math.MaxUint64 / 2
	}
	hi, lo := bits.Mul64(uint64(d), l.perSecond)
	steps, _ := bits.Div64(hi, lo, 1e9)
	return steps
}
