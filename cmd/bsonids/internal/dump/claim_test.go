package dump

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Claim removes what killed processes left, and nothing else.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".other.bsonids-1.tmp", ".out.bsonids-.tmp", ".out.bsonids-1a.tmp", ".out.bsonids-12.tmp.x", "out.bsonids-12.tmp", ".out.skipped.jsonl.bsonids-1.tmp"}
	for _, name := range append([]string{".out.bsonids-12.tmp", ".out.bsonids-7.tmp/shop/c.bson"}, keep...) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	release, err := Claim(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(filepath.Join(dir, ".", "out")); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
	release()
	release, err = Claim(out)
	if err != nil {
		t.Fatal(err)
	}
	release()
	var got []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(keep)
	if !slices.Equal(got, keep) {
		t.Errorf("%q, want %q", got, keep)
	}
}

// Only one of several that claim a name at once has it.
func TestClaimAtOnce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var owners atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				release, err := Claim(out)
				if errors.Is(err, ErrInUse) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if owners.Add(1) > 1 {
					t.Error("two have the name")
				}
				owners.Add(-1)
				release()
			}
		})
	}
	all.Wait()
}
