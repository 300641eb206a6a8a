package uuidgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// ErrTimeRange is wrapped by the error for a time that the version's timestamp cannot hold: before 1970 or beyond 48
// bits of milliseconds for version 7, before 1582-10-15 or beyond 60 bits of 100 ns for version 6.
var ErrTimeRange = errors.New("uuidgen: time out of range")

var errNotMade = errors.New("uuidgen: a Generator is made by NewV4, NewV6 or NewV7")

// A Generator makes UUIDs of one version. It is safe for concurrent use and must not be copied. The zero Generator
// makes none: its methods return an error.
//
// # Strict order
//
// Ids of versions 6 and 7 are strictly increasing, octet by octet, whatever the clock does: an id is greater than every
// id of the same Generator whose call had returned before its own began, whichever goroutine made it, and ids within one
// [Generator.Fill] increase by index.
//
// RFC 9562 section 6.2 offers several methods. This is its method 3: the timestamp is taken as finely as the layout has
// room for (100 ns in version 6; in version 7 the 12 bits after the milliseconds hold floor(4096 · fraction), steps of
// 244 ns). When the clock has not moved on by a step since the last id, or has stepped back, the next id takes the last
// timestamp plus one step, which carries into the milliseconds. The reasons: the order between machines is then as fine
// as their clocks allow and not only to the millisecond, as with a counter; all bits after the timestamp are fresh for
// every id, so that one id does not help to guess the next, as it does where a counter runs through them; and nothing
// can be exhausted, so that no call ever waits.
//
// The price is that timestamps run ahead of the clock when ids are drawn faster than steps pass: 4,096,000 a second in
// version 7, 10,000,000 in version 6. A burst of n ids ends at most n steps ahead (in version 7 n/4096 milliseconds: a
// Fill of 100,000 ids reaches 25 ms ahead), and the clock catches up from then on. After a step back of the clock
// timestamps stay where they were, a step further for each id, until the clock is there again. A Generator whose clock
// once was far ahead by mistake therefore stays ahead; a new Generator starts from the clock.
type Generator struct {
	version byte
	fixed   uint64 // the bits of the last eight octets that are 1 in every id
	steps   uint64 // how many timestamps an id takes: 1, or 0 in version 4
	words   uint64 // how many words of 8 random octets an id takes: 1, or 2 in version 4

	now    func() time.Time // nil: the system clock
	system systemClock

	reader   io.Reader // nil: the system's source
	readerMu sync.Mutex

	page   atomic.Pointer[page]
	pageMu sync.Mutex // held to set page
}

// An Option changes how a Generator works.
type Option func(*Generator) error

// WithClock makes a Generator of version 6 or 7 read the time from now, which must be safe for concurrent use. Version 4
// has no time and never calls it.
//
// Without this option the time is the system's, read through its monotonic clock and compared with the wall clock every
// millisecond: a wall clock that was set is noticed within that time.
func WithClock(now func() time.Time) Option {
	return func(g *Generator) error {
		if now == nil {
			return errors.New("uuidgen: WithClock: nil clock")
		}
		g.now = now
		return nil
	}
}

// WithRandom makes a Generator take every random bit from r, one call at a time: r need not be safe for concurrent use.
// Each id of version 4 takes 16 octets, each of version 6 or 7 takes 8; they become the last octets of the id in the
// order read, with version, variant and multicast bit written over them. Nothing is read ahead beyond the ids asked for.
// An error or a short read of r is an error of the call, and no id comes of it.
func WithRandom(r io.Reader) Option {
	return func(g *Generator) error {
		if r == nil {
			return errors.New("uuidgen: WithRandom: nil reader")
		}
		g.reader = r
		return nil
	}
}

// NewV4 returns a Generator of random UUIDs (RFC 9562 section 5.4). It fails where an option is invalid or the system's
// source of randomness does.
func NewV4(opts ...Option) (*Generator, error) { return newGenerator(4, opts) }

// NewV6 returns a Generator of UUIDs in the order of time that hold the timestamp of version 1, with a random clock
// sequence and node (RFC 9562 section 5.6). It fails where an option is invalid or the system's source of randomness
// does.
func NewV6(opts ...Option) (*Generator, error) { return newGenerator(6, opts) }

// NewV7 returns a Generator of UUIDs in the order of Unix time (RFC 9562 section 5.7). It fails where an option is
// invalid or the system's source of randomness does.
func NewV7(opts ...Option) (*Generator, error) { return newGenerator(7, opts) }

func newGenerator(version byte, opts []Option) (*Generator, error) {
	const variant, multicast = 1 << 63, 1 << 40 // multicast is the last bit of octet 10
	g := &Generator{version: version, fixed: variant, steps: 1, words: 1}
	switch version {
	case 4:
		g.steps, g.words = 0, 2
	case 6:
		g.fixed |= multicast
	}
	g.system.init()
	for _, opt := range opts {
		if err := opt(g); err != nil {
			return nil, err
		}
	}
	p, err := g.newPage()
	if err != nil {
		return nil, err
	}
	g.page.Store(p)
	return g, nil
}

// NewUUID returns the next id. Where the clock is out of the version's range ([ErrTimeRange]) or the random source
// fails, it returns that error and the nil UUID.
func (g *Generator) NewUUID() (u uuid.UUID, err error) {
	now, err := g.timestamp()
	if err != nil {
		return u, err
	}
	// What take does, for one id where nothing is in the way.
	for g.reader == nil {
		p := g.page.Load()
		state := p.state.Load()
		word, step := state&usedMask, max(p.base+state>>usedBits, now)
		if word+g.words > pageWords || step >= min(p.base+maxNext, maxTimestamps) {
			break
		}
		if !p.state.CompareAndSwap(state, (step+g.steps-p.base)<<usedBits|(word+g.words)) {
			continue
		}
		octets := p.octets[word*8:]
		if g.version == 4 {
			putRandom(&u, octets)
		} else {
			g.putTimed(&u, step, octets)
		}
		return u, nil
	}
	var ids [1]uuid.UUID
	if _, err := g.fill(ids[:], now); err != nil {
		return u, err
	}
	return ids[0], nil
}

// Fill sets every element of ids to a new id, increasing by index in versions 6 and 7. Ids are drawn up to a thousand at
// once, which makes one of version 7 cost about an eighth of a single one. Ids that other goroutines draw meanwhile may
// stand between those of the batch. Errors are those of [Generator.NewUUID]; all of ids is then set to the nil UUID.
func (g *Generator) Fill(ids []uuid.UUID) error {
	for rest := ids; len(rest) > 0; {
		now, err := g.timestamp()
		var n uint64
		if err == nil {
			n, err = g.fill(rest, now)
		}
		if err != nil {
			clear(ids)
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// fill sets the first n elements of ids, at least one, none of them before now.
func (g *Generator) fill(ids []uuid.UUID, now uint64) (n uint64, err error) {
	words := g.words
	var octets []byte
	if g.reader != nil || len(ids) >= bulk {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		ids = ids[:min(len(ids), len(buf)/int(8*words))]
		octets = buf[:len(ids)*int(8*words)]
		words = 0
		if err := g.random(octets); err != nil {
			return 0, err
		}
	}
	p, n, step, word, err := g.take(uint64(len(ids)), words, now)
	if err != nil {
		return 0, err
	}
	if octets == nil {
		octets = p.octets[word*8:]
	}
	ids = ids[:n]
	if g.version == 4 {
		for i := range ids {
			putRandom(&ids[i], octets)
			octets = octets[16:]
		}
	} else {
		for i := range ids {
			g.putTimed(&ids[i], step, octets)
			octets = octets[8:]
			step++
		}
	}
	return n, nil
}

// NewID returns the next id as a [uuid.UUID]: a Generator is a source of ids for package autoid. Its errors are those of
// [Generator.NewUUID].
func (g *Generator) NewID() (any, error) {
	id, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	return id, nil
}

// Renew throws away the random octets that the Generator has in stock and draws new ones: no id that is begun after
// Renew returns shares random bits with a copy of the process made before. Call it after the restore of a snapshot of the
// machine. Order is kept.
//
// An error is the system source's; the old stock is gone even so, and ids are errors until the source gives again. With
// [WithRandom] there is no stock, and Renew does nothing.
func (g *Generator) Renew() error {
	if g.version == 0 {
		return errNotMade
	}
	if g.reader != nil {
		return nil
	}
	g.pageMu.Lock()
	defer g.pageMu.Unlock()
	g.page.Load().close()
	return g.replacePage(0)
}

// timestamp returns the clock's timestamp, or 0 in version 4.
func (g *Generator) timestamp() (uint64, error) {
	switch g.version {
	case 0:
		return 0, errNotMade
	case 4:
		return 0, nil
	}
	if g.now != nil {
		return timestampAt(g.version, g.now())
	}
	if ns, ok := g.system.read(); ok {
		return timestampOf(g.version, ns), nil
	}
	return timestampAt(g.version, g.system.now())
}

// take reserves n ids, at least one and at most the given number, none of them before now: the n timestamps from step
// on, and the given number of words each of the page from word on.
func (g *Generator) take(most, words, now uint64) (p *page, n, step, word uint64, err error) {
	for {
		p = g.page.Load()
		state := p.state.Load()
		n, word, step = most, state&usedMask, max(p.base+state>>usedBits, now)
		if n > 1 && words > 0 && word < pageWords {
			n = min(n, (pageWords-word)/words)
		}
		wordAfter, stepAfter := word+n*words, step+n*g.steps
		switch {
		case wordAfter > pageWords || stepAfter > p.base+maxNext:
			if err = g.pageAfter(p, now); err != nil {
				return nil, 0, 0, 0, err
			}
		case stepAfter > maxTimestamps:
			return nil, 0, 0, 0, fmt.Errorf("%w: version %d has no timestamp left", ErrTimeRange, g.version)
		case p.state.CompareAndSwap(state, (stepAfter-p.base)<<usedBits|wordAfter):
			return p, n, step, word, nil
		}
	}
}

func putRandom(u *uuid.UUID, octets []byte) {
	binary.BigEndian.PutUint64(u[:8], binary.BigEndian.Uint64(octets)&^0xf000|0x4000)
	binary.BigEndian.PutUint64(u[8:], binary.BigEndian.Uint64(octets[8:])&^(0b11<<62)|0b10<<62)
}

func (g *Generator) putTimed(u *uuid.UUID, step uint64, octets []byte) {
	binary.BigEndian.PutUint64(u[:8], timeWord(g.version, step))
	binary.BigEndian.PutUint64(u[8:], binary.BigEndian.Uint64(octets)&^(0b11<<62)|g.fixed)
}

// timeWord returns the first eight octets: in versions 6 and 7 alike 48 bits of the timestamp, the version, and the
// timestamp's low 12 bits.
func timeWord(version byte, step uint64) uint64 {
	return step>>12<<16 | uint64(version)<<12 | step&0xfff
}
