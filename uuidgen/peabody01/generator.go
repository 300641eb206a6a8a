package peabody01

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/order"
	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/stock"
	"github.com/bsonids/bsonids/uuidgen"
)

const version6 = "version 6"

// NewV6Generator returns a Generator of the draft's version 6. The options are [uuidgen.WithClock],
// [uuidgen.WithRandom], [uuidgen.WithMaxAhead], which is one second by default,
// [uuidgen.WithMaxRollback], [uuidgen.WithMaxWait] and [WithMachineID]. An invalid option is an error.
//
// The clock sequence is random and stays the same in an order. If the clock has not advanced since
// the last UUID, the next one has the next timestamp, as RFC 4122, section 4.2.1.2 counts within
// one reading of the clock. When a new order begins, or the process may be a copy, the clock sequence
// is changed, so that the UUIDs differ from those before.
//
// It implements section 4.3 of the draft, and RFC 4122, section 4.1.5.
func NewV6Generator(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	c, err := newConfig(version6, opts, "WithClock", "WithMaxRollback", "WithMaxAhead")
	if err != nil {
		return nil, err
	}
	return newGenerator(c, v6NodeBits, &v6Layout{})
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
	return newGenerator(c, precisions[p].node, &v7Layout{precision: p, encoding: e})
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
	return newGenerator(c, w.node, &v8Layout{clock: clock, widths: w})
}

// maker makes the UUIDs of a Generator.
type maker struct {
	now      func() time.Time // nil: the system's clock
	stock    stock.Stock
	order    *order.Order
	layout   layout
	last     position
	begun    bool            // there is a last one
	instants numbers.Counter // of NewUUIDAt

	machine    uint64 // at the top of the node
	randomBits int    // of the node below it
	maxAhead   time.Duration
	maxBack    time.Duration
}

// A node has at least minRandomBits random ones. A source that is random does not give maxDraws of
// them in a row that are all zero.
const (
	minRandomBits = 16
	maxDraws      = 8
)

// newGenerator makes a Generator whose layout has a node of that width.
func newGenerator(c *idoption.Config, node int, l layout) (*uuidgen.Generator, error) {
	m := &maker{
		now:        c.Now,
		order:      order.First(),
		layout:     l,
		randomBits: node,
		maxAhead:   c.MaxAhead,
		maxBack:    c.MaxRollback,
	}
	if o := c.Own.(*options); o.machineSet {
		left := node - o.machineBits
		if o.machineBits < 1 || left < minRandomBits {
			return nil, fmt.Errorf("peabody01: WithMachineID: %d bits, want 1 to %d: a node of %d bits has at least %d random ones",
				o.machineBits, node-minRandomBits, node, minRandomBits)
		}
		if o.machine>>o.machineBits != 0 {
			return nil, fmt.Errorf("peabody01: WithMachineID: the id %#x is wider than %d bits", o.machine, o.machineBits)
		}
		m.machine = o.machine << left
		m.randomBits = left
	}
	m.stock.Start(c.Random)
	id := func(u uuid.UUID) any { return u }
	return serial.NewGenerator(serial.New("peabody01", m, c.MaxWait, id)).(*uuidgen.Generator), nil
}

func (m *maker) Renew() error {
	m.begun, m.instants, m.order = false, numbers.Counter{}, m.order.Next(0)
	m.stock.Renew()
	m.changeSequence()
	return nil
}

// changeSequence makes version 6 draw another clock sequence.
func (m *maker) changeSequence() {
	if l, ok := m.layout.(*v6Layout); ok {
		l.change = true
	}
}

func (m *maker) Orders() uint64 { return m.order.Number() }

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
	now, copied := m.stock.Now()
	if copied {
		m.instants.Jump()
		m.changeSequence()
	}
	if m.now != nil {
		return m.now()
	}
	return now
}

func (m *maker) Next(look bool) (uuid.UUID, bool, error) {
	var p position
	if l, ok := m.layout.(*v6Layout); ok && !look {
		p.stamp = l.reading(m)
	} else {
		var err error
		if p.stamp, err = m.layout.read(m.look()); err != nil {
			return uuid.Nil, false, err
		}
		if ok && !l.continues(m, p.stamp) {
			// RFC 4122, section 4.1.5: UUIDs may have been made with these timestamps.
			m.begun, m.order = false, m.order.Next(p.lo)
			m.changeSequence()
		}
	}
	if m.begun && !p.after(m.last.stamp) {
		next, ok, err := m.layout.next(m, p.stamp)
		if !ok || err != nil {
			return uuid.Nil, false, err
		}
		p = next
	}
	node, err := m.node()
	if err != nil {
		return uuid.Nil, false, err
	}
	u, err := m.layout.join(m, p, node)
	if err != nil {
		return uuid.Nil, false, err
	}
	m.last, m.begun = p, true
	return u, true, nil
}

func (m *maker) At(t time.Time) (uuid.UUID, error) {
	s, err := m.layout.read(t)
	if l, ok := m.layout.(*v8Layout); ok {
		s, err = l.at(t)
	}
	if err != nil {
		return uuid.Nil, err
	}
	m.look()
	random, err := m.draw()
	if err != nil {
		return uuid.Nil, err
	}
	n, ok := m.instants.Next(1<<m.randomBits-1, random)
	if !ok {
		return uuid.Nil, fmt.Errorf("peabody01: %w for given instants", uuidgen.ErrExhausted)
	}
	return m.layout.join(m, position{stamp: s}, m.machine|n)
}

// node returns a new node, which is not zero.
func (m *maker) node() (uint64, error) {
	for range maxDraws {
		r, err := m.stock.Uint64()
		if err != nil {
			return 0, randomError(err)
		}
		if node := m.machine | r&(1<<m.randomBits-1); node != 0 {
			return node, nil
		}
	}
	return 0, errors.New("peabody01: the random source gives nothing but zeros")
}

func (m *maker) draw() (uint64, error) {
	n, err := m.stock.Uint64()
	if err != nil {
		return 0, randomError(err)
	}
	return n, nil
}

func randomError(err error) error { return fmt.Errorf("peabody01: random source: %w", err) }
