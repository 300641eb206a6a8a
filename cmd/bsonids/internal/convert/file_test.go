package convert

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
			"state":           func() error { _, err := OpenState(path, identity()); return err },
			"state to read":   func() error { _, err := ReadState(path); return err },
			"undo log":        func() error { _, err := OpenUndoLog(path, identity(), "", 0); return err },
			"undo log, read":  func() error { _, err := ReadUndoLog(path); return err },
			"undo log, alone": func() error { _, err := ReadUndoLogAlone(path); return err },
			"skip list":       func() error { _, err := OpenSkipList(path, "d.c", false); return err },
			"skip list, on":   func() error { _, err := OpenSkipList(path, "d.c", true); return err },
			"skip list, read": func() error { _, err := ReadSkipList(path, "d.c", 3); return err },
		} {
			var e *RecordError
			if err := open(); !errors.As(err, &e) {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
	}
}

// What a killed process left of a file is removed when the file is locked, and nothing else.
func TestLockRemovesTemporary(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", "state.12.tmp", "state.1a.tmp", "state..tmp", "state2.12.tmp", "state.12.tmp.x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := LockFile(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"state", "state..tmp", "state.12.tmp.x", "state.1a.tmp", "state.lock", "state2.12.tmp"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}
