package files

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// What a killed process left of a file is removed when the file is locked, and nothing else.
func TestLockRemovesTemporary(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", "state.12.tmp", "state.1a.tmp", "state..tmp", "state2.12.tmp", "state.12.tmp.x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "state.7.tmp", "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := Lock(filepath.Join(dir, "state"))
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

// SyncDir does not fail on a file system that cannot sync directories.
func TestSyncDir(t *testing.T) {
	if err := SyncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "linux" { // /proc returns EINVAL, as network shares and user space file systems do
		if err := SyncDir("/proc"); err != nil {
			t.Error(err)
		}
	}
	if err := SyncDir(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("synced what isn't there")
	}
}
