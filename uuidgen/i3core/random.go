package i3core

import (
	"encoding/binary"

	"github.com/google/uuid"
)

const formatRandom = "random"

// Random is the fields of a random UUID, version 4, with the custom byte in which an application
// may store the kind of its UUIDs. Only the maker knows if the byte was stored or is random. It is
// a plain value, safe to copy.
//
//	memory  0–7 little-endian               8–9 big-endian    10–15 big-endian
//	        version:4 custom:8 random:52    10:2 random:14    random:48
//
// It is "Random UUID Format" and "Custom Data Field" of the document. A Generator from
// [NewRandomGenerator] makes them.
type Random struct {
	Custom   byte
	Random52 uint64 // bytes 0–6
	Random14 uint16 // bytes 8–9
	Random48 uint64 // bytes 10–15
}

// validate returns a [*uuidgen.FieldError] for a field that is wider than its bits.
func (f Random) validate() error {
	for _, err := range [...]error{
		fits(formatRandom, "random (52 bits)", f.Random52, 52),
		fits(formatRandom, "random (14 bits)", uint64(f.Random14), 14),
		fits(formatRandom, "random (48 bits)", f.Random48, 48),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// UUID puts the fields together. A field that is wider than its bits is a [*uuidgen.FieldError].
func (f Random) UUID() (uuid.UUID, error) {
	if err := f.validate(); err != nil {
		return uuid.Nil, err
	}
	return f.join(), nil
}

func (f Random) join() uuid.UUID {
	i := ietf{low: uint64(f.Custom)<<52 | f.Random52, mid: f.Random14}
	var node [8]byte
	binary.BigEndian.PutUint64(node[:], f.Random48)
	copy(i.node[:], node[2:])
	return i.join(versionRand)
}

// DecodeRandom returns the fields of u. NULL is [ErrNull], another version or variant a
// [*uuidgen.FieldError].
func DecodeRandom(u uuid.UUID) (Random, error) {
	i, err := split(u, formatRandom, versionRand)
	if err != nil {
		return Random{}, err
	}
	var node [8]byte
	copy(node[2:], i.node[:])
	return Random{byte(i.low >> 52), i.low & (1<<52 - 1), i.mid, binary.BigEndian.Uint64(node[:])}, nil
}
