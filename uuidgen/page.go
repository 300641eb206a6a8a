package uuidgen

import "sync/atomic"

// A page is what ids are drawn from: a run of timestamps and a stock of random octets. One compare-and-swap of its state
// takes an id's share of both, so that neither a lock nor a second such step is needed.
//
// A page comes after another when that one's random octets are used up, when it is renewed, or when the clock has gone
// further than its state can count. Every timestamp of a page is greater than those of the pages before it.
type page struct {
	base uint64 // the timestamp that state counts from

	// The word that every id writes has a cache line to itself.
	_     [56]byte
	state atomic.Uint64 // the next timestamp after base, and in the low usedBits the number of words used
	_     [56]byte

	octets [pageWords * 8]byte
}

const (
	usedBits = 10
	usedMask = 1<<usedBits - 1
	maxNext  = 1<<(64-usedBits) - 1

	// pageWords is even, for version 4, below usedMask, which says closed, and makes a page 8192 octets, which is a size
	// that the allocator has.
	pageWords = 1008
)

// newPage returns a page that starts at timestamp 0. With a reader nothing is held in stock, and it has timestamps only.
func (g *Generator) newPage() (*page, error) {
	p := new(page)
	if g.reader == nil {
		if err := g.random(p.octets[:]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// pageAfter replaces p unless another goroutine has done so.
func (g *Generator) pageAfter(p *page, now uint64) error {
	g.pageMu.Lock()
	defer g.pageMu.Unlock()
	if g.page.Load() != p {
		return nil
	}
	return g.replacePage(now)
}

// replacePage sets a new page, which starts at now or where the last one ended, whichever is later. The caller holds
// pageMu.
func (g *Generator) replacePage(now uint64) error {
	p, err := g.newPage()
	if err != nil {
		return err
	}
	p.base = max(now, g.page.Load().close())
	g.page.Store(p)
	return nil
}

// close makes the page give no more ids and returns the timestamp after its last.
func (p *page) close() uint64 {
	return p.base + p.state.Or(usedMask)>>usedBits
}
