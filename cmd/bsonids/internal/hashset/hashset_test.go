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

// A mark stays when the table grows, and is that of one string.
func TestMark(t *testing.T) {
	s := New()
	name := func(i uint64) []byte { return binary.LittleEndian.AppendUint64(nil, i) }
	for i := range uint64(5_000) {
		s.Add(name(i))
		if i%3 == 0 && !s.Mark(name(i)) {
			t.Fatalf("%d is not in the set", i)
		}
	}
	for i := range uint64(6_000) {
		if s.Has(name(i)) != (i < 5_000) || s.Marked(name(i)) != (i < 5_000 && i%3 == 0) || s.Add(name(i)) != (i >= 5_000) {
			t.Fatal(i)
		}
	}
	if s.AllMarked() || !New().AllMarked() || !(*Set)(nil).AllMarked() {
		t.Error("not all strings are marked, or none lacks a mark")
	}
	for i := range uint64(6_000) {
		s.Mark(name(i))
	}
	if !s.AllMarked() {
		t.Error("all strings are marked, some of them twice")
	}
	if s.Mark([]byte("other")) || (*Set)(nil).Mark(nil) || (*Set)(nil).Marked(nil) {
		t.Error("a string that was not added is marked")
	}
}
