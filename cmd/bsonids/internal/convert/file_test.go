package convert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
		for name, open := range map[string]func() error{
			"undo log":        func() error { _, err := OpenUndoLog(path, header(), 0); return err },
			"undo log, read":  func() error { _, err := ReadUndoLog(path); return err },
			"skip list":       func() error { _, err := OpenSkipList(path, "d.c", nil); return err },
			"skip list, on":   func() error { _, err := OpenSkipList(path, "d.c", &Listed{}); return err },
			"skip list, read": func() error { return eachListed(path, "d.c", nil) },
		} {
			var e *RecordError
			if err := open(); !errors.As(err, &e) {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
	}
}
