package i3core

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/order"
	"github.com/bsonids/bsonids/internal/stock"
	"github.com/bsonids/bsonids/uuidgen"
)

// The counter of a sequential Generator, 48 bits, starts in its lower half, so that it has 2^47
// numbers or more. It ends 2^32 numbers before the last: no burst after the error comes near the
// overflow.
const (
	counterStarts = 1 << 47
	counterEnd    = 1<<48 - 1<<32
)

// NewSequentialGenerator returns a Generator of the sequential format. [WithVersion] is required;
// other options are [WithDBMS], [uuidgen.WithClock] or [WithTimestamps], [uuidgen.WithMaxRollback],
// and [uuidgen.WithRandom], from whose reader a draw takes 16 bytes. The error of the random source is
// returned, here, in NewUUID and in Renew; the Generator then goes on as before.
//
// The UUIDs of one Generator form orders, and in each they ascend in the order of memory. random1,
// random2 and the start of the counter are drawn once for an order. The counter takes one step for
// every UUID; when its low 16 bits overflow, bytes 10–13 take one. While the clock stands still or is
// behind its highest reading by up to the limit of WithMaxRollback, the timestamp stays the same and
// the counter keeps the order. If the clock is further behind, a new order begins at the clock's
// time. [uuidgen.Generator.Renew] begins one, too, and so does a process that may be a copy. A time or
// timestamp that does not fit 56 bits is [uuidgen.ErrTimeRange].
//
// With [DBMSBinary], a counter that has come to its end after 2^46 UUIDs or more starts anew at the
// next timestamp; within one timestamp the end is [uuidgen.ErrExhausted].
//
// With [DBMSSQLServer], the UUIDs of one Generator also ascend in the order in which SQL Server
// compares them: bytes 10 to 15 first, which are the counter. A new order therefore keeps random1 and
// the counter, which jumps ahead in a process that may be a copy. It never starts anew, and its end
// is uuidgen.ErrExhausted until Renew. In SQL Server's order the counters of several Generators have nothing
// to do with time: it holds within one Generator only, and until Renew.
func NewSequentialGenerator(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	m, c, err := newSequential(opts)
	if err != nil {
		return nil, err
	}
	return newGenerator(c, m), nil
}

func newSequential(opts []uuidgen.Option) (*sequentialMaker, *idoption.Config, error) {
	c, o, err := newConfig(formatSequential, opts, "WithVersion", "WithDBMS", "WithClock", "WithTimestamps", "WithMaxRollback", "WithRandom")
	if err != nil {
		return nil, nil, err
	}
	if o.version == nil {
		return nil, nil, errors.New("i3core: the sequential format needs WithVersion: the document does not give its number")
	}
	if o.timestamps != nil && c.Now != nil {
		return nil, nil, errors.New("i3core: WithClock does not apply to the sequential format with WithTimestamps")
	}
	m := &sequentialMaker{constant: Sequential{Version: *o.version, DBMS: o.dbms}, now: c.Now,
		timestamps: o.timestamps, maxRollback: microsecondsOf(c.MaxRollback), order: order.First()}
	if err := m.constant.validate(); err != nil {
		return nil, nil, err
	}
	m.stock.Start(c.Random)
	if err := m.draw(); err != nil {
		return nil, nil, err
	}
	return m, c, nil
}

// microsecondsOf returns a limit in timestamps.
func microsecondsOf(limit time.Duration) uint64 {
	if limit == math.MaxInt64 {
		return math.MaxUint64
	}
	return uint64(limit / time.Microsecond)
}

type sequentialMaker struct {
	constant    Sequential
	now         func() time.Time // nil: the system's clock
	timestamps  func() uint64    // nil: of now
	maxRollback uint64
	stock       stock.Stock
	order       *order.Order

	begun   bool   // there is a last timestamp
	last    uint64 // timestamp
	start   uint64 // of the counter
	counter numbers.Counter
	copied  bool // the process may be a copy, and the counter is still that of the original
}

// draw draws random1 and the counter.
func (m *sequentialMaker) draw() error {
	random1, counter, err := draw(&m.stock, 1<<12-1, counterStarts-1)
	if err != nil {
		return err
	}
	m.constant.Random1 = uint16(random1)
	m.start = counter
	m.counter = startAt(counter)
	return nil
}

// startAt returns a counter whose first number is n, or 1.
func startAt(n uint64) (c numbers.Counter) {
	c.Start(max(n, 1) - 1)
	return c
}

func (m *sequentialMaker) Renew() error {
	m.stock.Renew()
	if err := m.draw(); err != nil {
		return err
	}
	m.order, m.begun, m.copied = m.order.Next(0), false, false
	return nil
}

// look asks the clock, and deals with a copy of the process and with a clock that was set back.
func (m *sequentialMaker) look() (uint64, error) {
	t := m.watch()
	highest := m.order.Highest()
	now, err := m.timestamp(t)
	if err != nil {
		return 0, err
	}
	sql := m.constant.DBMS == DBMSSQLServer
	continues := m.order.Continues(now, highest, m.maxRollback)
	switch {
	case continues && !m.copied:
		return now, nil
	case sql && m.copied:
		m.counter.Jump()
	case !sql:
		if err := m.draw(); err != nil {
			return 0, err
		}
	}
	m.copied = false
	if continues && sql {
		return now, nil
	}
	if continues {
		now = max(now, highest)
	}
	m.order, m.begun = m.order.Next(now), false
	return now, nil
}

// watch returns the time of the clock, and notices a copy of the process.
func (m *sequentialMaker) watch() time.Time {
	now, copied := m.stock.Now()
	m.copied = m.copied || copied
	return now
}

func (m *sequentialMaker) Next(look bool) (uuid.UUID, bool, error) {
	now := m.order.Highest()
	if look {
		var err error
		if now, err = m.look(); err != nil {
			return uuid.Nil, false, err
		}
	}
	counter, err := m.next(&m.counter)
	if err == errCounter && m.constant.DBMS == DBMSBinary && (!m.begun || now > m.last) {
		m.counter = startAt(m.start)
		counter, err = m.next(&m.counter)
	}
	if err != nil {
		return uuid.Nil, false, err
	}
	if !m.begun || now > m.last {
		m.last, m.begun = now, true
	}
	return m.constant.at(m.last, counter), true, nil
}

var errCounter = fmt.Errorf("i3core: %w: the counter has come to its end", uuidgen.ErrExhausted)

// next returns the next number of a counter, which takes one step unless the process may be a copy.
func (m *sequentialMaker) next(c *numbers.Counter) (n uint64, err error) {
	var random uint64
	if c.Drawn() {
		if random, err = m.stock.Uint64(); err != nil {
			return 0, fmt.Errorf("i3core: random source: %w", err)
		}
	}
	n, ok := c.Next(counterEnd-1, random)
	if !ok {
		return 0, errCounter
	}
	return n, nil
}

// at returns the UUID with a timestamp and a number of a counter.
func (f Sequential) at(timestamp, counter uint64) uuid.UUID {
	f.Timestamp, f.CounterHi, f.CounterLo = timestamp, uint32(counter>>16), uint16(counter)
	return f.join()
}

func (m *sequentialMaker) Orders() uint64 { return m.order.Number() }

func (m *sequentialMaker) Ahead() time.Duration {
	if !m.begun {
		return 0
	}
	now, err := m.timestamp(m.watch())
	if err != nil {
		return math.MaxInt64
	}
	return microsecondsAhead(m.last, now)
}

// timestamp returns the timestamp at a clock that shows t, unless the Generator has one of its own.
func (m *sequentialMaker) timestamp(t time.Time) (uint64, error) {
	if m.now != nil {
		t = m.now()
	}
	if m.timestamps == nil {
		return microsecondsAt(t, formatSequential, 56)
	}
	timestamp := m.timestamps()
	if timestamp>>56 != 0 {
		return 0, fmt.Errorf("i3core: %w: %s format, timestamp %#x", uuidgen.ErrTimeRange, formatSequential, timestamp)
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
