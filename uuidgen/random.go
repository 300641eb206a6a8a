package uuidgen

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
)

// random fills octets from the Generator's reader or, where it has none, with the key stream of AES-256 in counter mode
// under a key of the system's source. The key serves this once, so that the counter may start at zero.
func (g *Generator) random(octets []byte) error {
	if g.reader != nil {
		g.readerMu.Lock()
		defer g.readerMu.Unlock()
		return readFull(g.reader, octets)
	}
	var key [32]byte
	if err := readFull(rand.Reader, key[:]); err != nil {
		return err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return fmt.Errorf("uuidgen: random source: %w", err)
	}
	clear(octets)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(octets, octets)
	return nil
}

func readFull(r io.Reader, octets []byte) error {
	if _, err := io.ReadFull(r, octets); err != nil {
		return fmt.Errorf("uuidgen: random source: %w", err)
	}
	return nil
}

// bulk is how many ids are worth a key of their own, which costs 0.6 µs: they leave the page's octets to single ids.
const bulk = 256

// A buffer holds the random octets of ids while these are made, and then nothing of use.
type buffer [8 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}
