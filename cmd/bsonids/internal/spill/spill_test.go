package spill

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// collect returns what Each visits.
func collect(t *testing.T, s *Sorter) []Record {
	t.Helper()
	var out []Record
	if err := s.Each(func(r Record) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// The sorter visits the distinct records in order, whatever their number in memory, in runs and in
// merged runs.
func TestOrder(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4, 5, 8, 100, 1000, 4 * minFan * 3, 4*minFan*minFan + 7} {
		for _, distinct := range []uint64{1, 7, 1 << 40} {
			r := rand.New(rand.NewPCG(uint64(n), distinct))
			dir := t.TempDir()
			s := New(dir)
			s.limit = 4
			var want []Record
			for range n {
				rec := Record{r.Uint64N(distinct), r.Uint64N(2), r.Uint64N(2) << 63}
				want = append(want, rec)
				if err := s.Add(rec); err != nil {
					t.Fatal(err)
				}
			}
			slices.SortFunc(want, compare)
			want = slices.Compact(want)
			for range 2 { // a second visit is the same
				if got := collect(t, s); !slices.Equal(got, want) {
					t.Fatalf("%d records, %d distinct: got %d, want %d", n, distinct, len(got), len(want))
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Fatalf("left: %v, %v", left, err)
			}
		}
	}
}

// Records that are distributed before they are sorted come in the same order, also if they begin
// with the same bits.
func TestManyInMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, mask := range []uint64{1<<64 - 1, 1<<40 - 1, 0} {
		s := New(t.TempDir())
		s.limit = 1 << 13
		var want []Record
		for range 5 << 13 {
			rec := Record{r.Uint64() & mask, r.Uint64N(1 << 14), 1}
			want = append(want, rec)
			if err := s.Add(rec); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, compare)
		if got := collect(t, s); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("mask %x: %d records", mask, len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVisitError(t *testing.T) {
	s := New(t.TempDir())
	s.limit = 2
	for i := range uint64(9) {
		if err := s.Add(Record{i}); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("stop")
	n := 0
	if err := s.Each(func(Record) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A directory that does not exist is an error when the first run is written.
func TestNoDirectory(t *testing.T) {
	s := New("/nonexistent")
	s.limit = 2
	var err error
	for i := range uint64(3) {
		err = errors.Join(err, s.Add(Record{i}))
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkSorter(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	s := New(b.TempDir())
	for range b.N {
		if err := s.Add(Record{r.Uint64(), r.Uint64(), 1}); err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	if err := s.Each(func(Record) error { n++; return nil }); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
