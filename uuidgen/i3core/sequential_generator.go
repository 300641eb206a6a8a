package i3core

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/fork"
)

// The counter of a sequential Generator, 48 bits, starts in its lower half, so that it has 2^47
// numbers or more. It ends 2^32 numbers before the last: no burst after the error comes near the
// overflow.
const (
	counterStarts = 1 << 47
	counterEnd    = 1<<48 - 1<<32
)

// NewSequentialGenerator returns a Generator of the sequential format. [WithVersion] is required;
// other options are [WithDBMS], [WithClock] or [WithTimestamps], and [WithRandom]. A random source
// that fails is [ErrRandom].
//
// The UUIDs of one Generator ascend in the order of memory. random1, random2 and the start of the
// counter are drawn once, and drawn again in a forked process and by [Generator.Renew]. The counter
// takes one step for every UUID; when its low 16 bits overflow, bytes 10–13 take one. While the
// clock stands still or is behind the last timestamp, the timestamp stays the same and the counter
// keeps the order. A time or timestamp that does not fit 56 bits is [ErrTimeRange].
//
// With [DBMSBinary], a counter that has come to its end after 2^46 UUIDs or more starts anew at the
// next timestamp; within one timestamp the end is [ErrCounter].
//
// With [DBMSSQLServer], the UUIDs of one Generator also ascend in the order in which SQL Server
// compares them: bytes 10 to 15 first, which are the counter. The counter therefore never starts
// anew, and its end is ErrCounter until Renew. In that order the counters of several Generators
// have nothing to do with time: it holds within one Generator only, and until Renew.
func NewSequentialGenerator(opts ...Option) (*Generator, error) {
	c, err := newConfig(formatSequential, opts, "WithVersion", "WithDBMS", "WithClock", "WithTimestamps", "WithRandom")
	if err != nil {
		return nil, err
	}
	if c.version == nil {
		return nil, errors.New("i3core: the sequential format needs WithVersion: the document does not give its number")
	}
	if c.timestamps != nil && slices.Contains(c.given, "WithClock") {
		return nil, errors.New("i3core: WithClock does not apply to the sequential format with WithTimestamps")
	}
	m := &sequentialMaker{constant: Sequential{Version: *c.version, DBMS: c.dbms}, random: c.random, now: c.now,
		timestamps: c.timestamps}
	if err := m.constant.Validate(); err != nil {
		return nil, err
	}
	if err := m.renew(); err != nil {
		return nil, err
	}
	return &Generator{maker: m}, nil
}

type sequentialMaker struct {
	constant   Sequential
	now        func() time.Time
	timestamps func() uint64 // nil: of now
	random     io.Reader
	generation uint64 // of package fork

	last    uint64 // timestamp
	start   uint64 // of the counter
	counter uint64

	given *sequentialMaker // makes UUIDs for given instants; nil before the first
}

func (m *sequentialMaker) renew() error {
	generation := fork.Check()
	random1, counter, err := draw(m.random, new([16]byte), 1<<12-1, counterStarts-1)
	if err != nil {
		return err
	}
	m.constant.Random1, m.start, m.counter, m.last = uint16(random1), counter, counter, 0
	m.generation, m.given = generation, nil
	return nil
}

// check begins anew in a forked process.
func (m *sequentialMaker) check() error {
	if fork.Check() == m.generation {
		return nil
	}
	return m.renew()
}

func (m *sequentialMaker) next() (uuid.UUID, bool, error) {
	if err := m.check(); err != nil {
		return uuid.Nil, false, err
	}
	now, err := m.timestamp()
	if err != nil {
		return uuid.Nil, false, err
	}
	if m.counter >= counterEnd {
		if m.constant.DBMS != DBMSBinary || now <= m.last {
			return uuid.Nil, false, ErrCounter
		}
		m.counter = m.start
	}
	m.last = max(m.last, now)
	return m.join(m.last), true, nil
}

// join returns the UUID with the next number of the counter.
func (m *sequentialMaker) join(timestamp uint64) uuid.UUID {
	f := m.constant
	f.Timestamp, f.CounterHi, f.CounterLo = timestamp, uint32(m.counter>>16), uint16(m.counter)
	m.counter++
	return f.join()
}

func (m *sequentialMaker) at(t time.Time) (uuid.UUID, error) {
	if m.timestamps != nil {
		return uuid.Nil, errors.New("i3core: NewUUIDAt does not apply to the sequential format with WithTimestamps")
	}
	timestamp, err := microsecondsAt(t, formatSequential, 56)
	if err != nil {
		return uuid.Nil, err
	}
	if err := m.check(); err != nil {
		return uuid.Nil, err
	}
	if m.given == nil {
		given := &sequentialMaker{constant: m.constant, random: m.random}
		if err := given.renew(); err != nil {
			return uuid.Nil, err
		}
		// Another random1 than that of the UUIDs that follow the clock: the two never meet.
		if given.constant.Random1 == m.constant.Random1 {
			given.constant.Random1 ^= 1
		}
		m.given = given
	}
	if m.given.counter >= counterEnd {
		return uuid.Nil, ErrCounter
	}
	return m.given.join(timestamp), nil
}

func (m *sequentialMaker) ahead() time.Duration {
	if m.counter == m.start {
		return 0
	}
	now, err := m.timestamp()
	if err != nil {
		return math.MaxInt64
	}
	return microsecondsAhead(m.last, now)
}

func (m *sequentialMaker) timestamp() (uint64, error) {
	if m.timestamps == nil {
		return microsecondsAt(m.now(), formatSequential, 56)
	}
	timestamp := m.timestamps()
	if timestamp>>56 != 0 {
		return 0, fmt.Errorf("i3core: %w: %s format, timestamp %#x", ErrTimeRange, formatSequential, timestamp)
	}
	return timestamp, nil
}

// microsecondsAhead returns how far the timestamp last is after now, both of at most 56 bits.
func microsecondsAhead(last, now uint64) time.Duration {
	const limit = uint64(math.MaxInt64 / time.Microsecond)
	if last <= now {
		return 0
	}
	if last-now > limit {
		return math.MaxInt64
	}
	return time.Duration(last-now) * time.Microsecond
}
