package scan

import (
	"container/heap"
	"math"
)

// sketchSize is the number of distinct values in a sketch.
const sketchSize = 1024

// octetHash holds a random number for each value of a byte.
var octetHash = func() (t [256]uint64) {
	state := uint64(0x62736f6e69647331)
	for i := range t {
		state += 0x9e3779b97f4a7c15
		t[i] = mix(state)
	}
	return t
}()

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hash is the same for a UUID in every byte order, because it does not depend on the order of the
// bytes. Sketches of the same ids in different representations therefore keep the same ids.
func hash(v [16]byte) uint64 {
	var sum uint64
	for _, octet := range v {
		sum += octetHash[octet]
	}
	return mix(sum)
}

// sketch keeps the distinct values with the least hashes. They are a random sample of the distinct
// values, which does not depend on the order and number of the values. The memory is bounded. A
// sketch is not safe for concurrent use.
type sketch struct {
	entries entries // a heap with the greatest hash first
	held    map[[16]byte]struct{}
	full    bool // values have been rejected
}

type entry struct {
	hash  uint64
	value [16]byte
}

type entries []entry

func (e entries) Len() int           { return len(e) }
func (e entries) Less(i, j int) bool { return e[i].hash > e[j].hash }
func (e entries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)        { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s *sketch) add(v [16]byte) {
	h := hash(v)
	if len(s.entries) == sketchSize && h >= s.entries[0].hash {
		if _, held := s.held[v]; !held {
			s.full = true
		}
		return
	}
	if _, held := s.held[v]; held {
		return
	}
	if s.held == nil {
		s.held = make(map[[16]byte]struct{})
	}
	s.held[v] = struct{}{}
	heap.Push(&s.entries, entry{h, v})
	if len(s.entries) > sketchSize {
		s.drop()
		s.full = true
	}
}

// drop removes the value with the greatest hash.
func (s *sketch) drop() { delete(s.held, heap.Pop(&s.entries).(entry).value) }

// limit returns the hash below which the sketch has all values that were added.
func (s *sketch) limit() uint64 {
	if !s.full {
		return math.MaxUint64
	}
	return s.entries[0].hash
}

// distinct returns the approximate number of distinct values that were added. It is exact up to
// sketchSize, and has a relative error of about 1/√sketchSize above.
func (s *sketch) distinct() int64 {
	if !s.full {
		return int64(len(s.entries))
	}
	return int64(float64(len(s.entries)-1) / (float64(s.limit()) / math.MaxUint64))
}
