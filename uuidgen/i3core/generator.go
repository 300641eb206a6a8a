package i3core

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen/internal/wait"
	"github.com/bsonids/bsonids/uuidrep"
)

// Generator makes UUIDs of one format. It is safe for concurrent use. Make one with [NewRandomGenerator],
// [NewSequentialGenerator] or [NewNotifierGenerator]; it is an id source for inserts, since it has NewID. The zero value
// only returns errors.
type Generator struct {
	mu      sync.Mutex
	try     func() (u uuid.UUID, ok bool, err error) // not ok: ask again when the clock has moved on
	maxWait time.Duration
}

type config struct {
	now        func() time.Time
	random     io.Reader
	custom     *byte
	version    *byte
	dbms       DBMS
	timestamps func() uint64
	maxWait    time.Duration
	given      []string // names of the options
}

// Option sets up a generator; see the With functions. An option that is not for the generator's format, or has a wrong
// value, is an error of its constructor.
type Option func(*config)

func option(name string, set func(*config)) Option {
	return func(c *config) {
		c.given = append(c.given, name)
		set(c)
	}
}

// WithClock makes a sequential or notifier generator tell the time by now, in place of [time.Now]; nil is an error. The
// generator calls it from one goroutine at a time.
func WithClock(now func() time.Time) Option {
	return option("WithClock", func(c *config) { c.now = now })
}

// WithRandom makes a random or sequential generator, or [NewInteraction], draw from r, in place of
// [crypto/rand.Reader]; nil is an error. It is read 16 octets at a time, by one goroutine at a time.
func WithRandom(r io.Reader) Option {
	return option("WithRandom", func(c *config) { c.random = r })
}

// WithCustom sets the custom octet of a random or notifier generator. Without it, the octet is random in the random
// format, and zero in the notifier format.
func WithCustom(custom byte) Option {
	return option("WithCustom", func(c *config) { c.custom = &custom })
}

// WithVersion sets the version, 4 bits, of a sequential generator, which needs it: the document does not give the
// number. A number chosen here does not make the UUIDs those of i3core.
func WithVersion(version byte) Option {
	return option("WithVersion", func(c *config) { c.version = &version })
}

// WithDBMS sets the database that a sequential generator's UUIDs name, [DBMSBinary] by default.
func WithDBMS(d DBMS) Option {
	return option("WithDBMS", func(c *config) { c.dbms = d })
}

// WithTimestamps makes a sequential generator take its timestamps, 56 bits, from next, in place of microseconds since
// 2000-01-01T00:00:00Z: the document gives neither unit nor epoch. [Sequential.Time] and the bounds of [MinSequentialAt]
// are then of no use; nil is an error, and so is [WithClock] beside it. The generator calls next from one goroutine at a
// time.
func WithTimestamps(next func() uint64) Option {
	return option("WithTimestamps", func(c *config) { c.timestamps = next })
}

// WithMaxWait sets how long a notifier generator waits for its clock to come past the last instance sequence before it
// returns [ErrWait], two seconds by default. Zero waits not at all; a negative limit is an error. The limit is for each
// call and in real time, whatever clock the generator has.
func WithMaxWait(d time.Duration) Option {
	return option("WithMaxWait", func(c *config) { c.maxWait = d })
}

const defaultWait = 2 * time.Second

// newConfig applies the options of a format that allows those named.
func newConfig(format string, opts []Option, allowed ...string) (*config, error) {
	c := &config{now: time.Now, random: rand.Reader, maxWait: defaultWait}
	for _, opt := range opts {
		opt(c)
	}
	for _, name := range c.given {
		if !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("i3core: %s is not for the %s format", name, format)
		}
	}
	switch {
	case c.now == nil:
		return nil, errors.New("i3core: the clock is nil")
	case c.random == nil:
		return nil, errors.New("i3core: the random source is nil")
	case c.maxWait < 0:
		return nil, fmt.Errorf("i3core: a wait of %v is negative", c.maxWait)
	}
	return c, nil
}

// NewRandomGenerator returns a generator of the random format. Its options are [WithCustom] and [WithRandom]. Its
// NewUUID fails with [ErrRandom] alone; random bits that are all zero are drawn again.
func NewRandomGenerator(opts ...Option) (*Generator, error) {
	c, err := newConfig(formatRandom, opts, "WithCustom", "WithRandom")
	if err != nil {
		return nil, err
	}
	var octets [16]byte // here so that it is not allocated anew
	return &Generator{try: func() (uuid.UUID, bool, error) {
		mask := uint64(1<<60 - 1)
		if c.custom != nil {
			mask = 1<<52 - 1
		}
		a, b, err := draw(c.random, &octets, mask, 1<<62-1)
		if err != nil {
			return uuid.Nil, false, err
		}
		f := Random{byte(a >> 52), a & (1<<52 - 1), uint16(b >> 48), b & (1<<48 - 1)}
		if c.custom != nil {
			f.Custom = *c.custom
		}
		return f.join(), true, nil
	}}, nil
}

// NewSequentialGenerator returns a generator of the sequential format. [WithVersion] is needed; further options are
// [WithDBMS], [WithClock] or [WithTimestamps], and [WithRandom]. A random source that fails is [ErrRandom].
//
// The UUIDs of one generator are in strictly increasing order of memory. random1, random2 and the counter's start are
// drawn now, once: two copies of a process, restored from one snapshot of a machine, go on with the same ones and must
// each make a new generator. The counter takes one step for every UUID and is never set back; as it runs over, it adds
// one to octets 10–13, and when these would overflow NewUUID returns [ErrCounter] for good. While the clock stands
// still or behind the last timestamp, that timestamp stays, however long, and the counter keeps the order. A time or
// timestamp that does not fit 56 bits is [ErrTimeRange].
func NewSequentialGenerator(opts ...Option) (*Generator, error) {
	c, err := newConfig(formatSequential, opts, "WithVersion", "WithDBMS", "WithClock", "WithTimestamps", "WithRandom")
	if err != nil {
		return nil, err
	}
	if c.version == nil {
		return nil, errors.New("i3core: the sequential format needs WithVersion: the document does not give its number")
	}
	if slices.Contains(c.given, "WithTimestamps") {
		if c.timestamps == nil {
			return nil, errors.New("i3core: the timestamps are nil")
		}
		if slices.Contains(c.given, "WithClock") {
			return nil, errors.New("i3core: WithClock is of no use beside WithTimestamps")
		}
	}
	constant := Sequential{Version: *c.version, DBMS: c.dbms}
	if err := constant.Validate(); err != nil {
		return nil, err
	}
	random1, counter, err := draw(c.random, new([16]byte), 1<<12-1, 1<<48-1)
	if err != nil {
		return nil, err
	}
	constant.Random1 = uint16(random1)

	var last uint64
	return &Generator{try: func() (uuid.UUID, bool, error) {
		if counter>>48 != 0 {
			return uuid.Nil, false, ErrCounter
		}
		now, err := c.timestamp()
		if err != nil {
			return uuid.Nil, false, err
		}
		last = max(last, now)
		f := constant
		f.Timestamp, f.CounterHi, f.CounterLo = last, uint32(counter>>16), uint16(counter)
		counter++
		return f.join(), true, nil
	}}, nil
}

func (c *config) timestamp() (uint64, error) {
	if c.timestamps == nil {
		return microsecondsAt(c.now(), formatSequential, 56)
	}
	timestamp := c.timestamps()
	if timestamp>>56 != 0 {
		return 0, fmt.Errorf("%w: %s format, timestamp %#x", ErrTimeRange, formatSequential, timestamp)
	}
	return timestamp, nil
}

// NewNotifierGenerator returns a generator of the notifier format for a connection, 14 bits, of a node, which begins
// now: its instance sequences are above the present microsecond. A connection id of more bits is a [*FieldError]; a
// clock before 2000 or after 2142-09-17 is [ErrTimeRange], here and in NewUUID. Its options are [WithCustom],
// [WithClock] and [WithMaxWait].
//
// Each instance sequence is the microsecond before the one in which its UUID is made, the highest that is below the
// present, and no two are the same. When the clock has not come past the last one, for a burst of UUIDs or because it
// stepped back, the generator asks it again until it has, or [WithMaxWait] is over: [ErrWait]. So a generator makes a
// million UUIDs a second at most. Two generators for one connection at a time would make the same UUIDs.
func NewNotifierGenerator(node [6]byte, connection uint16, opts ...Option) (*Generator, error) {
	c, err := newConfig(formatNotifier, opts, "WithCustom", "WithClock", "WithMaxWait")
	if err != nil {
		return nil, err
	}
	constant := Notifier{ConnectionID: connection, NodeAddress: node}
	if c.custom != nil {
		constant.Custom = *c.custom
	}
	if err := constant.Validate(); err != nil {
		return nil, err
	}
	last, err := microsecondsAt(c.now(), formatNotifier, 52)
	if err != nil {
		return nil, err
	}
	return &Generator{maxWait: c.maxWait, try: func() (uuid.UUID, bool, error) {
		now, err := microsecondsAt(c.now(), formatNotifier, 52)
		if err != nil || now <= last+1 {
			return uuid.Nil, false, err
		}
		last = now - 1
		f := constant
		f.InstanceSequence = last
		return f.join(), true, nil
	}}, nil
}

// NewUUID returns the next UUID. The errors are those that the generator's constructor names; but for [ErrCounter], it
// can be asked again after each.
func (g *Generator) NewUUID() (uuid.UUID, error) {
	return wait.For(g.maxWait, ErrWait, g.next)
}

func (g *Generator) next() (uuid.UUID, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.try == nil {
		return uuid.Nil, false, errors.New("i3core: a Generator is made by one of the package's New functions")
	}
	return g.try()
}

// NewID is [Generator.NewUUID] for inserts: the id is a [uuidrep.CSharpLegacyUUID], so that the database holds i3core's
// memory whatever the client's registry says, and sequential ids keep their order. Where another representation is
// wanted, a source that returns NewUUID's [uuid.UUID] leaves it to the registry.
func (g *Generator) NewID() (any, error) {
	u, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	return uuidrep.CSharpLegacyUUID{UUID: u}, nil
}

// A source that is random does not give as many draws in a row that are all zero: the shortest is of 60 bits.
const maxDraws = 4

// draw reads octets and returns the two numbers in them, masked, which are not both zero: an interaction without random
// bits would read as unresolved.
func draw(r io.Reader, octets *[16]byte, maskA, maskB uint64) (a, b uint64, err error) {
	for range maxDraws {
		if _, err := io.ReadFull(r, octets[:]); err != nil {
			return 0, 0, fmt.Errorf("%w: %w", ErrRandom, err)
		}
		a, b = binary.BigEndian.Uint64(octets[0:])&maskA, binary.BigEndian.Uint64(octets[8:])&maskB
		if a|b != 0 {
			return a, b, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: it gives nothing but zeros", ErrRandom)
}
