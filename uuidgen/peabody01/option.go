package peabody01

import (
	"errors"
	"fmt"
	"io"
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
	encoding    Encoding
	machine     uint64
	machineBits int
	machineSet  bool
	maxAhead    time.Duration
	maxRollback time.Duration
	maxWait     time.Duration
}

const (
	defaultAhead      = time.Second
	defaultRollback   = time.Second
	defaultRollbackV6 = time.Minute
	defaultWait       = 2 * time.Second
)

func newConfig(format string, rollback time.Duration, opts []Option, apply ...string) (*config, error) {
	c := &config{
		format:      format,
		options:     append(apply, "WithRandom", "WithMachineID", "WithMaxRollback", "WithMaxWait"),
		maxAhead:    defaultAhead,
		maxRollback: rollback,
		maxWait:     defaultWait,
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("peabody01: nil Option")
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
		return fmt.Errorf("peabody01: %s does not apply to %s", name, c.format)
	}
	return nil
}

func (c *config) duration(name string, d time.Duration, set *time.Duration) error {
	if d < 0 {
		return fmt.Errorf("peabody01: %s: negative duration %v", name, d)
	}
	*set = d
	return c.check(name)
}

// WithClock makes a [Generator] read the time from now, which it calls from one goroutine at a
// time. The default is the system's clock. It does not apply to version 8 with a [Clock] that has its own
// function.
func WithClock(now func() time.Time) Option {
	return func(c *config) error {
		if now == nil {
			return errors.New("peabody01: WithClock: nil function")
		}
		c.now = now
		return c.check("WithClock")
	}
}

// WithRandom makes a [Generator] draw from r, one call at a time, without a stock. Every UUID takes 8
// bytes; version 6 takes 8 more for each clock sequence. An error of r is an error of the call. The
// default is the system's source, combined with the clocks so that copies of a virtual machine draw
// other bytes.
func WithRandom(r io.Reader) Option {
	return func(c *config) error {
		if r == nil {
			return errors.New("peabody01: WithRandom: nil reader")
		}
		c.random = r
		return c.check("WithRandom")
	}
}

// WithMachineID puts id into the top bits of the node, right after the sequence. The makers in a
// cluster then make different UUIDs, and a value shows its maker: see MachineID of [V6], [V7] and
// [V8]. The width in bits is at least 1 and leaves at least 16 random bits in the node. The draft
// recommends 48 random bits and forbids a MAC address. An id that is wider is an error of the
// constructor.
//
// It implements section 7 of the draft.
func WithMachineID(id uint64, bits int) Option {
	return func(c *config) error {
		c.machine, c.machineBits, c.machineSet = id, bits, true
		return c.check("WithMachineID")
	}
}

// WithEncoding sets how version 7 writes parts of a second, [RoundUp] by default. It applies to
// version 7.
func WithEncoding(e Encoding) Option {
	return func(c *config) error {
		if int(e) >= len(encodings) {
			return fmt.Errorf("peabody01: WithEncoding: %v is not an encoding of sub-seconds", e)
		}
		c.encoding = e
		return c.check("WithEncoding")
	}
}

// WithMaxAhead limits how far the timestamps of version 6 run ahead of the highest reading of the
// clock while UUIDs are drawn faster than every 100 ns: one second by default. At the limit, a call
// waits as [WithMaxWait] says. It applies to version 6; the other versions have a sequence, and are
// never ahead of a clock that is not set back.
func WithMaxAhead(limit time.Duration) Option {
	return func(c *config) error { return c.duration("WithMaxAhead", limit, &c.maxAhead) }
}

// WithMaxRollback sets how far the clock may be set back while a [Generator] keeps the last
// timestamp. In versions 7 and 8 it is one second by default, after which they return
// [ErrClockRollback]. In version 6 it is one minute by default, after which a new order begins. With
// zero that happens at every step back.
func WithMaxRollback(limit time.Duration) Option {
	return func(c *config) error { return c.duration("WithMaxRollback", limit, &c.maxRollback) }
}

// WithMaxWait sets how long a call waits for a new timestamp before it returns [ErrWait]: two
// seconds by default. With zero it does not wait. The limit is in real time, also with [WithClock].
// A version 8 whose ticks are longer than a second needs a longer one.
func WithMaxWait(limit time.Duration) Option {
	return func(c *config) error { return c.duration("WithMaxWait", limit, &c.maxWait) }
}
