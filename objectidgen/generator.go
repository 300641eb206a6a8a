package objectidgen

import (
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/clock"
	"github.com/bsonids/bsonids/internal/order"
)

// Generator makes ObjectIDs. Use [NewGenerator] to make a Generator, or [Default] for the one of the process. It is safe
// for concurrent use and must not be copied. The zero Generator makes no ids: methods that return an error return one, and
// NewObjectID, Fill and ObjectIDs panic.
//
// These rules hold for all ids of one Generator, except those of [Generator.NewObjectIDAt], whatever its clock shows:
//
//   - No id is made twice.
//   - Ids form orders. Within one order the process value is constant, and the counter grows by 1 with each id, also
//     from one second to the next; 0 follows 0xFFFFFF. A new order draws both again.
//   - Within one order the timestamp never decreases. An id is therefore greater than those of its order whose calls
//     returned before its call began, as [Compare] and MongoDB order them, unless the counter passes 0xFFFFFF in the
//     same second. The ids of one [Generator.Fill] lie in one order: when another one interrupts it, it starts again.
//
// # Order
//
// A new order begins with [Generator.Renew], and by itself in these cases; [Generator.Orders] tells:
//
//   - The clock is behind its highest reading in the order by more than [WithMaxRollback] allows, one minute by default.
//     The timestamp then goes back to the clock's time. A clock that showed a wrong time for a moment has no lasting
//     effect, and ids that were made faster than seconds pass do not end an order.
//   - The process was copied; see the section "Copies of a process".
//   - The 2^24 ids of a second are used up, and the clock stands still for as long as [WithMaxWait] allows, or there is
//     no later second that the timestamp can hold.
//
// The process value of a new order is none of the last 1024 values that the Generator used, so that ids differ although a
// timestamp may come again. If no random source gives one, it is the next value that was not used.
//
// # Clock
//
// When 2^24 ids have been made with one timestamp, the next one depends on the clock. If the clock shows a later second,
// that is taken. If it shows the same second, the call waits and asks the clock again, at least every 5 ms. If the clock shows an earlier second, the timestamp
// plus 1 is taken without waiting.
//
// A time of the clock before 1970-01-01T00:00:00Z counts as the first second, and one after 2106-02-07T06:28:15Z as the
// last.
//
// Without WithClock the time is that of [time.Now]. It is read through the monotonic clock, which is compared with the
// wall clock every millisecond: when the wall clock is set, the Generator follows within that time.
//
// # Copies of a process
//
// A process that is started again draws a new
// process value. A copy of a running process begins with the process value and the counter of the original, and a
// Generator notices this as follows:
//
//   - fork(2): on Linux 4.14 and later before the first id, by a page of memory that the kernel clears. On other systems
//     the process id is compared every millisecond, or for every id with [WithClock].
//   - A snapshot of a virtual machine or a checkpoint of a process that is restored: at the next comparison of the wall
//     clock with the monotonic clock, which comes within a millisecond of the monotonic clock. They disagree if
//     one continued where it was and the other shows the present. In many virtual machines both continue, until
//     a time service sets the wall clock; the copy is noticed then, if the clock is set by 2 ms or more at once (on
//     systems other than Linux by 50 ms and a thousandth of the time since the last comparison). With WithClock it is
//     not noticed.
//
// Before that, ids can repeat: those of calls that were in progress when the copy was made, and those that the original
// and the copy make until the comparison. With the clock already set, these are the ids of one millisecond.
//
// A copy that no clock gives away is never noticed: one in which both clocks continue and are adjusted slowly, or both
// show the present. [Generator.Renew] is the only guarantee. If you restore snapshots, call it in each copy before the
// first insert, in the hook that your platform offers.
//
// The kernel's random source is copied with a virtual machine, too. Unless the kernel is told of the copy (by a VM
// generation ID, since Linux 5.18), it returns the same bytes in all copies for up to a minute. What a Generator draws is
// therefore combined with the time to the nanosecond, which tells copies apart as far as their clocks do.
//
// The clocks also disagree after the wall clock was set or the machine was asleep. A Generator then begins a new order
// although it was not copied, which does no harm. The ids of [Generator.NewObjectIDAt] keep their order in a copy; their
// numbers jump ahead, so that copies differ.
//
// It implements the sections "Timestamp Field", "Random Value" and "Counter" of the document "ObjectID format".
type Generator struct {
	current atomic.Pointer[second]

	now         func() time.Time // nil: the system's clock
	system      clock.Clock
	maxRollback uint64 // seconds
	maxWait     time.Duration
	width       uint64      // ids a second, a power of two: 2^24, less in tests
	hook        func(point) // called where goroutines may meet; nil except in tests

	mu       sync.Mutex // held to change current and what follows
	random   io.Reader
	used     [][5]byte // the process values of the past, the last one at the end
	instants instants  // of NewObjectIDAt
}

// NewGenerator returns a Generator with a process value and a first counter that are drawn from [crypto/rand] if no option says
// otherwise. The specification asks for one process value per process: use [Default] unless there is a reason for
// another Generator. NewGenerator does not ask the clock.
//
// An invalid option is an error. If the random source fails or ends, its error, [io.EOF] or [io.ErrUnexpectedEOF] is
// wrapped.
func NewGenerator(opts ...Option) (*Generator, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	g := &Generator{now: c.now, maxRollback: uint64(c.maxRollback / time.Second), maxWait: c.maxWait, width: 1 << 24,
		random: c.random}
	g.system.Start()
	origin := g.system.Origin() // before the draw: a fork in between makes it old
	g.instants.origin = origin
	if c.started {
		g.startInstants(startOf(c.start.number() + 1<<24)) // the process value plus 1
	} else if c.start, err = drawStart(g.random); err != nil {
		return nil, err
	}
	g.current.Store(newSecond(beforeAll, c.start, order.First(), origin))
	return g, nil
}

// NewObjectID returns the next ObjectID. It waits if 2^24 ids have been made in the current second; see [Generator]. It
// does not allocate.
func (g *Generator) NewObjectID() bson.ObjectID {
	cur, n, _ := g.draw(1, true)
	return cur.id(n, g.width)
}

// Fill sets each element of ids to a new ObjectID, in increasing order as described for [Generator], and in one order unless
// that reaches the last second, 2106-02-07T06:28:15Z. It is much faster than one call for each id. Ids of other goroutines
// may lie in between. The clock is asked once for every 4096 ids. It waits as NewObjectID does, and does not allocate.
func (g *Generator) Fill(ids []bson.ObjectID) {
	if len(ids) == 0 {
		return
	}
	cur, n, count := g.draw(uint64(min(len(ids), chunk)), true)
	first, interrupted := cur.order, 0
	for rest := ids; len(rest) > 0; {
		cur.fill(rest[:count], n, g.width)
		if rest = rest[count:]; len(rest) == 0 {
			return
		}
		want := len(rest)
		if interrupted == 0 {
			want = min(want, chunk)
		}
		if cur, n, count = g.draw(uint64(want), interrupted == 0); cur.order != first && interrupted < maxInterrupted {
			first, rest = cur.order, ids
			interrupted++
		}
	}
}

// ObjectIDs returns an iterator over n new ids; with n below 1 there are none. Up to 256 ids are drawn at once, when the
// first of them is asked for; those left over when the loop ends early are discarded.
func (g *Generator) ObjectIDs(n int) iter.Seq[bson.ObjectID] {
	return func(yield func(bson.ObjectID) bool) {
		for left := n; left > 0; {
			cur, first, count := g.draw(uint64(min(left, block)), true)
			for i := range count {
				if !yield(cur.id(first+i, g.width)) {
					return
				}
			}
			left -= int(count)
		}
	}
}

// NewID returns what NewObjectID does, a [bson.ObjectID]; the only error is that of the zero Generator. It makes a
// Generator a source of ids for package autoid.
func (g *Generator) NewID() (any, error) {
	if g.current.Load() == nil {
		return nil, errNotMade
	}
	return g.NewObjectID(), nil
}

// Ahead returns how far the second of the last id begins after the clock's time: 0 unless the clock was set back. See
// [WithMaxRollback].
func (g *Generator) Ahead() time.Duration {
	cur := g.current.Load()
	if cur == nil || cur.seconds == beforeAll {
		return 0
	}
	// The system's clock is not asked by g.read: whoever does that must deal with what the clock shows.
	now := time.Now
	if ns, ok := g.system.Read(); ok {
		now = func() time.Time { return time.Unix(0, int64(ns)) }
	} else if g.now != nil {
		now = g.now
	}
	// A time before 1970 counts as that instant.
	if t := now(); t.Unix() >= 0 {
		return max(0, time.Unix(cur.seconds, 0).Sub(t))
	}
	return time.Duration(cur.seconds) * time.Second
}

// Orders returns how many orders of ids the Generator has begun: 1 until the first new one. Ids that were drawn while it
// was the same are in one order. It is 0 for the zero Generator.
func (g *Generator) Orders() uint64 {
	cur := g.current.Load()
	if cur == nil {
		return 0
	}
	return cur.order.Number()
}

var (
	// defaultGenerator is the result of makeDefault, or nil before its first call. Loading it costs less than that call.
	defaultGenerator atomic.Pointer[Generator]

	makeDefault = sync.OnceValue(func() *Generator {
		g, err := NewGenerator()
		if err != nil {
			panic(err) // not reached: crypto/rand ends the program if it fails
		}
		defaultGenerator.Store(g)
		return g
	})
)

// Default returns the Generator of the process, which is always the same. Its random values are drawn from
// [crypto/rand] at the first use, not when the package is initialized.
func Default() *Generator {
	if g := defaultGenerator.Load(); g != nil {
		return g
	}
	return makeDefault()
}

// NewObjectID returns the next ObjectID of [Default]. It cannot fail: [crypto/rand] ends the program rather than return an
// error, a time that the timestamp cannot hold is clamped, and a clock that stands still ends the wait in a new order.
func NewObjectID() bson.ObjectID {
	return Default().NewObjectID()
}
