package uuidgen

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/bsonids/bsonids/internal/stock"
)

// drawRandom fills b from the Generator's reader, or from the system's source if it has none.
func (g *Generator) drawRandom(b []byte) error {
	draw := stock.KeyStream
	if g.reader != nil {
		g.readerMu.Lock()
		defer g.readerMu.Unlock()
		draw = func(b []byte) error { _, err := io.ReadFull(g.reader, b); return err }
	}
	if err := draw(b); err != nil {
		return fmt.Errorf("%s: random source: %w", g.layout.pkg, err)
	}
	return nil
}

// maxDraws is how many random numbers in a row may be zero where zero is not allowed.
const maxDraws = 8

// drawIDs fills b with the random bytes of ids. Where a node would be zero, they are drawn again.
func (g *Generator) drawIDs(b []byte) error {
	if err := g.drawRandom(b); err != nil || !g.layout.sequence {
		return err
	}
	const node = 1<<nodeBits - 1
	for ; len(b) > 0; b = b[8:] {
		for draws := 1; (binary.BigEndian.Uint64(b)&g.layout.random|g.layout.fixed)&node == 0; draws++ {
			if draws == maxDraws {
				return fmt.Errorf("%s: the random source gives nothing but zeros", g.layout.pkg)
			}
			if err := g.drawRandom(b[:8]); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxInterrupted is how often a Fill starts again at most.
const maxInterrupted = 8

// bulk is how many ids get random bytes of their own, not those of the page. A key for them costs
// 0.6 µs.
const bulk = 256

// A buffer holds the random bytes of ids while these are made.
type buffer [8 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}
