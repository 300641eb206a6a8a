package convert

import (
	"math"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// tracker tracks the _id up to which all documents are done. Batches may be processed concurrently
// and end in any order. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	next     int // the first batch that is not done
	batches  map[int]*progressOf
	position bson.RawValue
	counts   Totals // of the batches before next

	// Entries of an earlier run from offset floor on are needed until batch floorUntil is done.
	floor      int64
	floorUntil int
}

type progressOf struct {
	last   bson.RawValue // _id of the last document
	start  int64         // offset in the undo log at which the first entry begins, or a smaller one
	logged bool
	done   bool
	counts Totals
}

// Totals are the numbers of documents and of values that a conversion has read, changed or left unchanged.
type Totals struct{ Read, Changed, Values, Skipped int64 }

func (t *Totals) add(o Totals) {
	t.Read, t.Changed, t.Values, t.Skipped = t.Read+o.Read, t.Changed+o.Changed, t.Values+o.Values, t.Skipped+o.Skipped
}

func newTracker() *tracker { return &tracker{batches: make(map[int]*progressOf), floorUntil: -1} }

// hold keeps the undo offset at offset or below until release.
func (t *tracker) hold(offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floor, t.floorUntil = offset, math.MaxInt
}

// release ends a hold once the batches up to n are done.
func (t *tracker) release(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floorUntil = n
}

// begin adds batch n. Batches are numbered from 0. last is the _id of the last document.
func (t *tracker) begin(n int, last bson.RawValue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches[n] = &progressOf{last: last}
}

// log records that entries of batch n are about to be written to the undo log, whose size in bytes
// the function size returns.
func (t *tracker) log(n int, size func() int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.batches[n]; !b.logged {
		b.start, b.logged = size(), true
	}
}

// done records that batch n is done, and what was done.
func (t *tracker) done(n int, c Totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches[n].done, t.batches[n].counts = true, c
	for b := t.batches[t.next]; b != nil && b.done; b = t.batches[t.next] {
		t.position = b.last
		t.counts.add(b.counts)
		delete(t.batches, t.next)
		t.next++
	}
}

// complete reports whether every batch that was started is done.
func (t *tracker) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.batches) == 0
}

// checkpoint is how far a conversion has come.
type checkpoint struct {
	position bson.RawValue // the _id up to which all documents are done
	offset   int64         // the undo log may have entries about later documents from here on
	counts   Totals        // of the documents up to the position
}

// checkpoint returns how far the batches have come. size returns the size of the undo log in bytes. A
// batch that is done counts only if all batches before it are done. Otherwise its documents are
// read again after an interruption.
func (t *tracker) checkpoint(size func() int64) checkpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := checkpoint{t.position, size(), t.counts}
	if t.next <= t.floorUntil {
		at.offset = min(at.offset, t.floor)
	}
	for _, b := range t.batches {
		if b.logged {
			at.offset = min(at.offset, b.start)
		}
	}
	return at
}
