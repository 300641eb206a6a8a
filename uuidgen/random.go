package uuidgen

import (
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
		return fmt.Errorf("uuidgen: random source: %w", err)
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
