// Package hashset implements a set of byte strings that stores only their hashes.
package hashset

import "hash/maphash"

// Set is a set of byte strings. It stores their 64-bit hashes in an open-addressed table that is at
// most 3/4 full: 10.7 to 21.4 bytes for each string. The probability that a string that was not
// added is reported as a member is the number of strings / 2⁶²: 2·10⁻¹² for ten million strings. A
// Set is not safe for concurrent use. A nil Set is empty, and stays empty.
type Set struct {
	seed  maphash.Seed
	table []uint64 // 0 is an empty slot; the last bit of another is its mark
	// The numbers of strings, and of those that are marked.
	len, marked int
}

// Most is the maximum number of strings in a set: 64 million, in a table of 1 GiB.
const Most = 1 << 26

// New returns an empty set.
func New() *Set { return &Set{seed: maphash.MakeSeed(), table: make([]uint64, 1<<10)} }

// Has reports whether b was added.
func (s *Set) Has(b []byte) bool {
	if s == nil {
		return false
	}
	_, ok := s.find(s.hash(b))
	return ok
}

// Mark marks b, and reports whether it was added. It is safe to mark b again.
func (s *Set) Mark(b []byte) bool {
	if s == nil {
		return false
	}
	place, ok := s.find(s.hash(b))
	if ok && s.table[place]&1 == 0 {
		s.table[place] |= 1
		s.marked++
	}
	return ok
}

// Marked reports whether b was added and marked.
func (s *Set) Marked(b []byte) bool {
	if s == nil {
		return false
	}
	place, ok := s.find(s.hash(b))
	return ok && s.table[place]&1 == 1
}

// AllMarked reports whether every string is marked.
func (s *Set) AllMarked() bool { return s == nil || s.marked == s.len }

// Full reports whether the set is full.
func (s *Set) Full() bool { return s != nil && s.len >= Most }

// Add adds b and reports whether it was added. It is not if it is in the set already, or if the set
// is full.
func (s *Set) Add(b []byte) bool {
	if s == nil {
		return false
	}
	h := s.hash(b)
	place, ok := s.find(h)
	if ok || s.Full() {
		return false
	}
	s.table[place] = h
	if s.len++; s.len > len(s.table)/4*3 {
		old := s.table
		s.table = make([]uint64, 2*len(old))
		for _, h := range old {
			if h != 0 {
				place, _ := s.find(h &^ 1)
				s.table[place] = h
			}
		}
	}
	return true
}

// hash returns the hash of b, without a mark. It is never 0.
func (s *Set) hash(b []byte) uint64 { return maphash.Bytes(s.seed, b)&^1 | 2 }

// find returns the slot of h, or the slot in which to store it.
func (s *Set) find(h uint64) (place int, ok bool) {
	mask := uint64(len(s.table) - 1)
	for i := h >> 2 & mask; ; i = (i + 1) & mask {
		switch s.table[i] &^ 1 {
		case h:
			return int(i), true
		case 0:
			return int(i), false
		}
	}
}
