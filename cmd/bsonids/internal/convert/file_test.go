package convert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// A device may have no end: /dev/full yields zeros forever.
func TestFilesAreRegular(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/full", link, t.TempDir()} {
		var e *files.Error
		if _, err := CreateSkipList(path, "d.c"); !errors.As(err, &e) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
