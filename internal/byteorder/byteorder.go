// Package byteorder holds the two orders in which drivers stored the bytes of a UUID in binary
// subtype 3, apart from the order of RFC 9562.
package byteorder

import (
	"encoding/binary"
	"math/bits"
)

// The values of uuidrep.Representation whose byte order is not that of RFC 9562. Package uuidrep
// checks that they are.
const (
	CSharpLegacy = 2
	JavaLegacy   = 3
)

// Words permutes the bytes 0–7 and 8–15 of a UUID, read as big-endian words, to the order of the
// representation r, or back: each order is its own inverse. Other values of r change nothing.
func Words(r uint8, hi, lo uint64) (uint64, uint64) {
	switch r {
	case CSharpLegacy:
		// Reversing all eight bytes reverses each of the three groups, and their sequence too.
		hi = bits.ReverseBytes64(hi)
		hi = hi<<32 | uint64(bits.RotateLeft32(uint32(hi>>32), 16))
	case JavaLegacy:
		hi, lo = bits.ReverseBytes64(hi), bits.ReverseBytes64(lo)
	}
	return hi, lo
}

// Permute sets the 16 bytes of dst to those of src in the order of the representation r, or back.
// The two may be the same slice.
func Permute(dst, src []byte, r uint8) {
	hi, lo := Words(r, binary.BigEndian.Uint64(src[:8]), binary.BigEndian.Uint64(src[8:16]))
	binary.BigEndian.PutUint64(dst[:8], hi)
	binary.BigEndian.PutUint64(dst[8:16], lo)
}
