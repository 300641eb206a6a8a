package i3core

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/stock"
	"github.com/bsonids/bsonids/uuidrep"
)

// A Generator makes UUIDs of one format. It is safe for concurrent use and must not be copied. The
// zero Generator only returns errors. It is a source of ids for inserts, since it has NewID. The
// constructors are [NewRandomGenerator], [NewSequentialGenerator] and [NewNotifierGenerator].
type Generator struct{ machine serial.Machine[pkg] }

type pkg struct{}

func (pkg) Package() string { return "i3core" }

func newGenerator(m serial.Maker, maxWait time.Duration) *Generator {
	g := new(Generator)
	g.machine.Init(m, maxWait)
	return g
}

// NewUUID returns the next UUID. The errors are those that the constructor names. After each of
// them the Generator can be asked again.
func (g *Generator) NewUUID() (uuid.UUID, error) { return g.machine.Next() }

// Fill sets every element of ids to a new UUID, sequential ones in one order. The errors are those of
// [Generator.NewUUID]; all of ids is then set to the nil UUID.
func (g *Generator) Fill(ids []uuid.UUID) error { return g.machine.Fill(ids) }

// UUIDs returns an iterator over n new UUIDs; with n below 1 there are none. After an error, which
// is that of [Generator.NewUUID] and comes with the nil UUID, the iteration ends.
func (g *Generator) UUIDs(n int) iter.Seq2[uuid.UUID, error] { return g.machine.UUIDs(n) }

// NewID is [Generator.NewUUID] for inserts: the id is a [uuidrep.CSharpLegacyUUID], so that the
// database holds i3core's memory whatever the client's registry says, and sequential ids keep their
// order. For another representation, use a source that returns the [uuid.UUID] of NewUUID.
func (g *Generator) NewID() (any, error) {
	u, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	return uuidrep.CSharpLegacyUUID{UUID: u}, nil
}

// NewUUIDAt returns a sequential UUID for the instant t, for documents that are older than their
// ids and for tests. It does not read the clock or change what [Generator.NewUUID] returns.
//
// The UUIDs that one Generator makes for given instants differ, and in the order of memory they are
// ordered by the microsecond; those of one microsecond are in the order of the calls. This holds
// for calls with instants in any order. In SQL Server's order they are in the order of the calls
// alone. They have a random1 and a counter of their own, which jumps ahead by at most 1/1024 of the
// numbers left in a process that may be a copy.
//
// An instant before 2000 or after 4283-05-31T22:20:37Z is [ErrTimeRange]. The random format holds
// no time, and the notifier format allows one UUID in a microsecond: with them, and with
// [WithTimestamps], NewUUIDAt is an error. Other errors are that of the random source, and
// [ErrExhausted] after 2^46 calls or more until [Generator.Renew].
func (g *Generator) NewUUIDAt(t time.Time) (uuid.UUID, error) { return g.machine.At(t) }

// Renew makes a sequential or notifier Generator begin a new order: the next timestamp is that of
// the clock, also when the clock was once far ahead by mistake, and a sequential Generator draws
// random1, random2 and the counter. UUIDs made before may sort after those made later. Call it in a
// process that was restored from a snapshot or a checkpoint, before the next UUID. A notifier
// Generator whose clock was ahead can then make an instance sequence again that it made before;
// only a new connection id prevents it.
//
// The errors are that of the zero Generator, that of the random source, and [ErrTimeRange] for the
// notifier format; the Generator then goes on as before.
func (g *Generator) Renew() error { return g.machine.Renew() }

// Ahead returns how far the timestamp of the last UUID is ahead of the clock; zero if it is not, in
// the random format, and before the first UUID. With [WithTimestamps] the unit of the timestamps is
// taken as a microsecond. If the clock is out of the range of the format, the result is the longest
// Duration.
func (g *Generator) Ahead() time.Duration { return g.machine.Ahead() }

// Orders returns how many orders of UUIDs the Generator has begun: 1 until the first new one. UUIDs
// that were drawn while it was the same are in one order, that of memory. It is 0 in the random
// format and for the zero Generator.
func (g *Generator) Orders() uint64 { return g.machine.Orders() }

// NewRandomGenerator returns a Generator of the random format. The options are [WithCustom] and
// [WithRandom]. The error of NewUUID is that of the random source; random bits that are all zero are
// drawn again.
//
// The random bits come from a stock of 1024 bytes. It is drawn anew in a process that may be a copy,
// as described in the section Copies of a process of package uuidgen; the clocks are compared once a
// millisecond, before the UUID.
func NewRandomGenerator(opts ...Option) (*Generator, error) {
	c, err := newConfig(formatRandom, opts, "WithCustom", "WithRandom")
	if err != nil {
		return nil, err
	}
	m := &randomMaker{custom: c.custom}
	m.stock.Start(c.random)
	return newGenerator(m, 0), nil
}

type randomMaker struct {
	stock  stock.Stock
	custom *byte
}

func (m *randomMaker) Next(bool) (uuid.UUID, bool, error) {
	mask := uint64(1<<60 - 1)
	if m.custom != nil {
		mask = 1<<52 - 1
	}
	m.stock.Now()
	a, b, err := draw(&m.stock, mask, 1<<62-1)
	if err != nil {
		return uuid.Nil, false, err
	}
	f := Random{byte(a >> 52), a & (1<<52 - 1), uint16(b >> 48), b & (1<<48 - 1)}
	if m.custom != nil {
		f.Custom = *m.custom
	}
	return f.join(), true, nil
}

func (m *randomMaker) At(time.Time) (uuid.UUID, error) {
	return uuid.Nil, errors.New("i3core: NewUUIDAt does not apply to the random format")
}

func (m *randomMaker) Renew() error {
	m.stock.Renew()
	return nil
}

func (m *randomMaker) Ahead() time.Duration { return 0 }

func (m *randomMaker) Orders() uint64 { return 0 }

// A source that is random does not give so many draws in a row that are all zero: the shortest has
// 60 bits.
const maxDraws = 4

// draw reads two numbers and masks them. They are not both zero: an interaction without random bits
// would read as unresolved.
func draw(s *stock.Stock, maskA, maskB uint64) (a, b uint64, err error) {
	for range maxDraws {
		if a, err = s.Uint64(); err == nil {
			b, err = s.Uint64()
		}
		if err != nil {
			return 0, 0, fmt.Errorf("i3core: random source: %w", err)
		}
		if a, b = a&maskA, b&maskB; a|b != 0 {
			return a, b, nil
		}
	}
	return 0, 0, errors.New("i3core: the random source gives nothing but zeros")
}
