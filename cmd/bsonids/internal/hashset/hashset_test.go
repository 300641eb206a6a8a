package hashset

import (
	"encoding/binary"
	"testing"
)

// A set agrees with a Go map, also when its table grows.
func TestSet(t *testing.T) {
	s, want := New(), map[uint64]bool{}
	for i := range uint64(10_000) {
		v := i * i % 7919
		b := binary.LittleEndian.AppendUint64(nil, v)
		if s.Has(b) != want[v] || s.Add(b) == want[v] {
			t.Fatalf("%d: held %v, want %v", v, s.Has(b), want[v])
		}
		want[v] = true
	}
	if s.len != len(want) {
		t.Errorf("%d strings, want %d", s.len, len(want))
	}
}
