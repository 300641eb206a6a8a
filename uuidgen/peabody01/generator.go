package peabody01

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/order"
	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/stock"
)

// A Generator makes UUIDs of one version. It is safe for concurrent use and must not be copied. The
// zero Generator only returns errors. It is a source of ids for inserts, since it has NewID.
//
// The UUIDs of one Generator are in strictly increasing order, with two exceptions: a clock that is
// set back in version 6, see below, and [Generator.Renew]. The node is random in every UUID; see
// [WithMachineID] for its top bits.
//
// In versions 7 and 8 the sequence is zero at a new timestamp, counts up while the timestamp is the
// same, and does not roll over. When it is used up, a call waits for a new timestamp; see
// [WithMaxWait]. When the clock is set back, the Generator keeps the last timestamp and goes on
// counting; see [WithMaxRollback]. At one timestamp there are 2^24 UUIDs of version 7 with seconds,
// 4096 with milliseconds, 16384 with microseconds and 256 with nanoseconds; in version 8 4096 or
// 256, or as many as the [Clock] says.
//
// In version 6 the clock sequence is random and stays the same. If the clock has not advanced since
// the last UUID, the next one has the next timestamp, as RFC 4122, section 4.2.1.2 counts within
// one reading of the clock; see [WithMaxAhead]. When the clock is further behind its highest reading
// than [WithMaxRollback], a new order begins: the clock sequence is changed and the timestamps go on
// from the clock. The UUIDs differ from those before, but some sort before them. A Fill that this
// interrupts starts again, and [Generator.Orders] tells.
//
// # Copies of a process
//
// Node and numbers come from a stock of random bytes, 1024 at a time. It is drawn anew in a process
// that may be a copy, as described in the section Copies of a process of package uuidgen; the clocks
// are compared once a millisecond, before the UUID. Call [Generator.Renew] in a copy that no clock
// gives away.
//
// It implements sections 4.3, 4.4 and 4.5 of the draft, and RFC 4122, section 4.1.5. The draft's
// steps for versions 6 and 8 also count up when time has advanced, against the text of the
// sections; the text holds here.
type Generator struct{ machine serial.Machine[pkg] }

type pkg struct{}

func (pkg) Package() string { return "peabody01" }

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

// NewV6Generator returns a Generator of the draft's version 6. An invalid option is an error.
func NewV6Generator(opts ...Option) (*Generator, error) {
	c, err := newConfig("version 6", defaultRollbackV6, opts, "WithClock", "WithMaxAhead")
	if err != nil {
		return nil, err
	}
	return newGenerator(c, v6NodeBits, &v6Layout{})
}

// NewV7Generator returns a Generator of the draft's version 7 with the precision p. A value of p
// that is not one of the constants, and an invalid option, is an error.
//
// These are not the UUIDs of version 7 of RFC 9562, which package uuidgen makes, and nothing in a
// value tells the two apart: see the package comment.
func NewV7Generator(p Precision, opts ...Option) (*Generator, error) {
	c, err := newConfig("version 7", defaultRollback, opts, "WithClock", "WithEncoding")
	if err != nil {
		return nil, err
	}
	if err := checkV7(p, c.encoding); err != nil {
		return nil, err
	}
	return newGenerator(c, precisions[p].node, &v7Layout{precision: p, encoding: c.encoding})
}

// NewV8Generator returns a Generator of the draft's version 8 with the timestamps of clock. An
// invalid Clock, and an invalid option, is an error.
func NewV8Generator(clock Clock, opts ...Option) (*Generator, error) {
	format, apply := "version 8", []string{"WithClock"}
	if clock.hasNow() {
		format, apply = "version 8 with a Clock that has its own function", nil
	}
	c, err := newConfig(format, defaultRollback, opts, apply...)
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

// A node has at least minRandomBits random ones. A source that is random does not give maxDraws of
// them in a row that are all zero.
const (
	minRandomBits = 16
	maxDraws      = 8
)

// newGenerator makes a Generator whose layout has a node of that width.
func newGenerator(c *config, node int, l layout) (*Generator, error) {
	m := &maker{
		now:        c.now,
		order:      order.First(),
		layout:     l,
		randomBits: node,
		maxAhead:   c.maxAhead,
		maxBack:    c.maxRollback,
	}
	if c.machineSet {
		left := node - c.machineBits
		if c.machineBits < 1 || left < minRandomBits {
			return nil, fmt.Errorf("peabody01: WithMachineID: %d bits, want 1 to %d: a node of %d bits has at least %d random ones",
				c.machineBits, node-minRandomBits, node, minRandomBits)
		}
		if c.machine>>c.machineBits != 0 {
			return nil, fmt.Errorf("peabody01: WithMachineID: the id %#x is wider than %d bits", c.machine, c.machineBits)
		}
		m.machine = c.machine << left
		m.randomBits = left
	}
	m.stock.Start(c.random)
	g := new(Generator)
	g.machine.Init(m, c.maxWait)
	return g, nil
}

// NewUUID returns the next UUID. The errors are [ErrClockRollback], [ErrWait], [ErrTimeRange] and
// that of the random source. After each of them the Generator can be asked again, and the order is
// kept.
func (g *Generator) NewUUID() (uuid.UUID, error) { return g.machine.Next() }

// Fill sets every element of ids to a new UUID, increasing by index as those of [Generator.NewUUID]
// do, and in one order. The errors are the same; all of ids is then set to the nil UUID.
func (g *Generator) Fill(ids []uuid.UUID) error { return g.machine.Fill(ids) }

// UUIDs returns an iterator over n new UUIDs; with n below 1 there are none. After an error, which
// is that of [Generator.NewUUID] and comes with the nil UUID, the iteration ends.
func (g *Generator) UUIDs(n int) iter.Seq2[uuid.UUID, error] { return g.machine.UUIDs(n) }

// NewID is [Generator.NewUUID] for inserts: the id is a [uuid.UUID], which the client's registry
// stores.
func (g *Generator) NewID() (any, error) {
	u, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Renew makes the Generator begin a new order, as if it had just been made: the next timestamp is
// that of the clock, with sequence zero, version 6 changes its clock sequence, and the numbers of
// [Generator.NewUUIDAt] begin anew. UUIDs made before may sort after those made later, if the clock
// was set back. The only error is that of the zero Generator.
//
// Call it in a process that was restored from a snapshot or a checkpoint, before the next UUID.
func (g *Generator) Renew() error { return g.machine.Renew() }

// Ahead returns how far the last timestamp is ahead of the clock; zero if it is not, and before the
// first UUID. If it cannot be measured, because the clock is out of the version's range or measures
// no time, the result is the longest Duration.
func (g *Generator) Ahead() time.Duration { return g.machine.Ahead() }

// Orders returns how many orders of UUIDs the Generator has begun: 1 until the first new one. UUIDs
// that were drawn while it was the same are in one order. It is 0 for the zero Generator.
func (g *Generator) Orders() uint64 { return g.machine.Orders() }

// NewUUIDAt returns a UUID for the instant t, for documents that are older than their ids and for
// tests. It does not read the clock or change what [Generator.NewUUID] returns.
//
// The UUIDs that one Generator makes for given instants differ, and they are in the order of the
// timestamps; those with equal timestamps are in the order of the calls. This holds for calls with
// instants in any order. The sequence is zero, since it is too short for many documents with one
// date: the node grows by a random amount of at most 2^20 with each call, and once by at most 1/1024
// of the nodes left in a process that may be a copy.
//
// An instant that the version cannot hold is [ErrTimeRange]; version 8 with a [Clock] without a
// Tick is an error. The error of the random source is returned, and [ErrExhausted] when no node is
// left: after 2^32 calls, or, if [WithMachineID] leaves n bits below 34, after 2^(n-1).
// [Generator.Renew] begins anew.
func (g *Generator) NewUUIDAt(t time.Time) (uuid.UUID, error) { return g.machine.At(t) }

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
		return uuid.Nil, fmt.Errorf("peabody01: %w for given instants", ErrExhausted)
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
