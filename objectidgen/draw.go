package objectidgen

import (
	"time"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/internal/wait"
)

const (
	// chunk is how many ids Fill takes at once: enough for the clock and the atomic addition not to count, few enough
	// for the timestamp to be right within microseconds.
	chunk = 4096

	// block is the same for ObjectIDs, which discards what is not asked for.
	block = 256

	// maxInterrupted is how often Fill starts again at most. Only in the last second that a timestamp can hold, and if
	// other goroutines renew the generator without end, it comes to that.
	maxInterrupted = 4
)

// reading is a reading of the clock.
type reading struct {
	time    time.Time
	seconds int64 // its second, clamped to the timestamp's range
}

// read asks the clock. The caller must deal with a step that is found, since others then see the clock as compared.
func (g *Generator) read() reading {
	now := g.now
	if now == nil {
		now = g.system.Now
	}
	t := now()
	return reading{t, min(max(t.Unix(), 0), lastSecond)}
}

// draw takes up to want ids, 1 at least: those with the numbers n to n+count-1 of the returned second. Without a look at
// the clock, no new order begins unless another goroutine looks.
func (g *Generator) draw(want uint64, look bool) (cur *second, n, count uint64) {
	cur = g.current.Load()
	if cur == nil {
		panic(errNotMade)
	}
	if !look {
		g.at(pointBlind) // the clock counts as behind
	} else if g.now != nil {
		cur = g.turn(cur)
	} else if ns, ok := g.system.At(g.system.Elapsed()); !ok || ns >= cur.end || fork.Generation() != cur.origin.Fork() {
		cur = g.turn(cur)
	}
	for {
		if n = cur.taken.Load(); n >= g.width {
			cur = g.next(cur, look)
			continue
		}
		g.at(pointTake)
		count = min(want, g.width-n)
		if cur.taken.CompareAndSwap(n, n+count) {
			return cur, n, count
		}
		g.stepAside()
	}
}

// stepAside keeps a goroutine that met another one away from what they share, for as long as some dozens of ids take.
// Two cores that take ids in turns spend most of their time on passing the counter on; this way each makes many in a
// row. The time must not end it alone: it stands still in a bubble of testing/synctest.
func (g *Generator) stepAside() {
	begin := time.Now()
	for i := 0; i < 80 && time.Since(begin) < 2*time.Microsecond; i++ {
	}
}

// turn returns the second in use after it has been replaced, if the clock or a copy of the process demands that.
func (g *Generator) turn(cur *second) *second {
	for {
		highest := cur.order.Highest()
		now := g.read()
		continues := g.continues(cur, now, highest)
		if continues && now.seconds <= cur.seconds && !g.copied(cur) {
			return cur
		}
		g.at(pointTurn)
		g.mu.Lock()
		// A reading counts for the second that was in use when the clock was asked.
		current := g.current.Load()
		if current == cur {
			defer g.mu.Unlock()
			return g.moveTo(cur, now.seconds, continues)
		}
		g.mu.Unlock()
		cur = current
	}
}

// continues reports whether a reading of the clock belongs to the order of cur. The clock was asked after the highest
// reading of that order was the given one.
func (g *Generator) continues(cur *second, now reading, highest uint64) bool {
	return cur.order.Continues(uint64(now.seconds), highest, g.maxRollback)
}

// next returns the second after cur, whose ids are all taken, or which is closed. It waits if there is none yet.
func (g *Generator) next(cur *second, look bool) *second {
	next, err := wait.For(g.maxWait, "objectidgen", func() (*second, bool, error) {
		next := g.follow(cur, look, false)
		if next == nil {
			g.at(pointWait)
		}
		return next, next != nil, nil
	})
	if err != nil {
		return g.follow(cur, look, true)
	}
	return next
}

// follow returns the second after cur, or nil if the clock shows the second of cur and the wait is not over.
func (g *Generator) follow(cur *second, look, over bool) *second {
	g.at(pointNext)
	g.mu.Lock()
	defer g.mu.Unlock()
	if current := g.current.Load(); current != cur {
		return current
	}
	// The clock is asked here, after cur was found used up, and not before: a reading from before cur began would look
	// like a clock that was set back.
	now := reading{seconds: cur.seconds}
	if look {
		highest := cur.order.Highest()
		now = g.read()
		if continues := g.continues(cur, now, highest); !continues || now.seconds > cur.seconds || g.copied(cur) {
			return g.moveTo(cur, now.seconds, continues)
		}
	}
	switch {
	case look && now.time.Unix() == cur.seconds && !over:
		return nil
	case now.time.Unix() < cur.seconds && cur.seconds < lastSecond:
		return g.moveTo(cur, cur.seconds+1, true)
	}
	// The clock stands still, or no second is left.
	return g.renew(cur, now.seconds)
}

// moveTo replaces cur by the second that is due if it is later, and renews the generator if a new order begins or the
// process was copied. It needs mu.
func (g *Generator) moveTo(cur *second, due int64, continues bool) *second {
	if continues {
		due = max(due, cur.seconds)
	}
	if !continues || g.copied(cur) {
		return g.renew(cur, due)
	}
	return g.replace(cur, func(taken uint64) *second { return cur.after(due, taken, g.width) })
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
	pointBlind                // before draw takes ids without a look at the clock
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
