package convert

import (
	"math"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// tracker knows up to which _id every document is done while batches of them are worked on at the same time and end in
// any sequence. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	next     int // the first batch that is not done
	batches  map[int]*progressOf
	position bson.RawValue

	// Entries that an earlier run left from floor on are wanted until batch floorUntil is done.
	floor      int64
	floorUntil int
}

type progressOf struct {
	last   bson.RawValue // _id of the batch's last document
	start  int64         // of its first entry in the undo log
	logged bool
	done   bool
}

func newTracker() *tracker { return &tracker{batches: make(map[int]*progressOf), floorUntil: -1} }

// hold keeps the undo log's entries from offset on until release.
func (t *tracker) hold(offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floor, t.floorUntil = offset, math.MaxInt
}

// release says that the held entries are of documents in the batches up to n.
func (t *tracker) release(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floorUntil = n
}

// begin notes a batch; batches have the numbers 0, 1, 2 and so on.
func (t *tracker) begin(n int, last bson.RawValue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches[n] = &progressOf{last: last}
}

// logged notes where batch n's entries in the undo log begin. write is called while no checkpoint is taken.
func (t *tracker) logged(n int, write func() (int64, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	start, err := write()
	if b := t.batches[n]; err == nil && !b.logged {
		b.start, b.logged = start, true
	}
	return err
}

// done notes that all of batch n is done.
func (t *tracker) done(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches[n].done = true
	for b := t.batches[t.next]; b != nil && b.done; b = t.batches[t.next] {
		t.position = b.last
		delete(t.batches, t.next)
		t.next++
	}
}

// complete reports whether every batch that was begun is done.
func (t *tracker) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.batches) == 0
}

// checkpoint returns the _id up to which all is done, and from where on the undo log, which is size octets long, may have
// entries of documents after it. Batches that are done but have others before them count as not done: their documents
// will be read again.
func (t *tracker) checkpoint(size func() int64) (position bson.RawValue, undoOffset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	undoOffset = size()
	if t.next <= t.floorUntil {
		undoOffset = min(undoOffset, t.floor)
	}
	for _, b := range t.batches {
		if b.logged {
			undoOffset = min(undoOffset, b.start)
		}
	}
	return t.position, undoOffset
}
