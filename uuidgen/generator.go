package uuidgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/clock"
	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/uuidgen/internal/monotonic"
	"github.com/bsonids/bsonids/uuidgen/internal/wait"
	"github.com/bsonids/bsonids/uuidrep"
)

// A Generator makes UUIDs of one version. It is safe for concurrent use and must not be copied. The
// zero Generator makes none: its methods return an error.
//
// # Order
//
// Ids of versions 6, 7 and 8 are strictly increasing, whatever the clock does: an id is greater
// than every id of the same Generator whose call returned before its own began, on any goroutine,
// and the ids of one [Generator.Fill] increase by index. [Generator.Renew] begins a new order, and
// so does [Generator.NewUUIDAt] for its own ids.
//
// This is method 3 of RFC 9562, section 6.2: the timestamp is as fine as the layout allows, 100 ns
// in version 6 and 244 ns (1/4096 ms) in versions 7 and 8. If the clock has not advanced since the
// last id, or was set back, the next id has the last timestamp plus one step. All bits after the
// timestamp are random in every id.
//
// # Ahead of the clock
//
// Timestamps run ahead of the clock while ids are drawn faster than steps pass: 4,096,000 a second
// in versions 7 and 8, 10,000,000 in version 6. A Fill of 100,000 ids of version 7 ends 25 ms
// ahead. They also stay ahead after the clock was set back, until it is there again.
// [Generator.Ahead] reports how far, [WithMaxAhead] limits it, and Renew ends it.
//
// # Copies of a process
//
// A Generator holds random bytes in stock. It draws them anew when it finds that the process is a
// copy of the one that drew them: see the section Randomness of the package.
type Generator struct {
	layout   *layout // nil in the zero Generator
	steps    uint64  // how many timestamps an id takes: 1, or 0 in version 4
	words    uint64  // how many words of 8 random bytes an id takes: 1, or 2 in version 4
	maxAhead uint64  // in steps
	maxWait  time.Duration

	now     func() time.Time // nil: the system clock
	system  clock.Clock
	looked  atomic.Int64  // when the system clock was last looked at, on the monotonic clock since started
	stepped atomic.Uint64 // how many steps it had made

	reader   io.Reader // nil: the system's source
	readerMu sync.Mutex

	page atomic.Pointer[page]

	atMu         sync.Mutex
	at           monotonic.Counter // of NewUUIDAt
	atGeneration uint64            // of package fork, when at began
}

var started = time.Now()

// NewV4Generator returns a Generator of random UUIDs (RFC 9562, section 5.4). The only option is
// [WithRandom]. An invalid option is an error.
func NewV4Generator(opts ...Option) (*Generator, error) {
	c, err := newConfig(layoutV4.String(), opts, "WithRandom")
	if err != nil {
		return nil, err
	}
	return newGenerator(layoutV4, c), nil
}

// NewV6Generator returns a Generator of UUIDs in the order of time that hold the timestamp of
// version 1, with a random clock sequence and node in every id (RFC 9562, section 5.6). An invalid
// option is an error.
func NewV6Generator(opts ...Option) (*Generator, error) { return newTimeGenerator(layoutV6, opts) }

// NewV7Generator returns a Generator of UUIDs in the order of Unix time (RFC 9562, section 5.7). An
// invalid option is an error.
func NewV7Generator(opts ...Option) (*Generator, error) { return newTimeGenerator(layoutV7, opts) }

// NewV8Generator returns a Generator of UUIDs of version 8 (RFC 9562, section 5.8) whose stored
// bytes are in the order of time if the field has the representation r: CSharpLegacy or JavaLegacy.
// The ids of version 7 are not in order there. [V8Time] reads the time of such an id; [Time] and
// the bounds of version 7 do not. NewID returns a [uuidrep.CSharpLegacyUUID] or
// [uuidrep.JavaLegacyUUID], which is stored in this representation whatever the registry says.
// Another representation, and an invalid option, is an error.
func NewV8Generator(r uuidrep.Representation, opts ...Option) (*Generator, error) {
	l, err := layoutV8(r)
	if err != nil {
		return nil, err
	}
	return newTimeGenerator(l, opts)
}

func newTimeGenerator(l *layout, opts []Option) (*Generator, error) {
	c, err := newConfig(l.String(), opts, "WithClock", "WithRandom", "WithMaxAhead", "WithMaxWait")
	if err != nil {
		return nil, err
	}
	return newGenerator(l, c), nil
}

func newGenerator(l *layout, c *config) *Generator {
	g := &Generator{layout: l, steps: 1, words: 1, maxAhead: c.aheadSteps(l), maxWait: c.maxWait, now: c.now, reader: c.random}
	if l == layoutV4 {
		g.steps, g.words = 0, 2
	}
	g.system.Start()
	g.page.Store(noPage)
	return g
}

// NewUUID returns the next id. The errors are [ErrTimeRange], if the clock is out of the version's
// range, [ErrAhead], and that of the random source; the id is then the nil UUID.
func (g *Generator) NewUUID() (u uuid.UUID, err error) {
	// What tryTake does, for one id if nothing is in the way. Version 4 has no timestamps, so that
	// the state of a page is the number of words used.
	for g.layout == layoutV4 && g.reader == nil {
		p := g.page.Load()
		word := p.state.Load()
		if word >= pageWords || p.generation != fork.Generation() {
			break
		}
		if !p.state.CompareAndSwap(word, word+2) {
			continue
		}
		if word%lookEvery == 0 {
			g.lookSometimes()
		}
		putV4(&u, p.random[word*8:])
		return u, nil
	}
	now, err := g.timestamp()
	if err != nil {
		return u, err
	}
	for g.layout != layoutV4 && g.reader == nil {
		p := g.page.Load()
		state := p.state.Load()
		word, step := state&usedMask, max(p.base+state>>usedBits, now)
		if word >= pageWords || step >= min(p.base+maxNext, maxTimestamps, now+g.maxAhead) ||
			p.generation != fork.Generation() {
			break
		}
		if !p.state.CompareAndSwap(state, (step+1-p.base)<<usedBits|(word+1)) {
			continue
		}
		if g.layout.version == 8 {
			g.layout.putV8(&u, step, p.random[word*8:])
		} else {
			g.layout.put(&u, step, p.random[word*8:])
		}
		return u, nil
	}
	var ids [1]uuid.UUID
	_, err = g.fill(ids[:], now)
	return ids[0], err
}

// Fill sets every element of ids to a new id, increasing by index in versions 6, 7 and 8. A
// thousand ids are drawn at once, which makes an id of version 7 cost about an eighth of a single
// one. Ids that other goroutines draw at the same time may lie between those of the batch. The
// errors are those of [Generator.NewUUID]; all of ids is then set to the nil UUID.
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

// UUIDs returns an iterator over n new ids, increasing in versions 6, 7 and 8; with n below 1 there
// are none. Up to 256 ids are drawn at once, when the first of them is asked for; those left over
// when the loop ends early are discarded. After an error, which is that of [Generator.NewUUID] and
// comes with the nil UUID, the iteration ends.
func (g *Generator) UUIDs(n int) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		ids := make([]uuid.UUID, min(max(n, 0), bulk))
		for left := n; left > 0; left -= len(ids) {
			ids = ids[:min(left, len(ids))]
			if err := g.Fill(ids); err != nil {
				yield(uuid.Nil, err)
				return
			}
			for _, u := range ids {
				if !yield(u, nil) {
					return
				}
			}
		}
	}
}

// fill sets the first n elements of ids, at least one, none of them before now.
func (g *Generator) fill(ids []uuid.UUID, now uint64) (n uint64, err error) {
	words := g.words
	var random []byte
	if g.reader != nil || len(ids) >= bulk {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		ids = ids[:min(len(ids), len(buf)/int(8*words))]
		random = buf[:len(ids)*int(8*words)]
		words = 0
		if err := g.drawRandom(random); err != nil {
			return 0, err
		}
	}
	s, err := g.take(uint64(len(ids)), words, now)
	if err != nil {
		return 0, err
	}
	if random == nil {
		random = s.page.random[s.word*8:]
	}
	ids = ids[:s.n]
	if g.steps == 0 {
		for i := range ids {
			putV4(&ids[i], random)
			random = random[16:]
		}
		return s.n, nil
	}
	l := g.layout
	if l.version == 8 {
		for i := range ids {
			l.putV8(&ids[i], s.step, random)
			random = random[8:]
			s.step++
		}
		return s.n, nil
	}
	step := s.step
	for i := range ids {
		l.put(&ids[i], step, random)
		random = random[8:]
		step++
	}
	return s.n, nil
}

// NewID returns the next id as a [uuid.UUID], or as the field type of the representation in version
// 8: a Generator is a source of ids for package autoid. The errors are those of
// [Generator.NewUUID].
func (g *Generator) NewID() (any, error) {
	id, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	switch g.layout {
	case layoutV8CSharp:
		return uuidrep.CSharpLegacyUUID{UUID: id}, nil
	case layoutV8Java:
		return uuidrep.JavaLegacyUUID{UUID: id}, nil
	}
	return id, nil
}

// Renew makes the Generator begin anew: it discards its random bytes, and the next timestamp is
// that of the clock, also when the timestamps before were ahead of it. No id that is begun after
// Renew returns shares random bits with a copy of the process made before. Ids made before may be
// greater than those made after, if the timestamps were ahead.
//
// Call it in a process that was restored from a snapshot or a checkpoint, before the next id, and
// when the clock was once far ahead by mistake. The only error is that of the zero Generator.
func (g *Generator) Renew() error {
	if g.layout == nil {
		return errNotMade
	}
	g.atMu.Lock()
	g.at = monotonic.Counter{}
	g.atMu.Unlock()
	for {
		p := g.page.Load()
		p.close()
		if g.page.CompareAndSwap(p, noPage) {
			return nil
		}
	}
}

// Ahead returns how far the timestamp of the last id is ahead of the clock, to a step of the
// timestamp; zero if it is not, in version 4, and before the first id.
func (g *Generator) Ahead() time.Duration {
	if g.layout == nil || g.steps == 0 {
		return 0
	}
	p := g.page.Load()
	next := p.base + p.state.Load()>>usedBits
	if next == 0 {
		return 0
	}
	now := g.now
	if now == nil {
		now = time.Now
	}
	return max(0, g.layout.time(next-1).Sub(now().UTC()))
}

// timestamp returns the clock's timestamp, or 0 in version 4.
func (g *Generator) timestamp() (uint64, error) {
	switch {
	case g.layout == nil:
		return 0, errNotMade
	case g.steps == 0:
		return 0, nil
	case g.now != nil:
		g.lookSometimes()
		return g.layout.timestamp(g.now())
	}
	if ns, ok := g.system.Read(); ok {
		return g.layout.timestampOf(ns), nil
	}
	return g.layout.timestamp(g.look())
}

// A share is what ids are made of: n timestamps from step on, and the words of the page from word
// on.
type share struct {
	page          *page
	n, step, word uint64
}

var errAtLimit = errors.New("at the limit of WithMaxAhead")

// take reserves n ids, at least one and at most the given number, none of them before now, with the
// given number of words of the page for each. At the limit of WithMaxAhead it waits.
func (g *Generator) take(most, words, now uint64) (share, error) {
	s, err := g.tryTake(most, words, now)
	if err != errAtLimit {
		return s, err
	}
	return wait.For(g.maxWait, ErrAhead, func() (share, bool, error) {
		now, err := g.timestamp()
		if err != nil {
			return share{}, false, err
		}
		s, err := g.tryTake(most, words, now)
		if err == errAtLimit {
			return share{}, false, nil
		}
		return s, err == nil, err
	})
}

func (g *Generator) tryTake(most, words, now uint64) (share, error) {
	for {
		p := g.page.Load()
		state := p.state.Load()
		n, word, step := most, state&usedMask, max(p.base+state>>usedBits, now)
		if n > 1 {
			if words > 0 && word < pageWords {
				n = min(n, (pageWords-word)/words)
			}
			if limit := now + g.maxAhead; step <= limit {
				n = min(n, limit-step+1)
			}
		}
		wordAfter, stepAfter := word+n*words, step+n*g.steps
		switch {
		case wordAfter > pageWords || stepAfter > p.base+maxNext || p.generation != fork.Generation():
			if err := g.pageAfter(p, now); err != nil {
				return share{}, err
			}
		case step > now+g.maxAhead:
			return share{}, errAtLimit
		case stepAfter > maxTimestamps:
			return share{}, fmt.Errorf("uuidgen: %w: no timestamp is left in %v", ErrTimeRange, g.layout)
		case p.state.CompareAndSwap(state, (stepAfter-p.base)<<usedBits|wordAfter):
			if g.steps == 0 && word%lookEvery < n*words {
				g.lookSometimes()
			}
			return share{p, n, step, word}, nil
		}
	}
}

func putV4(u *uuid.UUID, random []byte) {
	binary.BigEndian.PutUint64(u[:8], binary.BigEndian.Uint64(random)&^0xf000|0x4000)
	binary.BigEndian.PutUint64(u[8:], binary.BigEndian.Uint64(random[8:])&^(0b11<<62)|variantBits)
}
