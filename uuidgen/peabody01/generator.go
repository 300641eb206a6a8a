package peabody01

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen/internal/wait"
)

// Generator makes UUIDs of one version. Those of one generator are in strictly increasing order, octets and text, and
// none comes twice. It is safe for concurrent use. Make one with [NewV6], [NewV7] or [NewV8]; it is an id source
// for inserts, since it has NewID. The zero value only returns errors.
//
// The node is random in every UUID; see [WithMachineID] for its top bits. When the clock steps back, the generator
// keeps the last timestamp and goes on counting, up to the limit of [WithMaxRollback].
//
// In version 7 and 8 the sequence is zero at a new timestamp, counts up while the timestamp stays the same and never
// rolls over. When it is used up, the generator asks the clock again until a new timestamp comes or [WithMaxWait] is
// over. That is after 4096 UUIDs in a millisecond, 16384 in a microsecond or 256 in a nanosecond of version 7; after
// 4096 or 256 in a tick of version 8.
//
// In version 6 the clock sequence is that of RFC 4122, section 4.1.5: random when the generator is made, and then
// constant, for no timestamp comes twice. Where the clock has not moved on since the last UUID, the timestamp is the
// next higher one, as the RFC's section 4.2.1.2 counts within a reading of the clock; it runs ahead of the clock by no
// more than the limit of [WithMaxRollback], which holds ten million UUIDs a second, and then waits as above.
//
// It implements sections 4.3, 4.4 and 4.5 of the draft. Its steps for version 6 and 8 count up even when time has
// advanced, against the sections' own rule for the sequence; the rule is what holds here.
type Generator struct {
	mu     sync.Mutex
	random io.Reader
	drawn  [8]byte // what was read, here so that it is not allocated anew
	layout layout
	last   position
	begun  bool // last is there

	machine     uint64 // at the top of the node
	randomMask  uint64 // the node's bits below it
	maxRollback time.Duration
	maxWait     time.Duration
}

// stamp is a timestamp as a UUID holds it, in a form that can be compared: in version 7 hi is the seconds and lo the
// units of the precision, in the others lo is all of it.
type stamp struct{ hi, lo uint64 }

func (s stamp) after(t stamp) bool {
	return s.hi > t.hi || s.hi == t.hi && s.lo > t.lo
}

// position is what puts the UUIDs of a generator in order.
type position struct {
	stamp
	seq uint64
}

// layout is what differs between the versions.
type layout interface {
	read() (stamp, error)                 // asks the clock
	behind(now, last stamp) time.Duration // how far now stands before last
	next(last position) (position, bool)  // what follows while the clock stands still, if anything does
	join(p position, node uint64) uuid.UUID
}

const (
	defaultRollback = time.Second
	defaultWait     = 2 * time.Second
)

type config struct {
	now         func() time.Time
	clockSet    bool
	random      io.Reader
	encoding    *Encoding
	machine     uint64
	machineBits int
	machineSet  bool
	maxRollback time.Duration
	maxWait     time.Duration
}

// Option sets up a generator; see the With functions.
type Option func(*config)

// WithClock makes the generator tell the time by now, in place of [time.Now]; nil is an error of the generator's
// constructor. The generator calls it from one goroutine at a time. It is not for version 8 with a [Clock] that has a
// Now of its own, where it is an error.
func WithClock(now func() time.Time) Option {
	return func(c *config) { c.now, c.clockSet = now, true }
}

// WithRandom makes the generator draw from r, in place of [crypto/rand.Reader]: 8 octets for every UUID, and 8 when
// a generator of version 6 is made. UUIDs that can be guessed, or that come twice, are what a weaker source gives. The generator
// reads from one goroutine at a time; nil is an error of the generator's constructor.
func WithRandom(r io.Reader) Option {
	return func(c *config) { c.random = r }
}

// WithMachineID puts id into the top bits of the node, bits wide, right after the sequence, so that the makers of a
// cluster stay apart and a value shows its maker; see MachineID of [V6], [V7] and [V8]. An id that does not fit, and a
// width below 1 or one that leaves fewer than 16 random bits, is an error of the generator's constructor. The draft
// recommends 48 random bits and forbids a MAC address.
//
// It implements section 7 of the draft.
func WithMachineID(id uint64, bits int) Option {
	return func(c *config) { c.machine, c.machineBits, c.machineSet = id, bits, true }
}

// WithEncoding sets how version 7 writes parts of a second, [RoundUp] by default; it is an error for other versions.
func WithEncoding(e Encoding) Option {
	return func(c *config) { c.encoding = &e }
}

// WithMaxRollback sets how far the clock may stand behind the last timestamp before a generator returns
// [ErrClockRollback], one second by default. Zero allows no step back; a negative limit is an error of the generator's
// constructor.
func WithMaxRollback(d time.Duration) Option {
	return func(c *config) { c.maxRollback = d }
}

// WithMaxWait sets how long a generator whose sequence is used up waits for a new timestamp before it returns
// [ErrExhausted], two seconds by default. Zero waits not at all; a negative limit is an error of the generator's
// constructor. The limit is for each call and in real time, whatever clock the generator has; a version 8 whose ticks
// are longer than a second needs a longer one.
func WithMaxWait(d time.Duration) Option {
	return func(c *config) { c.maxWait = d }
}

func newConfig(opts []Option) (*config, error) {
	c := &config{now: time.Now, random: rand.Reader, maxRollback: defaultRollback, maxWait: defaultWait}
	for _, opt := range opts {
		opt(c)
	}
	switch {
	case c.now == nil:
		return nil, errors.New("peabody01: the clock is nil")
	case c.random == nil:
		return nil, errors.New("peabody01: the random source is nil")
	case c.maxRollback < 0:
		return nil, fmt.Errorf("peabody01: a rollback limit of %v is negative", c.maxRollback)
	case c.maxWait < 0:
		return nil, fmt.Errorf("peabody01: a wait of %v is negative", c.maxWait)
	}
	return c, nil
}

// NewV6 returns a generator of the draft's version 6. A random source that fails is [ErrRandom]; an option that is not
// for version 6 or has a wrong value is an error.
func NewV6(opts ...Option) (*Generator, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if c.encoding != nil {
		return nil, errors.New("peabody01: WithEncoding is for version 7, not 6")
	}
	start, err := draw(c.random, new([8]byte))
	if err != nil {
		return nil, err
	}
	return newGenerator(c, v6NodeBits, &v6Layout{now: c.now, clockSequence: uint16(start & (1<<v6SequenceBits - 1))})
}

// NewV7 returns a generator of the draft's version 7 with that precision. A precision or encoding that is none of the
// constants, and an option with a wrong value, is an error.
//
// These are not the UUIDs of RFC 9562's version 7, which package uuidgen makes, and nothing in a value tells the two
// apart: see the package comment.
func NewV7(p Precision, opts ...Option) (*Generator, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	encoding := RoundUp
	if c.encoding != nil {
		encoding = *c.encoding
	}
	if err := checkV7(p, encoding); err != nil {
		return nil, err
	}
	return newGenerator(c, precisions[p].node, &v7Layout{now: c.now, precision: p, encoding: encoding})
}

// NewV8 returns a generator of the draft's version 8 with the timestamps of clock. A clock that lacks what [Clock]
// demands, and an option that is not for version 8 or has a wrong value, is an error.
func NewV8(clock Clock, opts ...Option) (*Generator, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	switch {
	case c.encoding != nil:
		return nil, errors.New("peabody01: WithEncoding is for version 7, not 8")
	case c.clockSet && clock.Now != nil:
		return nil, errors.New("peabody01: WithClock is of no use beside a Clock that has a Now")
	}
	if err := clock.check(); err != nil {
		return nil, err
	}
	_, node, _ := v8Widths(clock.Bits)
	return newGenerator(c, node, &v8Layout{now: c.now, clock: clock})
}

// newGenerator makes a generator whose layout has a node of that width.
func newGenerator(c *config, node int, l layout) (*Generator, error) {
	g := &Generator{
		random:      c.random,
		layout:      l,
		randomMask:  1<<node - 1,
		maxRollback: c.maxRollback,
		maxWait:     c.maxWait,
	}
	if c.machineSet {
		left := node - c.machineBits
		if c.machineBits < 1 || left < minRandomBits {
			return nil, fmt.Errorf("peabody01: a machine id of %d bits: want 1 to %d in a node of %d, for %d are to be random",
				c.machineBits, node-minRandomBits, node, minRandomBits)
		}
		if c.machine>>c.machineBits != 0 {
			return nil, fmt.Errorf("peabody01: the machine id %#x is wider than %d bits", c.machine, c.machineBits)
		}
		g.machine = c.machine << left
		g.randomMask = 1<<left - 1
	}
	return g, nil
}

// A node has at least minRandomBits random ones; with them, as many draws in a row that are all zero do not happen to
// a source that is random.
const (
	minRandomBits = 16
	maxDraws      = 8
)

// NewUUID returns the next UUID. The errors are [ErrClockRollback], [ErrExhausted], [ErrTimeRange] and [ErrRandom];
// after each of them the generator can be asked again, and what it made before stays below what it makes then.
func (g *Generator) NewUUID() (uuid.UUID, error) {
	return wait.For(g.maxWait, ErrExhausted, g.try)
}

// NewID is [Generator.NewUUID] for inserts: the id is a [uuid.UUID], which the client's registry stores.
func (g *Generator) NewID() (any, error) {
	u, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	return u, nil
}

// try asks the clock once. It reports false if the sequence is used up.
func (g *Generator) try() (uuid.UUID, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.layout == nil {
		return uuid.Nil, false, errors.New("peabody01: a Generator is made by NewV6, NewV7 or NewV8")
	}
	now, err := g.layout.read()
	if err != nil {
		return uuid.Nil, false, err
	}
	p := position{stamp: now}
	if g.begun && !now.after(g.last.stamp) {
		// The longest Duration stands for all that is longer, and for what cannot be measured.
		if d := g.layout.behind(now, g.last.stamp); d > g.maxRollback || d == math.MaxInt64 {
			return uuid.Nil, false, fmt.Errorf("%w by %v, further than %v", ErrClockRollback, d, g.maxRollback)
		}
		next, ok := g.layout.next(g.last)
		if !ok || g.layout.behind(now, next.stamp) > g.maxRollback {
			return uuid.Nil, false, nil
		}
		p = next
	}
	node, err := g.node()
	if err != nil {
		return uuid.Nil, false, err
	}
	g.last, g.begun = p, true
	return g.layout.join(p, node), true, nil
}

// node returns a new node, which is not zero.
func (g *Generator) node() (uint64, error) {
	for range maxDraws {
		r, err := draw(g.random, &g.drawn)
		if err != nil {
			return 0, err
		}
		if node := g.machine | r&g.randomMask; node != 0 {
			return node, nil
		}
	}
	return 0, fmt.Errorf("%w: it gives nothing but zeros", ErrRandom)
}

func draw(r io.Reader, b *[8]byte) (uint64, error) {
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRandom, err)
	}
	return binary.BigEndian.Uint64(b[:]), nil
}

type v6Layout struct {
	now           func() time.Time
	clockSequence uint16
}

func (l *v6Layout) read() (stamp, error) {
	f, err := V6At(l.now())
	return stamp{lo: f.Timestamp}, err
}

func (l *v6Layout) behind(now, last stamp) time.Duration {
	return span(last.lo, now.lo, gregorianTick)
}

func (l *v6Layout) next(last position) (position, bool) {
	last.lo++
	return last, last.lo>>v6TimeBits == 0
}

func (l *v6Layout) join(p position, node uint64) uuid.UUID {
	return V6{Timestamp: p.lo, ClockSequence: l.clockSequence, Node: node}.join()
}

type v7Layout struct {
	now       func() time.Time
	precision Precision
	encoding  Encoding
}

func (l *v7Layout) read() (stamp, error) {
	f, err := V7At(l.now(), l.precision, l.encoding)
	return stamp{f.Seconds, f.Subsec}, err // the fields are in order whatever the encoding
}

func (l *v7Layout) behind(now, last stamp) time.Duration {
	return l.fields(last).Time().Sub(l.fields(now).Time())
}

func (l *v7Layout) fields(s stamp) V7 {
	return V7{Precision: l.precision, Encoding: l.encoding, Seconds: s.hi, Subsec: s.lo}
}

func (l *v7Layout) next(last position) (position, bool) {
	last.seq++
	return last, last.seq>>precisions[l.precision].sequence == 0
}

func (l *v7Layout) join(p position, node uint64) uuid.UUID {
	f := l.fields(p.stamp)
	f.Sequence, f.Node = uint16(p.seq), node
	return f.join()
}

type v8Layout struct {
	now   func() time.Time
	clock Clock
}

func (l *v8Layout) read() (stamp, error) {
	var timestamp uint64
	if l.clock.Now != nil {
		timestamp = l.clock.Now()
		if timestamp>>l.clock.Bits != 0 {
			return stamp{}, fmt.Errorf("%w: version 8 with %d bits, timestamp %#x", ErrTimeRange, l.clock.Bits, timestamp)
		}
	} else {
		var err error
		if timestamp, err = l.clock.Timestamp(l.now()); err != nil {
			return stamp{}, err
		}
	}
	if l.clock.Bits == 64 {
		timestamp &^= 0xF // the UUID holds the upper 60 bits, and a sequence is for what it holds
	}
	return stamp{lo: timestamp}, nil
}

func (l *v8Layout) behind(now, last stamp) time.Duration {
	if l.clock.Tick == 0 && now != last {
		return math.MaxInt64
	}
	return span(last.lo, now.lo, l.clock.Tick)
}

func (l *v8Layout) next(last position) (position, bool) {
	sequence, _, _ := v8Widths(l.clock.Bits)
	last.seq++
	return last, last.seq>>sequence == 0
}

func (l *v8Layout) join(p position, node uint64) uuid.UUID {
	return V8{Bits: l.clock.Bits, Timestamp: p.lo, Sequence: uint16(p.seq), Node: node}.join()
}

// span returns how long it is from the timestamp now to last, which is not before it.
func span(last, now uint64, tick time.Duration) time.Duration {
	hi, lo := bits.Mul64(last-now, uint64(tick))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}
