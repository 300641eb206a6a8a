package peabody01

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/stock"
	"github.com/bsonids/bsonids/uuidgen"
)

const version6 = "version 6"

// NewV6Generator returns a Generator of the draft's version 6. The options are [uuidgen.WithClock],
// [uuidgen.WithRandom], [uuidgen.WithMaxAhead], which is one second by default,
// [uuidgen.WithMaxRollback], [uuidgen.WithMaxWait] and [WithMachineID]. An invalid option is an error.
//
// It is the version 6 of [uuidgen.NewV6Generator] with two differences: the clock sequence, which is
// random, stays the same in an order, and the node is random in all its bits but those of a machine id.
// When a new order begins, or the process may be a copy, the clock sequence is changed, so that the
// UUIDs differ from those before. If the clock has not advanced since the last UUID, the next one has
// the next timestamp, as RFC 4122, section 4.2.1.2 counts within one reading of the clock.
//
// It implements section 4.3 of the draft, and RFC 4122, section 4.1.5.
func NewV6Generator(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	c, err := newConfig(version6, opts, "WithClock", "WithMaxRollback", "WithMaxAhead")
	if err != nil {
		return nil, err
	}
	machine, random, err := c.Own.(*options).node(v6NodeBits)
	if err != nil {
		return nil, err
	}
	c.V6 = &idoption.V6{Node: machine, RandomBits: random}
	return idoption.NewGenerator(c).(*uuidgen.Generator), nil
}

// NewV7Generator returns a Generator of the draft's version 7 with the precision p. The options are
// [uuidgen.WithClock], [uuidgen.WithRandom], [uuidgen.WithMaxRollback], [uuidgen.WithMaxWait],
// [WithMachineID] and [WithEncoding]. A value of p that is not one of the constants, and an invalid
// option, is an error.
//
// The sequence is zero at a new timestamp, counts up while the timestamp is the same, and does not
// roll over: there are 2^24 UUIDs in a second with [Second], 4096 in a millisecond, 16384 in a
// microsecond and 256 in a nanosecond. When it is used up, a call waits for a new timestamp, and
// returns [uuidgen.ErrWait] after the wait that WithMaxWait allows, two seconds by default.
//
// When the clock is set back, the Generator keeps the last timestamp and goes on counting. Further
// back than WithMaxRollback allows, one second by default, a call returns [ErrClockRollback]. Only
// [uuidgen.Generator.Renew] begins a new order, with sequence zero at the clock's time.
//
// These are not the UUIDs of version 7 of RFC 9562, which package uuidgen makes, and nothing in a
// value tells the two apart: see the package comment.
//
// It implements section 4.4 of the draft.
func NewV7Generator(p Precision, opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	c, err := newConfig("version 7", opts, "WithClock", "WithMaxRollback", "WithEncoding")
	if err != nil {
		return nil, err
	}
	e := c.Own.(*options).encoding
	if err := checkV7(p, e); err != nil {
		return nil, err
	}
	return newGenerator(c, precisions[p].sequence, precisions[p].node, &v7Layout{precision: p, encoding: e})
}

// NewV8Generator returns a Generator of the draft's version 8 with the timestamps of clock. Options,
// sequence and clocks that are set back are as in [NewV7Generator], without [WithEncoding], without
// [uuidgen.WithClock] if the Clock has its own function, and without [uuidgen.WithMaxRollback] if it has no
// Tick: every step back is [ErrClockRollback] then. At one timestamp there are 4096 or 256 UUIDs,
// or as many as the [Clock] says. One whose ticks are longer than a second needs a longer
// [uuidgen.WithMaxWait]. An invalid Clock, and an invalid option, is an error.
//
// It implements section 4.5 of the draft.
func NewV8Generator(clock Clock, opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	format, apply := "version 8", []string{"WithClock", "WithMaxRollback"}
	switch {
	case clock.hasNow() && clock.Tick == 0:
		format, apply = "version 8 with a Clock that has its own function and no Tick", nil
	case clock.hasNow():
		format, apply = "version 8 with a Clock that has its own function", []string{"WithMaxRollback"}
	}
	c, err := newConfig(format, opts, apply...)
	if err != nil {
		return nil, err
	}
	if err := clock.check(); err != nil {
		return nil, err
	}
	w, err := widthsV8(clock.Bits, clock.SequenceBits)
	if err != nil {
		return nil, err
	}
	return newGenerator(c, w.sequence, w.node, &v8Layout{clock: clock, widths: w})
}

// maker makes the UUIDs of a Generator.
type maker struct {
	now    func() time.Time // nil: the system's clock
	stock  stock.Stock
	layout layout
	last   position
	begun  bool // there is a last one
	orders uint64

	sequenceBits int
	machine      uint64 // at the top of the node
	randomBits   int    // of the node below it
	maxBack      time.Duration
}

// A node has at least minRandomBits random ones. A source that is random does not give maxDraws of
// them in a row that are all zero.
const (
	minRandomBits = 16
	maxDraws      = 8
)

// newGenerator makes a Generator whose layout has a sequence and a node of these widths.
func newGenerator(c *idoption.Config, sequence, node int, l layout) (*uuidgen.Generator, error) {
	machine, random, err := c.Own.(*options).node(node)
	if err != nil {
		return nil, err
	}
	m := &maker{now: c.Now, orders: 1, layout: l, sequenceBits: sequence, machine: machine, randomBits: random,
		maxBack: c.MaxRollback}
	m.stock.Start(c.Random)
	id := func(u uuid.UUID) any { return u }
	c.Machine = serial.New("peabody01", m, c.MaxWait, id)
	return idoption.NewGenerator(c).(*uuidgen.Generator), nil
}

func (m *maker) Renew() error {
	m.begun = false
	m.orders++
	m.stock.Renew()
	return nil
}

func (m *maker) Orders() uint64 { return m.orders }

func (m *maker) Ahead() time.Duration {
	if !m.begun {
		return 0
	}
	now, err := m.layout.read(m.look())
	switch {
	case err != nil:
		return math.MaxInt64
	case !m.last.after(now):
		return 0
	}
	return m.layout.behind(now, m.last.stamp)
}

// look asks the clock, and deals with a copy of the process.
func (m *maker) look() time.Time {
	now, _ := m.stock.Now()
	if m.now != nil {
		return m.now()
	}
	return now
}

func (m *maker) Next(bool) (uuid.UUID, bool, error) {
	now, err := m.layout.read(m.look())
	if err != nil {
		return uuid.Nil, false, err
	}
	p := position{stamp: now}
	if m.begun && !now.after(m.last.stamp) {
		if now != m.last.stamp {
			if d := m.layout.behind(now, m.last.stamp); d > m.maxBack {
				return uuid.Nil, false, fmt.Errorf("%w by %v, further than %v", ErrClockRollback, d, m.maxBack)
			}
		}
		p = m.last
		if p.seq++; p.seq>>m.sequenceBits != 0 {
			return uuid.Nil, false, nil
		}
	}
	node, err := m.node()
	if err != nil {
		return uuid.Nil, false, err
	}
	m.last, m.begun = p, true
	return m.layout.join(p, node), true, nil
}

// node returns a new node, which is not zero.
func (m *maker) node() (uint64, error) {
	for range maxDraws {
		r, err := m.stock.Uint64()
		if err != nil {
			return 0, fmt.Errorf("peabody01: random source: %w", err)
		}
		if node := m.machine | r&(1<<m.randomBits-1); node != 0 {
			return node, nil
		}
	}
	return 0, errors.New("peabody01: the random source gives nothing but zeros")
}
