package peabody01

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/uuidgen/internal/monotonic"
	"github.com/bsonids/bsonids/uuidgen/internal/wait"
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
// one reading of the clock; see [WithMaxAhead]. When the clock is set back further than
// [WithMaxRollback], the clock sequence is changed and the timestamps go on from the clock: the
// UUIDs differ from those before, but some sort before them.
//
// It implements sections 4.3, 4.4 and 4.5 of the draft, and RFC 4122, section 4.1.5. The draft's
// steps for versions 6 and 8 also count up when time has advanced, against the text of the
// sections; the text holds here.
type Generator struct {
	mu     sync.Mutex
	random io.Reader
	drawn  [8]byte // what was read, here so that it is not allocated for each UUID
	layout layout
	last   position
	begun  bool // there is a last one

	at         monotonic.Counter // of NewUUIDAt
	generation uint64            // of package fork

	machine    uint64 // at the top of the node
	randomBits int    // of the node below it
	maxAhead   time.Duration
	maxBack    time.Duration
	maxWait    time.Duration
}

// NewV6Generator returns a Generator of the draft's version 6. An invalid option is an error.
func NewV6Generator(opts ...Option) (*Generator, error) {
	c, err := newConfig("version 6", opts, "WithClock", "WithMaxAhead")
	if err != nil {
		return nil, err
	}
	return newGenerator(c, v6NodeBits, &v6Layout{now: c.now})
}

// NewV7Generator returns a Generator of the draft's version 7 with the precision p. A value of p
// that is not one of the constants, and an invalid option, is an error.
//
// These are not the UUIDs of version 7 of RFC 9562, which package uuidgen makes, and nothing in a
// value tells the two apart: see the package comment.
func NewV7Generator(p Precision, opts ...Option) (*Generator, error) {
	c, err := newConfig("version 7", opts, "WithClock", "WithEncoding")
	if err != nil {
		return nil, err
	}
	if err := checkV7(p, c.encoding); err != nil {
		return nil, err
	}
	return newGenerator(c, precisions[p].node, &v7Layout{now: c.now, precision: p, encoding: c.encoding})
}

// NewV8Generator returns a Generator of the draft's version 8 with the timestamps of clock. An
// invalid Clock, and an invalid option, is an error.
func NewV8Generator(clock Clock, opts ...Option) (*Generator, error) {
	format, apply := "version 8", []string{"WithClock"}
	if clock.hasNow() {
		format, apply = "version 8 with a Clock that has its own function", nil
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
	return newGenerator(c, w.node, &v8Layout{now: c.now, clock: clock, widths: w})
}

// A node has at least minRandomBits random ones. A source that is random does not give maxDraws of
// them in a row that are all zero.
const (
	minRandomBits = 16
	maxDraws      = 8
)

// newGenerator makes a Generator whose layout has a node of that width.
func newGenerator(c *config, node int, l layout) (*Generator, error) {
	g := &Generator{
		random:     c.random,
		layout:     l,
		randomBits: node,
		maxAhead:   c.maxAhead,
		maxBack:    c.maxRollback,
		maxWait:    c.maxWait,
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
		g.machine = c.machine << left
		g.randomBits = left
	}
	return g, nil
}

// NewUUID returns the next UUID. The errors are [ErrClockRollback], [ErrExhausted], [ErrTimeRange]
// and [ErrRandom]. After each of them the Generator can be asked again, and the order is kept.
func (g *Generator) NewUUID() (uuid.UUID, error) {
	u, ok, err := g.try()
	if ok || err != nil {
		return u, err
	}
	return wait.For(g.maxWait, ErrExhausted, g.try)
}

// Fill sets every element of us to a new UUID, increasing by index as those of [Generator.NewUUID]
// do. The errors are the same; all of us is then set to the nil UUID.
func (g *Generator) Fill(us []uuid.UUID) error {
	for i := range us {
		var err error
		if us[i], err = g.NewUUID(); err != nil {
			clear(us)
			return err
		}
	}
	return nil
}

// UUIDs returns an iterator over n new UUIDs; with n below 1 there are none. After an error, which
// is that of [Generator.NewUUID] and comes with the nil UUID, the iteration ends.
func (g *Generator) UUIDs(n int) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for range n {
			if u, err := g.NewUUID(); !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// NewID is [Generator.NewUUID] for inserts: the id is a [uuid.UUID], which the client's registry
// stores.
func (g *Generator) NewID() (any, error) {
	u, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Renew makes the Generator begin anew, as if it had just been made: the next timestamp is that of
// the clock, with sequence zero, and version 6 changes its clock sequence. UUIDs made before may
// sort after those made later, if the clock was set back. Call it when the clock was once far ahead
// by mistake. The only error is that of the zero Generator.
//
// A copy of the process, by a fork or from a snapshot, makes other UUIDs than the process without a
// call of Renew, since every node is drawn for its UUID. The exception is [Generator.NewUUIDAt] in
// a copy from a snapshot.
func (g *Generator) Renew() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.layout == nil {
		return errNotMade
	}
	g.renew()
	return nil
}

func (g *Generator) renew() {
	g.begun, g.at = false, monotonic.Counter{}
	if l, ok := g.layout.(*v6Layout); ok {
		l.change, l.reading = true, stamp{}
	}
}

// Ahead returns how far the last timestamp is ahead of the clock; zero if it is not, and before the
// first UUID. If it cannot be measured, because the clock is out of the version's range or measures
// no time, the result is the longest Duration.
func (g *Generator) Ahead() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.begun {
		return 0
	}
	now, err := g.layout.read()
	switch {
	case err != nil:
		return math.MaxInt64
	case !g.last.after(now):
		return 0
	}
	return g.layout.behind(now, g.last.stamp)
}

var errNotMade = errors.New("peabody01: a Generator is made by one of the New…Generator functions")

// try asks the clock once. It reports false if the sequence is used up.
func (g *Generator) try() (uuid.UUID, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.layout == nil {
		return uuid.Nil, false, errNotMade
	}
	g.check()
	now, err := g.layout.read()
	if err != nil {
		return uuid.Nil, false, err
	}
	p := position{stamp: now}
	if g.begun && !now.after(g.last.stamp) {
		next, ok, err := g.layout.next(g, now)
		if !ok || err != nil {
			return uuid.Nil, false, err
		}
		p = next
	}
	node, err := g.node()
	if err != nil {
		return uuid.Nil, false, err
	}
	u, err := g.layout.join(g, p, node)
	if err != nil {
		return uuid.Nil, false, err
	}
	g.last, g.begun = p, true
	return u, true, nil
}

// check begins anew in a forked process.
func (g *Generator) check() {
	if generation := fork.Check(); generation != g.generation {
		if g.generation != 0 {
			g.renew()
		}
		g.generation = generation
	}
}

// NewUUIDAt returns a UUID for the instant t, for documents that are older than their ids and for
// tests. It does not read the clock or change what [Generator.NewUUID] returns.
//
// The UUIDs that one Generator makes for given instants differ, and they are in the order of the
// timestamps; those with equal timestamps are in the order of the calls. This holds for calls with
// instants in any order. The sequence is zero, since it is too short for many documents with one
// date: the node grows by a random amount with each call.
//
// An instant that the version cannot hold is [ErrTimeRange]; version 8 with a [Clock] without a
// Tick is an error. Other errors are [ErrRandom], and [ErrExhausted] after 2^33 calls, or fewer if
// [WithMachineID] leaves fewer than 34 bits; [Generator.Renew] begins anew.
func (g *Generator) NewUUIDAt(t time.Time) (uuid.UUID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.layout == nil {
		return uuid.Nil, errNotMade
	}
	g.check()
	s, err := g.layout.at(t)
	if err != nil {
		return uuid.Nil, err
	}
	random, err := g.draw()
	if err != nil {
		return uuid.Nil, err
	}
	n, ok := g.at.Next(g.randomBits, random)
	if !ok {
		return uuid.Nil, fmt.Errorf("%w: no more nodes for given instants", ErrExhausted)
	}
	return g.layout.join(g, position{stamp: s}, g.machine|n)
}

// node returns a new node, which is not zero.
func (g *Generator) node() (uint64, error) {
	for range maxDraws {
		r, err := g.draw()
		if err != nil {
			return 0, err
		}
		if node := g.machine | r&(1<<g.randomBits-1); node != 0 {
			return node, nil
		}
	}
	return 0, fmt.Errorf("%w: it gives nothing but zeros", ErrRandom)
}

func (g *Generator) draw() (uint64, error) {
	if _, err := io.ReadFull(g.random, g.drawn[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRandom, err)
	}
	return binary.BigEndian.Uint64(g.drawn[:]), nil
}
