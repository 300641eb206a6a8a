package peabody01

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// The formats share this: bytes 0–7 end in "ver" (bits 48–51) and 12 more bits; bytes 8–15 begin
// with "var" (bits 64–65) and leave 62 bits for the rest of the timestamp, the sequence and the
// node.
const (
	variant  = 0b10
	restBits = 62
	restMask = 1<<restBits - 1
)

func join(version, top48, low12, rest uint64) uuid.UUID {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[0:], top48<<16|version<<12|low12)
	binary.BigEndian.PutUint64(u[8:], variant<<restBits|rest)
	return u
}

func split(u uuid.UUID, version int) (top48, low12, rest uint64, err error) {
	hi, lo := binary.BigEndian.Uint64(u[0:]), binary.BigEndian.Uint64(u[8:])
	if got := hi >> 12 & 0xF; got != uint64(version) {
		return 0, 0, 0, fieldError(version, "ver", got, "the version")
	}
	if got := lo >> restBits; got != variant {
		return 0, 0, 0, fieldError(version, "var", got, "binary 10")
	}
	return hi >> 16, hi & 0xFFF, lo & restMask, nil
}

// machineID returns the top bits of a node that is width bits wide.
func machineID(node uint64, width, bits int) uint64 {
	if bits <= 0 || bits > width {
		return 0
	}
	return node >> (width - bits)
}
