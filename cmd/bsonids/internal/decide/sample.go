package decide

import (
	"encoding/binary"
	"math/rand/v2"
)

// sampled is how many values of a field are kept.
const sampled = 256

// sample has distinct values of one field at random, the same whatever their order: those with the least
// hashes.
type sample struct {
	values [][16]byte
	hashes []uint64
	last   int // the one with the greatest hash, if there are as many as are kept
}

func (s *sample) add(v [16]byte) {
	h := rand.NewPCG(binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:])).Uint64()
	if len(s.values) < sampled {
		s.values, s.hashes = append(s.values, v), append(s.hashes, h)
	} else if h < s.hashes[s.last] {
		s.values[s.last], s.hashes[s.last] = v, h
	} else {
		return
	}
	for i, h := range s.hashes {
		if h > s.hashes[s.last] {
			s.last = i
		}
	}
}
