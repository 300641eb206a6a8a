package i3core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen/internal/wait"
	"github.com/bsonids/bsonids/uuidrep"
)

// A Generator makes UUIDs of one format. It is safe for concurrent use and must not be copied. The
// zero Generator only returns errors. It is a source of ids for inserts, since it has NewID. The
// constructors are [NewRandomGenerator], [NewSequentialGenerator] and [NewNotifierGenerator].
type Generator struct {
	mu      sync.Mutex
	maker   maker
	maxWait time.Duration
}

// A maker is what differs between the formats.
type maker interface {
	next() (u uuid.UUID, ok bool, err error) // not ok: ask again when the clock has advanced
	at(t time.Time) (uuid.UUID, error)
	renew() error
	ahead() time.Duration
}

var errNotMade = errors.New("i3core: a Generator is made by one of the New…Generator functions")

// NewUUID returns the next UUID. The errors are those that the constructor names. After each of
// them the Generator can be asked again.
func (g *Generator) NewUUID() (uuid.UUID, error) {
	u, ok, err := g.next()
	if ok || err != nil {
		return u, err
	}
	return wait.For(g.maxWait, ErrWait, g.next)
}

func (g *Generator) next() (uuid.UUID, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maker == nil {
		return uuid.Nil, false, errNotMade
	}
	return g.maker.next()
}

// Fill sets every element of us to a new UUID. The errors are those of [Generator.NewUUID]; all of
// us is then set to the nil UUID.
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
// alone. They have a random1 and a counter of their own.
//
// An instant before 2000 or after 4283-05-31T22:20:37Z is [ErrTimeRange]. The random format holds
// no time, and the notifier format allows one UUID in a microsecond: with them, and with
// [WithTimestamps], NewUUIDAt is an error. Other errors are [ErrRandom] and [ErrCounter].
func (g *Generator) NewUUIDAt(t time.Time) (uuid.UUID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maker == nil {
		return uuid.Nil, errNotMade
	}
	return g.maker.at(t)
}

// Renew makes a sequential or notifier Generator begin anew: the next timestamp is that of the
// clock, also when the clock was once far ahead by mistake, and a sequential Generator draws
// random1, random2 and the counter. UUIDs made before may sort after those made later. Call it in a
// process that was restored from a snapshot or a checkpoint, before the next UUID. A notifier
// Generator whose clock was ahead can then make an instance sequence again that it made before;
// only a new connection id prevents it.
//
// The errors are that of the zero Generator, [ErrRandom], and [ErrTimeRange] for the notifier
// format; the Generator then goes on as before.
func (g *Generator) Renew() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maker == nil {
		return errNotMade
	}
	return g.maker.renew()
}

// Ahead returns how far the timestamp of the last UUID is ahead of the clock; zero if it is not, in
// the random format, and before the first UUID. With [WithTimestamps] the unit of the timestamps is
// taken as a microsecond. If the clock is out of the range of the format, the result is the longest
// Duration.
func (g *Generator) Ahead() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maker == nil {
		return 0
	}
	return g.maker.ahead()
}

// NewRandomGenerator returns a Generator of the random format. The options are [WithCustom] and
// [WithRandom]. The error of NewUUID is [ErrRandom]; random bits that are all zero are drawn again.
func NewRandomGenerator(opts ...Option) (*Generator, error) {
	c, err := newConfig(formatRandom, opts, "WithCustom", "WithRandom")
	if err != nil {
		return nil, err
	}
	return &Generator{maker: &randomMaker{random: c.random, custom: c.custom}}, nil
}

type randomMaker struct {
	random io.Reader
	custom *byte
	bytes  [16]byte // here so that it is not allocated for each UUID
}

func (m *randomMaker) next() (uuid.UUID, bool, error) {
	mask := uint64(1<<60 - 1)
	if m.custom != nil {
		mask = 1<<52 - 1
	}
	a, b, err := draw(m.random, &m.bytes, mask, 1<<62-1)
	if err != nil {
		return uuid.Nil, false, err
	}
	f := Random{byte(a >> 52), a & (1<<52 - 1), uint16(b >> 48), b & (1<<48 - 1)}
	if m.custom != nil {
		f.Custom = *m.custom
	}
	return f.join(), true, nil
}

func (m *randomMaker) at(time.Time) (uuid.UUID, error) {
	return uuid.Nil, errors.New("i3core: NewUUIDAt does not apply to the random format")
}

func (m *randomMaker) renew() error { return nil }

func (m *randomMaker) ahead() time.Duration { return 0 }

// A source that is random does not give so many draws in a row that are all zero: the shortest has
// 60 bits.
const maxDraws = 4

// draw reads two numbers and masks them. They are not both zero: an interaction without random bits
// would read as unresolved.
func draw(r io.Reader, bytes *[16]byte, maskA, maskB uint64) (a, b uint64, err error) {
	for range maxDraws {
		if _, err := io.ReadFull(r, bytes[:]); err != nil {
			return 0, 0, fmt.Errorf("%w: %w", ErrRandom, err)
		}
		a, b = binary.BigEndian.Uint64(bytes[0:])&maskA, binary.BigEndian.Uint64(bytes[8:])&maskB
		if a|b != 0 {
			return a, b, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: it gives nothing but zeros", ErrRandom)
}
