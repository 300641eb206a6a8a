package uuidgen

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"io"
	"sync"

	"github.com/bsonids/bsonids/internal/fork"
)

// systemRandom is the source of Generators that have none of their own. It differs in copies of a
// machine whose kernels give the same bytes.
var systemRandom = fork.Reader

// drawRandom fills b from the Generator's reader. If it has none, b becomes the key stream of
// AES-256 in counter mode under a key of the system's source. The key is used only here, so that
// the counter may start at zero.
func (g *Generator) drawRandom(b []byte) error {
	if g.reader != nil {
		g.readerMu.Lock()
		defer g.readerMu.Unlock()
		return readFull(g.reader, b)
	}
	var key [32]byte
	if err := readFull(systemRandom, key[:]); err != nil {
		return err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return fmt.Errorf("uuidgen: random source: %w", err)
	}
	clear(b)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(b, b)
	return nil
}

func readFull(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return fmt.Errorf("uuidgen: random source: %w", err)
	}
	return nil
}

// bulk is how many ids get random bytes of their own, not those of the page. A key for them costs
// 0.6 µs.
const bulk = 256

// A buffer holds the random bytes of ids while these are made.
type buffer [8 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}
