package spill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// value returns the i-th of some values in order.
func value(i uint64) (v [16]byte) {
	binary.BigEndian.PutUint64(v[:], i/3)
	binary.BigEndian.PutUint64(v[8:], i%3<<60)
	return v
}

// A sealed sorter finds what a map has, in memory and in a file of any number of blocks, also after more was added and sealed.
func TestFind(t *testing.T) {
	for _, n := range []int{0, 1, 50, 100, 101, inBlock, 3*inBlock + 1, 20_000} {
		for _, distinct := range []uint64{3, 700, 1 << 20} { // the numbers of a value fill several blocks, or one value a part of it
			r := rand.New(rand.NewPCG(uint64(n), distinct))
			dir := t.TempDir()
			s := NewSize(dir, 100)
			want := make(map[uint64]map[uint64]bool)
			for pass := range 3 {
				for range n {
					i, number := r.Uint64N(distinct), r.Uint64N(1<<30)
					if want[i] == nil {
						want[i] = make(map[uint64]bool)
					}
					want[i][number] = true
					if err := s.Add(Of(value(i), number)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.Find(value(0)); n > 0 && err == nil {
					t.Fatal("found before the records are sealed")
				}
				records := 0
				for _, numbers := range want {
					records += len(numbers)
				}
				if sealed, err := s.Seal(); err != nil || sealed != int64(records) {
					t.Fatalf("%d of %d: %v", sealed, records, err)
				}
				for range 1000 {
					i := r.Uint64N(distinct + 2)
					got, err := s.Find(value(i))
					if err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(want[i]))) {
						t.Fatalf("pass %d, %d records, %d distinct: %d has %d, want %d, %v", pass, n, distinct, i, len(got), len(want[i]), err)
					}
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

// readOnly replaces the file of a sorter or a scratch, as if the disk were full.
func readOnly(t *testing.T, f **os.File) {
	t.Helper()
	path := t.TempDir() + "/full"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if *f != nil {
		_ = (*f).Close()
	}
	*f = full
}

// A file that cannot be written to, that ends early, or that has other bytes gives an error.
func TestFindDamaged(t *testing.T) {
	sealed := func() *Sorter {
		s := NewSize(t.TempDir(), 100)
		t.Cleanup(func() { _ = s.Close() })
		for i := range uint64(3 * inBlock) {
			if err := s.Add(Of(value(i), i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Seal(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := sealed()
	if err := s.file.Truncate(s.size - 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(value(3*inBlock - 2)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if got, err := s.Find(value(5)); err != nil || !slices.Equal(got, []uint64{5}) {
		t.Error(got, err)
	}
	if err := s.Add(Of(value(1), 7)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Seal(); err == nil {
		t.Error("a file that ends early was sealed again")
	}
	s = sealed()
	if _, err := s.file.WriteAt(make([]byte, 100), inBlock*Size+600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(value(inBlock + 500)); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
	s = sealed()
	readOnly(t, &s.file)
	var err error
	for i := range uint64(101) {
		err = errors.Join(err, s.Add(Of(value(i), 1)))
	}
	if err == nil {
		t.Error("a run was written to a full disk")
	}
}

// Values are read as they were added, from the file and from the memory, and not from a file that ends early.
func TestValues(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	v := Values{Scratch: Scratch{Dir: t.TempDir()}}
	var places []int64
	var want [][]byte
	for i := range 3000 {
		b := bytes.Repeat([]byte{byte(i), 7}, r.IntN(100))
		if i%1000 == 500 {
			b = bytes.Repeat([]byte{byte(i)}, 2*maxTail)
		}
		place, err := v.Add(byte(i), b)
		if err != nil {
			t.Fatal(err)
		}
		places, want = append(places, place), append(want, b)
		for _, n := range []int{i, r.IntN(i + 1)} {
			kind, got, err := v.At(places[n])
			if err != nil || kind != byte(n) || !bytes.Equal(got, want[n]) {
				t.Fatalf("%d after %d: %d octets, want %d, %v", n, i, len(got), len(want[n]), err)
			}
		}
	}
	all, err := io.ReadAll(io.NewSectionReader(&v, 0, v.Size()))
	if err != nil || int64(len(all)) != v.Size() || !bytes.Equal(all[places[2999]+valueHead:], want[2999]) {
		t.Errorf("%d octets, %v", len(all), err)
	}
	if err := v.file.Truncate(v.stored / 2); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for i, place := range places {
		kind, got, err := v.At(place)
		if err != nil {
			damaged++
		} else if kind != byte(i) || !bytes.Equal(got, want[i]) {
			t.Fatalf("%d: %d octets, want %d", i, len(got), len(want[i]))
		}
	}
	if damaged == 0 {
		t.Error("no value is damaged")
	}
	readOnly(t, &v.file)
	if _, err := v.Add(1, make([]byte, maxTail)); err == nil {
		t.Error("a value was added to a full disk")
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
