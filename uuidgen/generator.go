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
	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/order"
	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/wait"
	"github.com/bsonids/bsonids/uuidrep"
)

// A Generator makes UUIDs of one version. It is safe for concurrent use and must not be copied. The
// zero Generator makes none: its methods return an error. Packages peabody01 and i3core make
// Generators for the formats of two older documents; where these differ from what follows, the
// function that makes the Generator says so.
//
// # Order
//
// Ids of versions 6, 7 and 8 form orders. Within one order they are strictly increasing: an id is
// greater than every id of the same Generator and order whose call returned before its own began, on
// any goroutine, and the ids of one [Generator.Fill] lie in one order and increase by index.
//
// There is one order as long as the clock is not behind its highest reading by more than
// [WithMaxRollback] allows, one minute by default. If it is, because it was set back or was wrong for
// a moment, a new order begins at the clock's time, with fresh random bits. [Generator.Renew] begins
// one, too. [Generator.Orders] tells how many there were. The ids of [Generator.NewUUIDAt] have an
// order of their own, which only Renew ends.
//
// This is method 3 of RFC 9562, section 6.2: the timestamp is as fine as the layout allows, 100 ns
// in version 6 and 244 ns (1/4096 ms) in versions 7 and 8. If the clock has not advanced since the
// last id, the next id has the last timestamp plus one step. All bits after the timestamp are random
// in every id. The RFC's stable store (section 6.3) and node ids for distributed generation
// (section 6.4) are optional, and are left out.
//
// # Ahead of the clock
//
// Timestamps run ahead of the clock while ids are drawn faster than steps pass: 4,096,000 a second
// in versions 7 and 8, 10,000,000 in version 6. A Fill of 100,000 ids of version 7 ends 25 ms
// ahead. They also stay ahead after the clock was set back by less than the limit, until it is there
// again. [Generator.Ahead] reports how far, [WithMaxAhead] limits it, and Renew ends it. However far
// they run, they do not end an order: only readings of the clock count.
//
// # Copies of a process
//
// Without [WithRandom], random bits come from a stock whose key is from the system's source (crypto/rand).
// An id tells nothing about other ids to anyone who cannot read the memory of the process, except that
// [Generator.NewUUIDAt] counts. An id is still not a secret, and an id in the order of time tells its
// age.
//
// A copy of a process has the same stock. A Generator notices a fork before the next id, and a restored
// snapshot when the clocks show it. A copy that no clock gives away is not noticed: call [Generator.Renew]
// in it before the next id. The page docs/copies-of-a-process.md of the repository says what can repeat
// until then.
//
// # The standard library's type
//
// Go 1.27 has a uuid.UUID in its standard library. An id becomes one by a conversion, and a source for
// inserts by autoid.SourceFunc; [Time], [TimeV8] and [CompareTime] take it as it is:
//
//	autoid.SourceFunc(func() (any, error) {
//		id, err := ids.NewUUID()
//		return uuid.UUID(id), err // the standard library's
//	})
type Generator struct {
	machine *serial.Machine // of a format of another package; nil, and layout too, in the zero Generator

	layout      *layout // nil with a machine
	steps       uint64  // how many timestamps an id takes: 1, or 0 in version 4
	words       uint64  // how many words of 8 random bytes an id takes: 1, or 2 in version 4
	maxAhead    uint64  // in steps
	maxRollback uint64  // in steps
	maxWait     time.Duration

	now     func() time.Time // nil: the system clock
	system  clock.Clock
	looked  atomic.Int64  // when the system clock was last looked at, on the monotonic clock since started
	stepped atomic.Uint64 // how many steps it had made

	reader   io.Reader // nil: the system's source
	readerMu sync.Mutex

	order atomic.Pointer[order.Order]
	page  atomic.Pointer[page]
	fixed atomic.Uint64 // the fixed bits of the last page

	instants instants // of NewUUIDAt
}

var started = time.Now()

// NewV4Generator returns a Generator of random UUIDs (RFC 9562, section 5.4). The only option is
// [WithRandom]. An invalid option is an error.
//
// An id has 122 random bits:
//
//	0       8       16      24      32
//	+-------------------------------+
//	|            random             |   0
//	+---------------+----+----------+
//	|    random     | 4  |  random  |  32
//	+--+------------+----+----------+
//	|10|           random           |  64
//	+--+----------------------------+
//	|            random             |  96
//	+-------------------------------+
func NewV4Generator(opts ...Option) (*Generator, error) {
	c, err := newConfig(layoutV4, opts, "WithRandom")
	if err != nil {
		return nil, err
	}
	return newGenerator(layoutV4, c), nil
}

// NewV6Generator returns a Generator of UUIDs in the order of time that hold the timestamp of
// version 1, with a random clock sequence and node in every id (RFC 9562, section 5.6). An invalid
// option is an error.
//
// An id has the number of 100 ns since 1582-10-15T00:00:00Z, most significant bits first, then a clock
// sequence and a node. Both are random and drawn anew for every id, as the section recommends. The multicast bit of the node, m, is 1, which no MAC address has (section
// 6.10). The last instant is in the year 5236.
//
//	0       8       16      24      32
//	+-------------------------------+
//	|        time, bits 59-28       |   0
//	+---------------+----+----------+
//	|  time, 27-12  | 6  | time 11-0|  32
//	+--+------------+----+----------+
//	|10|  clock seq |    node    m  |  64
//	+--+------------+---------------+
//	|              node             |  96
//	+-------------------------------+
func NewV6Generator(opts ...Option) (*Generator, error) { return newTimeGenerator(layoutV6, opts) }

// NewV7Generator returns a Generator of UUIDs in the order of Unix time (RFC 9562, section 5.7). An
// invalid option is an error.
//
// An id has the milliseconds since 1970-01-01T00:00:00Z, then the 4096ths of a millisecond (section 6.2, method 3), then random bits. The last instant is in the year 10889.
//
//	0       8       16      24      32
//	+-------------------------------+
//	|       milliseconds, 47-16     |   0
//	+---------------+----+----------+
//	|  ms, bits 15-0| 7  | fraction |  32
//	+--+------------+----+----------+
//	|10|           random           |  64
//	+--+----------------------------+
//	|            random             |  96
//	+-------------------------------+
func NewV7Generator(opts ...Option) (*Generator, error) { return newTimeGenerator(layoutV7, opts) }

// NewV8Generator returns a Generator of UUIDs of version 8 (RFC 9562, section 5.8) whose stored
// bytes are in the order of time if the field has the representation r: CSharpLegacy or JavaLegacy.
// The ids of version 7 are not in order there. [TimeV8] reads the time of such an id; [Time] and
// the bounds of version 7 do not. NewID returns a [uuidrep.CSharpLegacyUUID] or
// [uuidrep.JavaLegacyUUID], which is stored in this representation whatever the registry says.
// Another representation, and an invalid option, is an error.
//
// An id has the timestamp of version 7 and random bits, arranged so that the bytes which the
// representation stores are in the order of time. The bits are those of the stored bytes:
//
//	csharpLegacy   0–55        56–59  60–63       64–65  66–127
//	               timestamp   ver 8  timestamp   var    random
//	javaLegacy     0–7         8–11   12–63       64–119 120–121 122–127
//	               timestamp   ver 8  timestamp   random var     random
func NewV8Generator(r uuidrep.Representation, opts ...Option) (*Generator, error) {
	l, err := layoutV8(r)
	if err != nil {
		return nil, err
	}
	return newTimeGenerator(l, opts)
}

func init() {
	idoption.NewGenerator = func(c *idoption.Config) any { return newFormatGenerator(c) }
}

// newFormatGenerator returns a Generator of a format of package peabody01 or i3core.
func newFormatGenerator(c *idoption.Config) *Generator {
	if c.Machine != nil {
		return &Generator{machine: c.Machine}
	}
	return newGenerator(layoutV6.withNode(c), c)
}

func newTimeGenerator(l *layout, opts []Option) (*Generator, error) {
	c, err := newConfig(l, opts, "WithClock", "WithRandom", "WithMaxAhead", "WithMaxRollback", "WithMaxWait")
	if err != nil {
		return nil, err
	}
	return newGenerator(l, c), nil
}

func newGenerator(l *layout, c *idoption.Config) *Generator {
	g := &Generator{layout: l, steps: 1, words: 1, maxAhead: l.steps(c.MaxAhead), maxRollback: l.steps(c.MaxRollback),
		maxWait: c.MaxWait, now: c.Now, reader: c.Random}
	if l == layoutV4 {
		g.steps, g.words = 0, 2
	}
	g.system.Start()
	g.instants.stock.Start(c.Random)
	g.order.Store(order.First())
	g.page.Store(noPage)
	return g
}

// NewUUID returns the next id. The errors are [ErrTimeRange], if the clock is out of the version's
// range, [ErrWait], and that of the random source; the id is then the nil UUID.
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
	if g.layout == nil {
		return g.machine.Next()
	}
	r, err := g.read()
	if err != nil {
		return u, err
	}
	for g.layout != layoutV4 && g.reader == nil {
		p := g.page.Load()
		state := p.state.Load()
		word, step := state&usedMask, max(p.base+state>>usedBits, r.step)
		if word >= pageWords || step >= min(p.base+maxNext, maxTimestamps, r.step+g.maxAhead) || p.order != r.order ||
			p.generation != fork.Generation() {
			break
		}
		if !p.state.CompareAndSwap(state, (step+1-p.base)<<usedBits|(word+1)) {
			continue
		}
		if g.layout.version == 8 {
			g.layout.putV8(&u, step, p.random[word*8:])
		} else {
			g.layout.put(&u, step, p.random[word*8:], p.fixed)
		}
		return u, nil
	}
	var ids [1]uuid.UUID
	_, _, err = g.fill(ids[:], r)
	return ids[0], err
}

// Fill sets every element of ids to a new id, increasing by index in versions 6, 7 and 8: when a new
// order interrupts it, it starts again. An id of a large batch of version 7 costs about an eighth of
// a single one. Ids that other goroutines draw at the same time may lie between those of the batch.
// The errors are those of [Generator.NewUUID], and [ErrWait] if new orders interrupt it again and
// again; all of ids is then set to the nil UUID.
func (g *Generator) Fill(ids []uuid.UUID) error {
	if g.layout == nil {
		return g.machine.Fill(ids)
	}
	err := g.fillAll(ids)
	if err != nil {
		clear(ids)
	}
	return err
}

func (g *Generator) fillAll(ids []uuid.UUID) error {
	var r reading
	var first *order.Order
	interrupted := 0
	for rest := ids; len(rest) > 0; {
		// After an interruption the clock is not asked again: it may begin a new order every time.
		if interrupted == 0 || r.order != g.order.Load() {
			var err error
			if r, err = g.read(); err != nil {
				return err
			}
		}
		n, in, err := g.fill(rest, r)
		if err != nil {
			return err
		}
		if len(rest) < len(ids) && in != first && g.steps != 0 {
			if interrupted++; interrupted > maxInterrupted {
				return fmt.Errorf("%s: %w: new orders interrupt the batch", g.layout.pkg, ErrWait)
			}
			rest = ids
			continue
		}
		first, rest = in, rest[n:]
	}
	return nil
}

// UUIDs returns an iterator over n new ids, increasing in versions 6, 7 and 8; with n below 1 there
// are none. Up to 256 ids are drawn at once, when the first of them is asked for; those left over
// when the loop ends early are discarded. After an error, which is that of [Generator.NewUUID] and
// comes with the nil UUID, the iteration ends.
func (g *Generator) UUIDs(n int) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		atOnce := bulk
		if g.layout == nil {
			atOnce = 1
		}
		ids := make([]uuid.UUID, min(max(n, 0), atOnce))
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

// fill sets the first n elements of ids, at least one, none of them before the reading, in one order.
func (g *Generator) fill(ids []uuid.UUID, r reading) (n uint64, in *order.Order, err error) {
	s, err := g.take(uint64(len(ids)), r)
	if err != nil {
		return 0, nil, err
	}
	ids = ids[:s.n]
	if s.words > 0 {
		g.put(ids, s.step, s.page.random[s.word*8:], s.page.fixed)
		return s.n, s.page.order, nil
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for step := s.step; len(ids) > 0; {
		n := min(len(ids), len(buf)/int(8*g.words))
		random := buf[:n*int(8*g.words)]
		if err := g.drawIDs(random); err != nil {
			return 0, nil, err
		}
		g.put(ids[:n], step, random, s.page.fixed)
		ids, step = ids[n:], step+uint64(n)
	}
	return s.n, s.page.order, nil
}

// put writes ids with the timestamps from step on, and the fixed bits of their page.
func (g *Generator) put(ids []uuid.UUID, step uint64, random []byte, fixed uint64) {
	l := g.layout
	switch {
	case l == layoutV4:
		for i := range ids {
			putV4(&ids[i], random)
			random = random[16:]
		}
	case l.version == 8:
		for i := range ids {
			l.putV8(&ids[i], step, random)
			random = random[8:]
			step++
		}
	default:
		for i := range ids {
			l.put(&ids[i], step, random, fixed)
			random = random[8:]
			step++
		}
	}
}

// NewID returns the next id as a [uuid.UUID], or as the field type of the representation in version
// 8, and as a [uuidrep.CSharpLegacyUUID] in the formats of package i3core: a Generator is a source of
// ids for package autoid. The errors are those of [Generator.NewUUID].
func (g *Generator) NewID() (any, error) {
	id, err := g.NewUUID()
	if err != nil {
		return nil, err
	}
	switch g.layout {
	case nil:
		return g.machine.ID(id), nil
	case layoutV8CSharp:
		return uuidrep.CSharpLegacyUUID{UUID: id}, nil
	case layoutV8Java:
		return uuidrep.JavaLegacyUUID{UUID: id}, nil
	}
	return id, nil
}

// Renew makes the Generator begin a new order: it discards its random bytes, and the next timestamp
// is that of the clock, also when the timestamps before were ahead of it. The numbers of
// [Generator.NewUUIDAt] begin anew, too. No id that is begun after Renew returns shares random bits
// with a copy of the process made before. Ids made before may be greater than those made after, if
// the timestamps were ahead.
//
// Call it in a process that was restored from a snapshot or a checkpoint, before the next id. The
// only errors are that of the zero Generator and those of two formats of package i3core, sequential and
// notifier; the Generator then goes on as before.
func (g *Generator) Renew() error {
	if g.layout == nil {
		return g.machine.Renew()
	}
	g.instants.renew()
	for o := g.order.Load(); !g.begin(o, o.Next(0)); {
		o = g.order.Load()
	}
	return nil
}

// begin replaces the order from by the order to, unless another one is present, and discards the
// page of the order before.
func (g *Generator) begin(from, to *order.Order) bool {
	if !g.order.CompareAndSwap(from, to) {
		return false
	}
	for p := g.page.Load(); p != noPage && p.order.Number() < to.Number(); p = g.page.Load() {
		p.close()
		g.page.CompareAndSwap(p, noPage)
	}
	return true
}

// Orders returns how many orders of ids the Generator has begun: 1 until the first new one. Ids that
// were drawn while it was the same are in one order. It is 0 in version 4 and the random format of
// package i3core, whose ids have no order, and for the zero Generator.
func (g *Generator) Orders() uint64 {
	switch {
	case g.layout == nil:
		return g.machine.Orders()
	case g.steps == 0:
		return 0
	}
	return g.order.Load().Number()
}

// Ahead returns how far the timestamp of the last id is ahead of the clock, to a step of the
// timestamp; zero if it is not, in random formats, and before the first id. In the formats of packages
// peabody01 and i3core it is the longest Duration if the clock is out of their range or measures no
// time.
func (g *Generator) Ahead() time.Duration {
	switch {
	case g.layout == nil:
		return g.machine.Ahead()
	case g.steps == 0:
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

// A reading is a reading of the clock, as a timestamp, and the order to which it belongs.
type reading struct {
	step  uint64
	order *order.Order
}

// read asks the clock, and begins a new order if it was set back too far. In version 4 it does not
// ask.
func (g *Generator) read() (reading, error) {
	for {
		o := g.order.Load()
		if g.steps == 0 {
			return reading{order: o}, nil
		}
		if g.now == nil {
			// A clock that was set shows in look, once a millisecond.
			if ns, ok := g.system.Read(); ok {
				return reading{step: g.layout.timestampOf(ns), order: o}, nil
			}
		}
		highest := o.Highest()
		now := g.now
		if now == nil {
			now = g.look
		} else {
			g.lookSometimes()
		}
		step, err := g.layout.timestamp(now())
		if err != nil {
			return reading{}, err
		}
		if o.Continues(step, highest, g.maxRollback) {
			return reading{step: step, order: o}, nil
		}
		if next := o.Next(step); g.begin(o, next) {
			return reading{step: step, order: next}, nil
		}
	}
}

// A share is reserved for n ids: n timestamps from step on, and a number of words of random bytes from
// word on. If the number is 0, the random bytes are not those of the page.
type share struct {
	page                 *page
	n, step, word, words uint64
}

var (
	errAtLimit  = errors.New("at the limit of WithMaxAhead")
	errNewOrder = errors.New("another order began")
)

// take reserves n ids, at least one and at most the given number, none of them before the reading.
// At the limit of WithMaxAhead it waits.
func (g *Generator) take(most uint64, r reading) (share, error) {
	s, err := g.tryTake(most, r)
	for err == errNewOrder {
		if r, err = g.read(); err == nil {
			s, err = g.tryTake(most, r)
		}
	}
	if err != errAtLimit {
		return s, err
	}
	return wait.For(g.maxWait, g.layout.pkg, func() (share, bool, error) {
		r, err := g.read()
		if err != nil {
			return share{}, false, err
		}
		s, err := g.tryTake(most, r)
		if err == errAtLimit || err == errNewOrder {
			return share{}, false, nil
		}
		return s, err == nil, err
	})
}

func (g *Generator) tryTake(most uint64, r reading) (share, error) {
	for {
		p := g.page.Load()
		if p.order != r.order {
			if g.order.Load() != r.order {
				return share{}, errNewOrder
			}
			if err := g.pageAfter(p, r); err != nil {
				return share{}, err
			}
			continue
		}
		state := p.state.Load()
		n, word, step := most, state&usedMask, max(p.base+state>>usedBits, r.step)
		limit := max(r.step, r.order.Highest()) + g.maxAhead
		if step > limit {
			return share{}, errAtLimit
		}
		words := g.words
		if g.steps != 0 {
			n = min(n, limit-step+1)
		}
		if g.reader != nil || n >= bulk {
			words = 0 // a key of their own
		} else if word < pageWords {
			n = min(n, (pageWords-word)/words)
		}
		wordAfter, stepAfter := word+n*words, step+n*g.steps
		switch {
		case wordAfter > pageWords || stepAfter > p.base+maxNext || p.generation != fork.Generation():
			if err := g.pageAfter(p, r); err != nil {
				return share{}, err
			}
		case stepAfter > maxTimestamps:
			return share{}, fmt.Errorf("%s: %w: no timestamp is left in %v", g.layout.pkg, ErrTimeRange, g.layout)
		case p.state.CompareAndSwap(state, (stepAfter-p.base)<<usedBits|wordAfter):
			if g.steps == 0 && word%lookEvery < n*words {
				g.lookSometimes()
			}
			return share{p, n, step, word, words}, nil
		}
	}
}

func putV4(u *uuid.UUID, random []byte) {
	binary.BigEndian.PutUint64(u[:8], binary.BigEndian.Uint64(random)&^0xf000|0x4000)
	binary.BigEndian.PutUint64(u[8:], binary.BigEndian.Uint64(random[8:])&^(0b11<<62)|variantBits)
}
