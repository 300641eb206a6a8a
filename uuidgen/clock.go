package uuidgen

import (
	"time"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/uuidgen/internal/monotonic"
)

const (
	// maxIdle is how old the last look at the clock may be. After a longer time the process may be
	// a copy that was restored with both clocks at the present, which nothing else tells from one
	// that was idle.
	maxIdle = time.Second

	// lookEvery is how many words of a page are used between two looks at the clock, if ids do not
	// need the time.
	lookEvery = 128
)

// look reads the system's wall clock. If the clock says that the process may be a copy, the random
// bytes in stock are discarded.
func (g *Generator) look() time.Time {
	fork.Check()
	now := g.system.Now()
	elapsed := time.Since(started)
	// Unsigned, so that a clock that goes back counts: a bubble of testing/synctest has another
	// monotonic clock.
	idle := uint64(elapsed-time.Duration(g.looked.Swap(int64(elapsed)))) >= uint64(maxIdle)
	steps := g.system.Steps()
	if g.stepped.Swap(steps) != steps || idle {
		g.page.Load().close()
		g.atMu.Lock()
		g.at = monotonic.Counter{}
		g.atMu.Unlock()
	}
	return now
}

// lookSometimes does what reading the system's clock for a timestamp does, if ids do not need its
// time.
func (g *Generator) lookSometimes() {
	if g.reader != nil || g.now == nil && g.steps != 0 {
		return
	}
	if _, ok := g.system.Read(); !ok {
		g.look()
	}
}
