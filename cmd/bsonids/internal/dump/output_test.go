package dump

import (
	"maps"
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

// An output that exists is refused, whatever it is, and the input is not overwritten by any of its
// names.
func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	file, archive, tree := filepath.Join(dir, "c.bson"), filepath.Join(dir, "a.gz"), filepath.Join(dir, "dump")
	dumptest.Write(t, file, dumptest.BSON(t, bson.D{}))
	dumptest.Write(t, archive, dumptest.Gzip(t, dumptest.Archive(t, 1, shop()...)))
	dumptest.Directory(t, tree, false, shop()...)
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, to := range map[string]string{"soft.bson": file, "dangling.bson": "nowhere", "tree": tree} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	const exists, within = "exists already", "in the directory of the input"
	for _, tt := range []struct{ in, out, want string }{
		{file, file, exists},
		{file, at("soft.bson"), exists},
		{file, at("dangling.bson"), exists},
		{file, tree, exists},
		{file, at("none/x.bson"), "no such file"},
		{file, at("x.bson.gz"), "not compressed"},
		{archive, at("x.archive"), "end the name with .gz"},
		{tree, tree, exists},
		{tree, at("dump/new"), within},
		{tree, at("dump/shop/new"), within},
		{tree, at("tree/new"), within},
	} {
		if _, err := Create(tt.out, open(t, tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: %v, want %v", tt.in, tt.out, err, tt.want)
		}
	}
	leftovers, err := filepath.Glob(at(".*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %q, %v", leftovers, err)
	}
	dumptest.Write(t, at("empty"), nil)
	dumptest.Write(t, at("other/note.txt"), nil)
	for name, want := range map[string]string{"empty": "it is empty", "none": "no such file", "other": "no BSON file or metadata"} {
		if _, err := Open(at(name), nil, Collection{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An output that appears while it is written is not overwritten, and the metadata beside a BSON file
// is removed again.
func TestCommitOverwritesNothing(t *testing.T) {
	for form, path := range dumptest.Forms(t, shop()[0]) {
		to := filepath.Join(t.TempDir(), filepath.Base(path))
		if form == "file" {
			dumptest.Write(t, filepath.Join(filepath.Dir(path), "orders.metadata.json"), []byte("{}"))
		}
		o := written(t, open(t, path), to)
		dumptest.Write(t, to, []byte("mine"))
		if err := o.Commit(); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("%s: %v", form, err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if left := dumptest.Tree(t, filepath.Dir(to)); len(left) != 1 || left["/"+filepath.Base(to)] != "mine" {
			t.Errorf("%s: %q", form, left)
		}
	}
}

// Create removes what killed processes left of the output, and nothing else. A second one is refused, and Close
// leaves nothing.
func TestCreateReserves(t *testing.T) {
	dir := t.TempDir()
	keep := []string{"/.other.bsonids.1.tmp", "/.out.bsonids.12.tmp.x"}
	for _, name := range append([]string{".out.bsonids.12.tmp", ".out.bsonids.7.tmp/shop/c.bson"}, keep...) {
		dumptest.Write(t, filepath.Join(dir, name), nil)
	}
	in := open(t, dumptest.Forms(t, shop()...)["archive"])
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
	if got := slices.Sorted(maps.Keys(dumptest.Tree(t, dir))); !slices.Equal(got, keep) {
		t.Errorf("%q, want %q", got, keep)
	}
}

// Only one of several that create an output at once has it.
func TestCreateAtOnce(t *testing.T) {
	in, out := open(t, dumptest.Forms(t, shop()...)["archive"]), filepath.Join(t.TempDir(), "out")
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
