package dump

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
)

// Create removes what killed processes left of the output, and nothing else. A second one is refused, and Close
// leaves nothing.
func TestCreateReserves(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".other.bsonids.1.tmp", ".out.bsonids..tmp", ".out.bsonids.1a.tmp", ".out.bsonids.12.tmp.x", "out.bsonids.12.tmp"}
	for _, name := range append([]string{".out.bsonids.12.tmp", ".out.bsonids.7.tmp/shop/c.bson"}, keep...) {
		dumptest.Write(t, filepath.Join(dir, name), nil)
	}
	in := archive(t)
	for range 2 {
		o, err := Create(filepath.Join(dir, "out"), in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Create(filepath.Join(dir, ".", "out"), in); err == nil || !strings.Contains(err.Error(), "another process writes it") {
			t.Error(err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
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

func archive(t *testing.T) *Input {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.bson")
	dumptest.Write(t, path, dumptest.BSON(t, bson.D{}))
	return open(t, path)
}

// Only one of several that create an output at once has it.
func TestCreateAtOnce(t *testing.T) {
	in, out := archive(t), filepath.Join(t.TempDir(), "out")
	var owners atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				o, err := Create(out, in)
				if err != nil {
					if !strings.Contains(err.Error(), "another process") {
						t.Error(err)
					}
					continue
				}
				if owners.Add(1) > 1 {
					t.Error("two have the name")
				}
				owners.Add(-1)
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
