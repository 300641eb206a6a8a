package dump

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
	link := func(old, name string, how func(old, name string) error) string {
		path := filepath.Join(dir, name)
		if err := how(old, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other := filepath.Join(dir, "other.bson")
	dumptest.Write(t, other, nil)
	for _, tt := range []struct {
		in, out string
		want    string
	}{
		{file, file, "exists already"},
		{file, filepath.Join(dir, ".", "c.bson"), "exists already"},
		{file, link(file, "hard.bson", os.Link), "exists already"},
		{file, link(file, "soft.bson", os.Symlink), "exists already"},
		{file, link("nowhere", "dangling.bson", os.Symlink), "exists already"},
		{file, other, "exists already"},
		{file, tree, "exists already"},
		{file, filepath.Join(dir, "none", "x.bson"), "no such file"},
		{file, filepath.Join(dir, "x.bson.gz"), "not compressed"},
		{archive, archive, "exists already"},
		{archive, filepath.Join(dir, "x.archive"), "end the name with .gz"},
		{tree, tree, "exists already"},
		{tree, filepath.Join(tree, "new"), "in the directory of the input"},
		{tree, filepath.Join(tree, "shop", "new"), "in the directory of the input"},
		{tree, filepath.Join(link(tree, "tree", os.Symlink), "new"), "in the directory of the input"},
		{tree, filepath.Join(dir, "c.bson"), "exists already"},
	} {
		o, err := Create(tt.out, open(t, tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: %v, want %v", tt.in, tt.out, err, tt.want)
		}
		if err == nil {
			_ = o.Close()
		}
	}
	leftovers, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %q, %v", leftovers, err)
	}
}

// An output that appears while it is written is not overwritten, and the metadata beside a BSON file
// is removed again.
func TestCommitOverwritesNothing(t *testing.T) {
	for _, form := range []string{"file", "archive", "directory"} {
		in, out := t.TempDir(), t.TempDir()
		path, to := filepath.Join(in, "c.bson"), filepath.Join(out, "c.bson")
		switch form {
		case "archive":
			dumptest.Write(t, path, dumptest.Archive(t, 1, shop()...))
		case "directory":
			dumptest.Directory(t, path, false, shop()...)
		default:
			dumptest.Write(t, path, dumptest.BSON(t, bson.D{}))
			dumptest.Write(t, filepath.Join(in, "c.metadata.json"), []byte("{}"))
		}
		o := written(t, open(t, path), to)
		dumptest.Write(t, to, []byte("mine"))
		if err := o.Commit(); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("%s: %v", form, err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(to); err != nil || string(b) != "mine" {
			t.Errorf("%s: overwritten: %q, %v", form, b, err)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v, %v", form, left, err)
		}
	}
}

// The metadata beside a BSON file goes beside the output, and the permissions are those of the
// input.
func TestFileWithMetadata(t *testing.T) {
	for _, ext := range []string{"", ".gz"} {
		in, out := t.TempDir(), t.TempDir()
		docs, metadata := dumptest.BSON(t, bson.D{{Key: "a", Value: "b"}}), []byte(`{"collectionName":"c"}`)
		if ext != "" {
			docs, metadata = dumptest.Gzip(t, docs), dumptest.Gzip(t, metadata)
		}
		dumptest.Write(t, filepath.Join(in, "c.bson"+ext), docs)
		dumptest.Write(t, filepath.Join(in, "c.metadata.json"+ext), metadata)
		if err := os.Chmod(filepath.Join(in, "c.bson"+ext), 0o640); err != nil {
			t.Fatal(err)
		}
		o := written(t, open(t, filepath.Join(in, "c.bson"+ext)), filepath.Join(out, "new.bson"+ext))
		if err := errors.Join(o.Commit(), o.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, "new.metadata.json"+ext))
		if err != nil || string(got) != string(metadata) {
			t.Errorf("metadata %q, %v", got, err)
		}
		info, err := os.Stat(filepath.Join(out, "new.bson"+ext))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) != 2 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	dumptest.Write(t, filepath.Join(dir, "empty"), nil)
	dumptest.Write(t, filepath.Join(dir, "tree", "note.txt"), nil)
	for _, tt := range []struct {
		path string
		want string
	}{{filepath.Join(dir, "empty"), "it is empty"}, {filepath.Join(dir, "none"), "no such file"}, {filepath.Join(dir, "tree"), "no BSON file or metadata"}} {
		if _, err := Open(tt.path, nil, Collection{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
}
