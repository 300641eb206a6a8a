package fork

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"time"
)

// start has a monotonic reading.
var start = time.Now()

// Reader is a source of random bytes like [rand.Reader], which also differ in copies of a machine.
//
// Two copies of a virtual machine that are restored from one snapshot have the same state of the kernel's random source,
// until the kernel is told (by a VM generation ID, since Linux 5.18) or seeds it again after a minute. Until then
// rand.Reader returns the same bytes in both. Reader combines them with what the wall clock and the monotonic clock show
// to the nanosecond, which is enough to tell copies apart and adds nothing to secrecy.
var Reader io.Reader = reader{}

type reader struct{}

func (reader) Read(p []byte) (int, error) {
	n, err := io.ReadFull(rand.Reader, p) // rand.Read ends the program on an error
	var input [24]byte
	now := time.Now()
	binary.BigEndian.PutUint64(input[:], uint64(now.UnixNano()))
	binary.BigEndian.PutUint64(input[8:], uint64(now.Sub(start)))
	for i := 0; i < n; i += sha256.Size {
		binary.BigEndian.PutUint64(input[16:], uint64(i))
		pad := sha256.Sum256(input[:])
		for j := range min(n-i, len(pad)) {
			p[i+j] ^= pad[j]
		}
	}
	return n, err
}
