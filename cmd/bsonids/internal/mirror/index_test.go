package mirror

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func text(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bsoncore.AppendString(nil, s)}
}

func uuidValue(subtype byte, octets [16]byte) bson.RawValue {
	return bson.RawValue{Type: bson.TypeBinary, Value: bsoncore.AppendBinary(nil, subtype, octets[:])}
}

// limited makes indexes go to the disk after a few entries.
func limited(t *testing.T, sorted, changes int) {
	s, c := sortedAtOnce, maxChanges
	sortedAtOnce, maxChanges = sorted, changes
	t.Cleanup(func() { sortedAtOnce, maxChanges = s, c })
}

// entry is what an index and its oracle are told.
type entry struct{ fresh, old bson.RawValue }

// entries returns random entries: UUIDs, text, and text whose hash is one of the UUIDs. Some have the same new _id.
func entries(r *rand.Rand, n int) (all []entry) {
	var octets [][16]byte
	for i := range n {
		old := text(fmt.Sprintf("%d%s", i, strings.Repeat("x", r.IntN(90))))
		if i == n/2 {
			old = text(fmt.Sprint(i, strings.Repeat("x", 200_000)))
		}
		fresh := text(fmt.Sprint(r.IntN(n)))
		switch r.IntN(4) {
		case 0:
			sum := sha256.Sum256([]byte("\x02" + string(fresh.Value)))
			octets = append(octets, [16]byte(sum[:]))
		case 1:
			var o [16]byte
			for i := range o {
				o[i] = byte(r.IntN(256))
			}
			octets = append(octets, o)
		}
		if len(octets) > 0 && r.IntN(2) == 0 {
			fresh = uuidValue(4, octets[r.IntN(len(octets))])
		}
		all = append(all, entry{fresh, old})
	}
	return all
}

// agrees fails the test unless the index has what the map has.
func agrees(t *testing.T, x *Index, want map[string][]bson.RawValue, of []entry) {
	t.Helper()
	for _, e := range of {
		got, err := x.of(e.fresh)
		has, e2 := x.has(e.fresh)
		if w := want[e.fresh.String()]; err != nil || e2 != nil || has != (len(w) > 0) || !slices.EqualFunc(got, w, bson.RawValue.Equal) {
			t.Fatalf("%s: got %d, %v, want %d, %v", e.fresh, len(got), has, len(w), errors.Join(err, e2))
		}
	}
}

// The index has what a map has, in the order in which it was added, when it is made, when entries are added to it later, and when
// these are sorted, too. It has no files in the end.
func TestIndex(t *testing.T) {
	for _, tt := range []struct{ n, later, sorted, changes int }{
		{0, 0, 10, 10}, {1, 0, 10, 10}, {10, 0, 10, 10}, {11, 1, 10, 10}, {900, 500, 1000, 1000}, {900, 500, 1000, 100}, {3000, 4000, 100, 700}, {20_000, 100, 3000, 1000},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			limited(t, tt.sorted, tt.changes)
			r := rand.New(rand.NewPCG(uint64(tt.n), uint64(tt.sorted)))
			dir := t.TempDir()
			x := Index{Dir: dir}
			all := entries(r, tt.n+tt.later)
			other := entries(r, 100)
			for range 2 { // it can be used again
				if err := x.forget(); err != nil {
					t.Fatal(err)
				}
				want := make(map[string][]bson.RawValue)
				add := func(some []entry) {
					for _, e := range some {
						if err := x.add(e.fresh, e.old); err != nil {
							t.Fatal(err)
						}
						want[e.fresh.String()] = append(want[e.fresh.String()], e.old)
					}
				}
				add(all[:tt.n])
				if err := x.seal(); err != nil {
					t.Fatal(err)
				}
				agrees(t, &x, want, slices.Concat(all, other))
				twins := make(map[string]bool)
				err := x.twins(func(ids []bson.RawValue) error { twins[fmt.Sprint(ids)] = true; return nil })
				if err != nil {
					t.Fatal(err)
				}
				for _, ids := range want {
					if (len(ids) > 1) != twins[fmt.Sprint(ids)] {
						t.Fatalf("%d documents have the same _id, found: %v", len(ids), len(ids) < 2)
					}
					delete(twins, fmt.Sprint(ids))
				}
				if len(twins) > 0 {
					t.Fatalf("%d twins are none", len(twins))
				}
				for at := tt.n; at < len(all); at += 37 {
					add(all[at:min(at+37, len(all))])
					agrees(t, &x, want, all[max(0, at-5):min(at+100, len(all))])
				}
				agrees(t, &x, want, slices.Concat(all, other))
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, dir)
		})
	}
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// open returns paths of the files without names that were made in a directory.
func open(t *testing.T, dir string) (paths []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, dir+"/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// A file that is truncated, or that has lost a page, whenever that happens, gives an error or the right answer.
func TestIndexDamaged(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the files have no names")
	}
	limited(t, 1000, 300)
	r := rand.New(rand.NewPCG(5, 6))
	failed := 0
	const n = 10_000
	for damaged := 500; damaged < n+1000; damaged += 300 {
		dir := t.TempDir()
		x := Index{Dir: dir}
		all := entries(r, n+1000)
		want := make(map[string][]bson.RawValue)
		err := func() error {
			for i, e := range all {
				if i == damaged || i == n && damaged > n-300 {
					for _, path := range open(t, dir) {
						damage(t, path, r)
					}
				}
				if i == n {
					if err := x.seal(); err != nil {
						return err
					}
				}
				if err := x.add(e.fresh, e.old); err != nil {
					return err
				}
				want[e.fresh.String()] = append(want[e.fresh.String()], e.old)
			}
			return nil
		}()
		if err != nil {
			failed++
		}
		for _, e := range all {
			got, err := x.of(e.fresh)
			_, twin := want[e.fresh.String()]
			if err != nil || !twin {
				failed++
				continue
			}
			// The mirror checks that the old _id is converted to the new one.
			if len(got) != len(want[e.fresh.String()]) {
				t.Fatalf("damaged at %d: %s has %d, want %d", damaged, e.fresh, len(got), len(want[e.fresh.String()]))
			}
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, dir)
		if files := open(t, dir); len(files) > 0 {
			t.Errorf("open: %v", files)
		}
	}
	if failed == 0 {
		t.Error("nothing was noticed")
	}
}

// damage truncates a file, or replaces a page of it by zeros.
func damage(t *testing.T, path string, r *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	at := r.Int64N(size + 1)
	if r.IntN(2) == 0 {
		err = f.Truncate(at)
	} else {
		_, err = f.WriteAt(make([]byte, min(4096, size-at)), at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A directory that does not exist is an error when a file is made, and so is one that is gone when the entries are sorted.
func TestIndexWithoutDirectory(t *testing.T) {
	limited(t, 10, 10)
	x := Index{Dir: "/nonexistent"}
	if err := x.add(text("a"), text(string(make([]byte, 100_000)))); !os.IsNotExist(err) {
		t.Error(err)
	}
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	x = Index{Dir: dir}
	for i := range 100 {
		if err := x.add(text(fmt.Sprint(i)), text("a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(dir); err != nil { // the files have no names
		t.Skip(err)
	}
	if err := x.seal(); !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, err := x.of(text("5")); err == nil {
		t.Error("an index that was not made has an answer")
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkIndex makes an index of b.N documents, and then looks for each new _id, in the order in which a server returns them, and
// for some in no order.
func BenchmarkIndex(b *testing.B) {
	x := Index{Dir: b.TempDir()}
	defer func() { _ = x.Close() }()
	id := func(i int, subtype byte) bson.RawValue { // in the order of i if the subtype is 4
		sum := sha256.Sum256(fmt.Appendf(nil, "%d", i))
		o := [16]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
		copy(o[4:], sum[:])
		if subtype == 3 {
			slices.Reverse(o[:8])
			slices.Reverse(o[8:])
		}
		return uuidValue(subtype, o)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	r := rand.New(rand.NewPCG(1, 2))
	shuffle := func(i int) int { return int(uint64(i) * 2654435761 % uint64(b.N)) } // most of them once
	for i := range b.N {
		n := shuffle(i)
		if err := x.add(id(n, 4), id(n, 3)); err != nil {
			b.Fatal(err)
		}
	}
	if err := x.seal(); err != nil {
		b.Fatal(err)
	}
	made := time.Since(start)
	start = time.Now()
	for i := range b.N {
		if _, err := x.has(id(i, 4)); err != nil {
			b.Fatal(err)
		}
	}
	looked := time.Since(start)
	start = time.Now()
	const some = 10_000
	for range some {
		if _, err := x.of(id(r.IntN(b.N), 4)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/some, "ns/random")
	b.ReportMetric(float64(made.Nanoseconds())/float64(b.N), "ns/made")
	b.ReportMetric(float64(looked.Nanoseconds())/float64(b.N), "ns/looked")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-whole")
	b.ReportMetric(float64(after.HeapSys-before.HeapSys)/(1<<20), "MiB-taken")
}
