package objectidgen

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bsonids/bsonids/internal/fork"
)

// Option configures a [Generator]. An Option that is nil or has an invalid value is an error of [NewGenerator]. If an Option is
// given twice, the last one is used.
type Option func(*config) error

type config struct {
	now         func() time.Time // nil: the system's clock
	random      io.Reader
	maxRollback time.Duration
	maxWait     time.Duration
	started     bool // start is given, not drawn
	start       start
}

// defaultRollback is more than the steps by which clocks are corrected day by day, and less than what misleads a person
// who reads the timestamps.
const (
	defaultRollback = time.Minute
	defaultWait     = 2 * time.Second
)

func newConfig(opts []Option) (*config, error) {
	c := &config{random: fork.Reader, maxRollback: defaultRollback, maxWait: defaultWait}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("objectidgen: nil Option")
		}
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// WithClock makes a [Generator] read the time from now instead of the system's clock: once for each id, once for every
// 4096 ids of Fill, and repeatedly while a call waits for the next second. The function must be safe for concurrent use
// if the Generator is, and must not call the Generator. The time may step back, stand still or be out of the
// timestamp's range; see Generator. A nil function is an error of [NewGenerator].
func WithClock(now func() time.Time) Option {
	return func(c *config) error {
		if now == nil {
			return errors.New("objectidgen: WithClock: nil function")
		}
		c.now = now
		return nil
	}
}

// WithRandom makes a [Generator] draw from r instead of [crypto/rand.Reader]: 8 bytes for [NewGenerator], for each new order and
// for the first call of [Generator.NewObjectIDAt]. The first 5 bytes are the process value, the last 3 are the counter
// of the first id, big-endian. If the process value was used before, it reads again, up to 32 bytes in all. It reads by
// one call at a time.
//
// A nil reader is an error of NewGenerator. If the reader fails in NewGenerator, Renew or NewObjectIDAt, its error is returned; a new order
// that the Generator makes by itself uses [crypto/rand] then. In a copy of the process crypto/rand is used from the
// time when the copy is noticed, because the reader may be a copy too.
func WithRandom(r io.Reader) Option {
	return func(c *config) error {
		if r == nil {
			return errors.New("objectidgen: WithRandom: nil reader")
		}
		c.random = r
		return nil
	}
}

// WithStart sets the process value and the counter of the first id, so that a test gets the same ids again. Random
// bytes are read for new orders only. The ids of [Generator.NewObjectIDAt] begin with the process value plus 1 and the
// same counter.
//
// Two generators with the same start make the same ids: do not use it in production. A counter above 16777215 is an
// error of [NewGenerator], [ErrCounterRange].
func WithStart(process [5]byte, counter uint32) Option {
	return func(c *config) error {
		if counter > lastCounter {
			return fmt.Errorf("objectidgen: WithStart: counter %d: %w", counter, ErrCounterRange)
		}
		c.started, c.start = true, start{process, counter}
		return nil
	}
}

// WithMaxRollback limits how far the clock of a [Generator] may be behind its highest reading; see the section Order of
// Generator. Up to the limit, which is included, timestamps stay where they are until the clock has caught up, so that
// ids remain in order. Beyond it the Generator begins a new order at the clock's time. The limit counts in whole seconds;
// it is rounded down. With a limit below a second, timestamps always follow the clock; with [math.MaxInt64] only
// [Generator.Renew] takes them back. A negative limit is an error of [NewGenerator].
//
// The default is one minute.
func WithMaxRollback(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("objectidgen: WithMaxRollback: negative duration %v", limit)
		}
		c.maxRollback = limit
		return nil
	}
}

// WithMaxWait limits how long a call waits for the next second when the ids of the present one are used up. Then the
// Generator begins a new order in the same second. The limit is in real time, also with [WithClock]. A negative limit is
// an error of [NewGenerator].
//
// The default is 2 s, which only a clock that stands still reaches.
func WithMaxWait(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("objectidgen: WithMaxWait: negative duration %v", limit)
		}
		c.maxWait = limit
		return nil
	}
}
