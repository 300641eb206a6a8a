package objectidgen

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Generator makes ObjectIDs. [New] makes one, [Default] is the process's; the zero value is not ready for use. It is
// safe for concurrent use by any number of goroutines and must not be copied.
//
// What it promises, for all ids of one Generator, whichever of its methods made them and whatever its clock does:
//
//   - No id comes twice.
//   - The counter of every id is that of the id before plus 1, also from one second to the next; 0xFFFFFF is followed
//     by 0x000000.
//   - The timestamp never decreases. So an id is greater than the one before, in the order of [Compare] and of
//     MongoDB, as long as the counter does not pass from 0xFFFFFF to 0x000000 within one second. Calls that run at
//     the same time fall into some order; one that begins after another has returned comes after it.
//
// For that it never makes more than 2^24 ids with one timestamp, and tells three cases apart when it has made them:
//
//   - The clock shows a later second: that is the next timestamp.
//   - The clock shows the same second: it waits, and asks the clock again until it shows another. It yields the
//     processor in between, and sleeps for up to 5 ms where asking does not move the clock. A clock of [WithClock]
//     that stands still for ever keeps it waiting for ever.
//   - The clock shows an earlier second, because it was set back: the next timestamp is the one in use plus 1, without
//     waiting. The clock may never come back to it, or not for hours.
//
// A clock that steps back while the second in use has ids left changes nothing: the second is kept until the clock is
// past it. That holds for a clock that was ahead by mistake, too: until it has caught up with itself the ids keep the
// time that it showed, and only a new Generator goes back.
//
// A clock before 1970 counts as 1970-01-01T00:00:00Z, one after 2106-02-07T06:28:15Z as that. When the ids of that last
// second are used up there are no more: [ErrTimeExhausted].
//
// [Generator.Renew] keeps the first promise; it says what becomes of the other two.
//
// Without WithClock the time is [time.Now], read when the second in use ends and at least every 100 ms; in between the
// monotonic clock says how far it has moved on. A system clock that somebody sets is therefore noticed after at most
// 100 ms.
//
// It implements "Timestamp Field", "Random Value" and "Counter" of the document "ObjectID format".
type Generator struct {
	current atomic.Pointer[second]

	clock  func() time.Time
	cached bool        // the monotonic clock stands in for clock, which is the system's
	epoch  time.Time   // where the monotonic clock is counted from
	width  uint64      // ids a second, a power of two: 2^24, less in tests
	hook   func(point) // called where goroutines may meet; nil but in tests

	mu     sync.Mutex // held to replace current
	random io.Reader
}

// Option changes what [New] makes. It may be given to several calls of New.
type Option func(*settings)

type settings struct {
	clock   func() time.Time
	cached  bool
	random  io.Reader
	started bool
	start   start
	err     error
}

// WithClock takes the time from now in place of the system's clock. It is asked for every id (by Fill, for every 4096)
// and again while an id waits for the next second. It must be safe for concurrent use where the generator is used
// concurrently, must not call the generator, and may step back, stand still or leave the timestamp's range: see
// [Generator]. A nil function is an error of New.
func WithClock(now func() time.Time) Option {
	return func(s *settings) {
		s.clock, s.cached = now, false
		if now == nil {
			s.err = errors.New("objectidgen: WithClock(nil)")
		}
	}
}

// WithRandom takes random octets from r in place of [crypto/rand.Reader]: 8 for New and 8 for each Renew, the first 5
// of them the process value and the last 3 the counter of the first id, big-endian. Where the process value is one that
// Renew must not take, it reads 8 more, up to 32 in all. A Generator reads from it by one call at a time. A nil reader
// is an error of New, as is one that fails or ends early.
func WithRandom(r io.Reader) Option {
	return func(s *settings) {
		s.random = r
		if r == nil {
			s.err = errors.New("objectidgen: WithRandom(nil)")
		}
	}
}

// WithStart sets the process value, and the counter of the first id, to get the same ids again in a test: nothing
// random is read until Renew. Two generators that start alike make the same ids: keep it out of production. A counter
// above 16777215 is an error of New, [ErrCounterRange].
func WithStart(process [5]byte, counter uint32) Option {
	return func(s *settings) {
		s.started = true
		s.start = start{process, counter}
		if counter > lastCounter {
			s.err = fmt.Errorf("objectidgen: WithStart with counter %d: %w", counter, ErrCounterRange)
		}
	}
}

// New returns a generator with a process value and a counter of its own, drawn from [crypto/rand] unless an option
// says otherwise. The specification wants one process value per process: unless there is a reason for a generator of
// one's own, use [Default]. The clock is not asked before the first id.
//
// An option that cannot be followed is an error, and so is a random source that fails or ends before it has given 8
// octets: the source's error, or [io.EOF] or [io.ErrUnexpectedEOF], is in the chain.
func New(opts ...Option) (*Generator, error) {
	s := settings{clock: time.Now, cached: true, random: rand.Reader}
	for _, opt := range opts {
		opt(&s)
	}
	if s.err != nil {
		return nil, s.err
	}
	g := &Generator{clock: s.clock, cached: s.cached, epoch: time.Now(), width: 1 << 24, random: s.random}
	if !s.started {
		var err error
		if s.start, err = drawStart(g.random); err != nil {
			return nil, err
		}
	}
	g.current.Store(newSecond(beforeAll, s.start, 0))
	return g, nil
}

// NewObjectID returns the next ObjectID. It waits where 2^24 ids have been made with the clock's second; see
// [Generator]. It panics with [ErrTimeExhausted] when the last second of the timestamp, 2106-02-07T06:28:15Z, is used
// up; [Generator.NewID] returns that as an error. It does not allocate.
func (g *Generator) NewObjectID() bson.ObjectID {
	cur, n, _, err := g.draw(1)
	if err != nil {
		panic(err)
	}
	return cur.id(n, g.width)
}

// Fill sets every element of ids to a new ObjectID, in increasing order as [Generator] says, much faster than by one
// call each. Ids made by other goroutines may come in between. The clock is asked once for every 4096 ids.
//
// It waits and panics as [Generator.NewObjectID] does; after a panic the elements that got an id have it, from the
// front, and the rest are as they were. It does not allocate.
func (g *Generator) Fill(ids []bson.ObjectID) {
	for len(ids) > 0 {
		cur, n, count, err := g.draw(uint64(min(len(ids), chunk)))
		if err != nil {
			panic(err)
		}
		cur.fill(ids[:count], n, g.width)
		ids = ids[count:]
	}
}

// NewID returns the next ObjectID, a [bson.ObjectID], as NewObjectID does, but [ErrTimeExhausted] as an error. It
// makes a Generator a source of ids for package autoid.
func (g *Generator) NewID() (any, error) {
	cur, n, _, err := g.draw(1)
	if err != nil {
		return nil, err
	}
	return cur.id(n, g.width), nil
}

// Renew draws the process value and the counter afresh, as a new process would: for a program that goes on after its
// memory was copied, by a restored snapshot of its virtual machine for instance. It may run at the same time as any
// other method; calls that begin after it has returned use the new values.
//
// No id comes twice after it either: the new process value differs from every one that was used with the timestamp in
// use, and no earlier timestamp comes back. The counter goes on from its new value. Ids with that one timestamp may
// sort below those made before Renew, since the process value stands before the counter; ids with later timestamps
// sort above, as always.
//
// A random source that fails, ends early, or does not give another process value is an error, and the generator goes
// on as it was.
func (g *Generator) Renew() error {
	g.at(pointRenew)
	g.mu.Lock()
	defer g.mu.Unlock()
	cur := g.current.Load()
	used := append(slices.Clone(cur.renewed), cur.process)
	for range 4 {
		s, err := drawStart(g.random)
		if err != nil {
			return err
		}
		if slices.Contains(used, s.process) {
			continue
		}
		next := newSecond(cur.seconds, s, cur.until.Load())
		next.renewed = used
		g.replace(cur, func(uint64) *second { return next })
		return nil
	}
	return errors.New("objectidgen: the random source gives the same process value again and again")
}

var (
	// defaultGenerator is what makeDefault has made, or nil: a call of makeDefault costs more than this load.
	defaultGenerator atomic.Pointer[Generator]

	makeDefault = sync.OnceValue(func() *Generator {
		g, err := New()
		if err != nil {
			panic(err)
		}
		defaultGenerator.Store(g)
		return g
	})
)

// Default returns the generator of the process, always the same. Its random values are drawn from [crypto/rand] at
// the first use, not when the package is loaded; where the system has no random source that panics, as [crypto/rand]
// itself does.
func Default() *Generator {
	if g := defaultGenerator.Load(); g != nil {
		return g
	}
	return makeDefault()
}

// NewObjectID returns the next ObjectID of [Default]; it waits and panics as [Generator.NewObjectID] does.
func NewObjectID() bson.ObjectID {
	return Default().NewObjectID()
}

// start is what is random in a generator.
type start struct {
	process [5]byte
	counter uint32 // of the first id
}

func drawStart(random io.Reader) (start, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return start{}, fmt.Errorf("objectidgen: reading 8 random octets: %w", err)
	}
	return start{
		process: [5]byte(b[:5]),
		counter: uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7]),
	}, nil
}
