package uuidgen

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/internal/order"
)

// A page has timestamps and random bytes for many ids. One compare-and-swap of its state takes the share
// of an id.
//
// Another page follows when the random bytes are used up, when the process may be a copy, when a new
// order begins, or when the clock has gone further than the state can count. Every timestamp of a
// page is greater than those of the pages before it in the same order.
type page struct {
	order      *order.Order
	base       uint64      // the timestamp that state counts from
	generation uint64      // of package fork: another one means that the process is a copy
	fixed      uint64      // the bits of the last eight bytes that the ids have in common, in versions 6 and 7
	copied     atomic.Bool // the process may be a copy

	// The word that every id writes has a cache line to itself.
	_     [28]byte
	state atomic.Uint64 // the next timestamp after base, and in the low usedBits the number of words used
	_     [56]byte

	random [pageWords * 8]byte
}

const (
	usedBits = 10
	usedMask = 1<<usedBits - 1
	maxNext  = 1<<(64-usedBits) - 1

	// pageWords is even, for version 4, below usedMask, which says closed, and makes a page 8192
	// bytes, which is a size that the allocator has.
	pageWords = 1008
)

// noPage is closed. It stands before the first page, so that a Generator that is not used costs
// little.
var noPage = func() *page {
	p := new(page)
	p.state.Store(usedMask)
	return p
}()

// pageAfter replaces p unless another goroutine has done so, by a page for the order of a reading. It
// starts at the reading, or where p ended if that is later and in the same order. No lock is held: if
// a thread holds one while the process is forked, the child waits for ever.
func (g *Generator) pageAfter(p *page, r reading) error {
	g.lookSometimes()
	q := &page{order: r.order, generation: fork.Generation()} // before the random bytes are drawn
	if g.reader == nil {
		if err := g.drawIDs(q.random[:]); err != nil {
			return err
		}
	}
	var err error
	if q.fixed, err = g.fixedAfter(p, q); err != nil {
		return err
	}
	q.base = r.step
	if end := p.close(); p.order == r.order {
		q.base = max(q.base, end)
	}
	if g.page.CompareAndSwap(p, q) {
		g.fixed.Store(q.fixed)
	}
	return nil
}

// fixedAfter returns the fixed bits of q, the page after p. A clock sequence is that of p, or another one if the two are not in
// one order or the process may be a copy (RFC 4122, section 4.1.5).
func (g *Generator) fixedAfter(p, q *page) (uint64, error) {
	if !g.layout.sequence {
		return g.layout.fixed, nil
	}
	if p != noPage && p.order == q.order && p.generation == q.generation && !p.copied.Load() {
		return p.fixed, nil
	}
	var random [8]byte
	if err := g.drawRandom(random[:]); err != nil {
		return 0, err
	}
	fixed := g.layout.fixed | binary.BigEndian.Uint64(random[:])<<nodeBits&anyVariant
	if fixed == g.fixed.Load() {
		fixed ^= 1 << nodeBits
	}
	return fixed, nil
}

// close makes the page give no more ids and returns the timestamp after its last.
func (p *page) close() uint64 {
	return p.base + p.state.Or(usedMask)>>usedBits
}
