package i3core

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// An Option configures a [Generator], or [NewInteraction]. An Option that is nil, has an invalid
// value or does not apply to the format is an error. If an Option is given twice, the last one is
// used.
type Option func(*config) error

type config struct {
	format  string
	options []string // names of those that apply
	given   []string

	now        func() time.Time // nil: the system's clock
	random     io.Reader        // nil: the system's source
	custom     *byte
	version    *byte
	dbms       DBMS
	timestamps func() uint64

	maxRollback time.Duration
	maxWait     time.Duration
}

const (
	defaultRollback = time.Minute
	defaultWait     = 2 * time.Second
)

func newConfig(format string, opts []Option, apply ...string) (*config, error) {
	c := &config{format: format, options: apply, maxRollback: defaultRollback, maxWait: defaultWait}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("i3core: nil Option")
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
		return fmt.Errorf("i3core: %s does not apply to the %s format", name, c.format)
	}
	c.given = append(c.given, name)
	return nil
}

// WithClock makes a sequential or notifier [Generator] read the time from now, which it calls from
// one goroutine at a time. The default is the system's clock.
func WithClock(now func() time.Time) Option {
	return func(c *config) error {
		if now == nil {
			return errors.New("i3core: WithClock: nil function")
		}
		c.now = now
		return c.check("WithClock")
	}
}

// WithRandom makes a random or sequential [Generator], or [NewInteraction], draw from r, 16 bytes
// for a draw and without a stock. An error of r is an error of the call. The default is the system's source, combined with the clocks so
// that copies of a virtual machine draw other bytes.
func WithRandom(r io.Reader) Option {
	return func(c *config) error {
		if r == nil {
			return errors.New("i3core: WithRandom: nil reader")
		}
		c.random = r
		return c.check("WithRandom")
	}
}

// WithCustom sets the custom byte of a random or notifier [Generator]. The default is a random one
// in the random format, and zero in the notifier format.
func WithCustom(custom byte) Option {
	return func(c *config) error {
		c.custom = &custom
		return c.check("WithCustom")
	}
}

// WithVersion sets the version, 4 bits, of a sequential [Generator], which needs it: the document
// does not give the number. A number chosen here does not make the UUIDs those of i3core.
func WithVersion(version byte) Option {
	return func(c *config) error {
		c.version = &version
		return c.check("WithVersion")
	}
}

// WithDBMS sets the database in whose order the UUIDs of a sequential [Generator] are to ascend,
// [DBMSBinary] by default. MongoDB is DBMSBinary.
func WithDBMS(d DBMS) Option {
	return func(c *config) error {
		c.dbms = d
		return c.check("WithDBMS")
	}
}

// WithTimestamps makes a sequential [Generator] take its timestamps, 56 bits, from next, which it
// calls from one goroutine at a time. The default is microseconds since 2000-01-01T00:00:00Z: the
// document gives neither unit nor epoch. [Sequential.Time] and the functions that take an instant
// do not fit other timestamps. With [WithClock] it is an error.
func WithTimestamps(next func() uint64) Option {
	return func(c *config) error {
		if next == nil {
			return errors.New("i3core: WithTimestamps: nil function")
		}
		c.timestamps = next
		return c.check("WithTimestamps")
	}
}

// WithMaxRollback limits how far the clock of a sequential [Generator] may be behind its highest
// reading; see [NewSequentialGenerator]. Up to the limit, which is included, the timestamp stays the
// same. Beyond it, a new order begins at the clock's time. With a limit of zero that happens at every
// step back, with [math.MaxInt64] never. With [WithTimestamps] the unit of the timestamps is taken as
// a microsecond. A negative limit is an error of the constructor.
//
// The default is one minute.
func WithMaxRollback(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("i3core: WithMaxRollback: negative duration %v", limit)
		}
		c.maxRollback = limit
		return c.check("WithMaxRollback")
	}
}

// WithMaxWait sets how long a notifier [Generator] waits for its clock to pass the last instance
// sequence before it returns [ErrWait], two seconds by default. With zero it does not wait. The
// limit is in real time, also with [WithClock].
func WithMaxWait(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("i3core: WithMaxWait: negative duration %v", limit)
		}
		c.maxWait = limit
		return c.check("WithMaxWait")
	}
}
