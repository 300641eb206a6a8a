package uuidgen

import (
	"time"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/internal/stock"
)

// lookEvery is how many words of a page are used between two looks at the clock, if ids do not need
// the time.
const lookEvery = 128

// look reads the system's wall clock. If the clock says that the process may be a copy, the random
// bytes in stock are discarded.
func (g *Generator) look() time.Time {
	fork.Check()
	now := g.system.Now()
	elapsed := time.Since(started)
	// Unsigned, so that a clock that goes back counts: a bubble of testing/synctest has another
	// monotonic clock.
	idle := uint64(elapsed-time.Duration(g.looked.Swap(int64(elapsed)))) >= uint64(stock.MaxIdle)
	steps := g.system.Steps()
	if g.stepped.Swap(steps) != steps || idle {
		p := g.page.Load()
		p.copied.Store(true)
		p.close()
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
