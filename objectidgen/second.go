package objectidgen

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	// beforeAll is the second in use before the first id: every second of a clock is later.
	beforeAll = -1

	// closed is set in second.taken when no more ids may be taken.
	closed = 1 << 63

	// chunk is how many ids Fill takes at once: enough for the clock and the atomic addition not to count, few enough
	// for the timestamp to be right within microseconds.
	chunk = 4096

	// nap is how long a wait lasts before the clock is asked again, where the clock does not move by being asked.
	nap = 5 * time.Millisecond

	// recheck is how long the monotonic clock stands in for the system's.
	recheck = 100 * time.Millisecond
)

// second is one timestamp with the ids made of it. All but until and taken is fixed. Closing keeps further ids from
// being taken and tells, once and for all, how many were, so that the following second goes on with exactly the next
// counter.
type second struct {
	seconds int64     // beforeAll, or 0 to lastSecond
	start   uint32    // the counter of the first id
	process [5]byte   // its process value
	high    uint64    // octets 0 to 7 of every id
	low     uint32    // octet 8 of every id, as the top octet
	renewed [][5]byte // the process values that were used with this timestamp before; nil without Renew

	// until is where the monotonic clock stands when the system's clock must be read again.
	until atomic.Int64

	// taken is how many ids were taken, with closed where that is final.
	taken atomic.Uint64
}

func newSecond(seconds int64, s start, until int64) *second {
	next := &second{
		seconds: seconds,
		start:   s.counter,
		process: s.process,
		high:    uint64(seconds)<<32 | uint64(binary.BigEndian.Uint32(s.process[:4])),
		low:     uint32(s.process[4]) << 24,
	}
	next.until.Store(until)
	return next
}

// id returns the id number n of the second, counted from 0.
func (s *second) id(n, width uint64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint64(id[0:8], s.high)
	binary.BigEndian.PutUint32(id[8:12], s.low|(s.start+uint32(n))&uint32(width-1))
	return id
}

// fill sets ids to those from number n on.
func (s *second) fill(ids []bson.ObjectID, n, width uint64) {
	high, low, mask := s.high, s.low, uint32(width-1)
	counter := s.start + uint32(n)
	for i := range ids {
		id := &ids[i]
		binary.BigEndian.PutUint64(id[0:8], high)
		binary.BigEndian.PutUint32(id[8:12], low|counter&mask)
		counter++
	}
}

// fresh reports whether the system's clock need not be read again when the monotonic clock stands at mono. One that is
// far behind until is not the one that until was set by, but that of another machine on which the process was restored.
func (s *second) fresh(mono time.Duration) bool {
	left := s.until.Load() - int64(mono)
	return left > 0 && left <= int64(recheck)
}

// reading is what a look at the clock tells.
type reading struct {
	time    time.Time
	seconds int64 // its second, clamped to the timestamp's range
	until   int64 // when to look again
}

// read asks the clock.
func (g *Generator) read() reading {
	// The monotonic clock is read first, so that the end of the second is not put too late.
	var mono time.Duration
	if g.cached {
		mono = time.Since(g.epoch)
	}
	now := g.clock()
	return reading{now, clamp(now.Unix()), int64(mono + min(untilNext(now), recheck))}
}

// untilNext is how far t is from the next second.
func untilNext(t time.Time) time.Duration {
	return time.Second - time.Duration(t.Nanosecond())
}

func clamp(seconds int64) int64 {
	return min(max(seconds, 0), lastSecond)
}

// draw takes up to want ids, 1 at least: those with the numbers n to n+count-1 of the returned second.
func (g *Generator) draw(want uint64) (cur *second, n, count uint64, err error) {
	cur = g.current.Load()
	if !g.cached || !cur.fresh(time.Since(g.epoch)) {
		if now := g.read(); g.cached || now.seconds > cur.seconds {
			cur = g.turn(now)
		}
	}
	for {
		if n = cur.taken.Load(); n >= g.width {
			if cur, err = g.next(cur); err != nil {
				return nil, 0, 0, err
			}
			continue
		}
		g.at(pointTake)
		count = min(want, g.width-n)
		if cur.taken.CompareAndSwap(n, n+count) {
			return cur, n, count, nil
		}
		g.stepAside()
	}
}

// stepAside keeps a goroutine that met another one away from what they share, for as long as some dozens of ids take.
// Two cores that take ids in turns spend most of their time on handing the counter over; this way each makes many in a
// row. The time must not end it alone: it stands still in a bubble of testing/synctest.
func (g *Generator) stepAside() {
	begin := time.Since(g.epoch)
	for i := 0; i < 80 && time.Since(g.epoch)-begin < 2*time.Microsecond; i++ {
	}
}

// turn replaces the second in use by that of the reading where it is later, and returns the one in use then. Another
// goroutine may have replaced it since the clock was read: that is the one to compare with.
func (g *Generator) turn(now reading) *second {
	g.at(pointTurn)
	g.mu.Lock()
	defer g.mu.Unlock()
	cur := g.current.Load()
	if now.seconds > cur.seconds {
		return g.move(cur, now.seconds, now.until)
	}
	cur.until.Store(now.until)
	return cur
}

// next returns the second after cur, whose ids are all taken, or which is closed. It waits where there is none yet.
func (g *Generator) next(cur *second) (*second, error) {
	var last time.Time
	for still := 0; ; still++ {
		next, now, err := g.follow(cur)
		if next != nil || err != nil {
			return next, err
		}
		g.at(pointWait)
		if !now.Equal(last) {
			last, still = now, 0
		}
		switch {
		case g.cached:
			time.Sleep(min(untilNext(now), nap))
		case still < 100: // moves, perhaps because it is asked
			runtime.Gosched()
		default:
			time.Sleep(nap)
		}
	}
}

// follow returns the second after cur, or none and the clock's time where that is still the second of cur.
func (g *Generator) follow(cur *second) (*second, time.Time, error) {
	g.at(pointNext)
	g.mu.Lock()
	defer g.mu.Unlock()
	if current := g.current.Load(); current != cur {
		return current, time.Time{}, nil
	}
	// The clock is asked here, after cur was found used up, and not before: a reading from before cur began would look
	// like a clock that was set back.
	now := g.read()
	switch {
	case now.seconds > cur.seconds:
		return g.move(cur, now.seconds, now.until), now.time, nil
	case cur.seconds == lastSecond:
		return nil, now.time, ErrTimeExhausted
	case now.time.Unix() < cur.seconds:
		return g.move(cur, cur.seconds+1, now.until), now.time, nil
	}
	return nil, now.time, nil
}

// move replaces cur by a later second, which goes on with the counter. It needs mu.
func (g *Generator) move(cur *second, seconds, until int64) *second {
	return g.replace(cur, func(taken uint64) *second {
		counter := (uint64(cur.start) + taken) & (g.width - 1)
		return newSecond(seconds, start{cur.process, uint32(counter)}, until)
	})
}

// replace closes cur, which must be the current second, and puts in its place what successor returns for the number
// of ids that were taken of it. It needs mu.
func (g *Generator) replace(cur *second, successor func(taken uint64) *second) *second {
	g.at(pointClose)
	taken := cur.taken.Or(closed)
	g.at(pointReplace)
	next := successor(taken)
	g.current.Store(next)
	return next
}

// point is a place between two accesses to what goroutines share. The model test lets another goroutine run there;
// the clock is such a place too.
type point uint8

const (
	pointTurn    point = iota // before turn locks mu
	pointNext                 // before follow does
	pointRenew                // before Renew does
	pointTake                 // between looking how many ids are taken and taking some
	pointWait                 // before follow is called again
	pointClose                // before the current second is closed
	pointReplace              // between that and its replacement
)

func (g *Generator) at(p point) {
	if g.hook != nil {
		g.hook(p)
	}
}
