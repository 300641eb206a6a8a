package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// writtenLog writes a log of three entries and returns its bytes.
func writtenLog(t *testing.T, path string) []byte {
	t.Helper()
	c := conversion(t, "javaLegacy")
	l := newLog(t, path)
	for i := range 3 {
		if err := l.Append(plans(t, c, int32(i)), func(Planned) bool { return i == 2 }); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readThrough(path string) (n int, err error) {
	u, err := ReadUndoLog(path)
	if err != nil {
		return 0, err
	}
	defer u.Close()
	for ; ; n++ {
		if _, err := u.Next(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// The reader detects every wrong bit of a log, if the size of the log is known. A conversion does not
// continue with such a log, and does not change it.
func TestDamagedUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	whole := writtenLog(t, path)
	if n, err := readThrough(path); n != 3 || err != nil {
		t.Fatalf("%d entries, %v", n, err)
	}
	refused := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := ReadUndoLog(path)
		if err == nil {
			err = errors.Join(u.Covers("", int64(len(whole))), u.Close())
		}
		if err == nil {
			t.Errorf("%s: the log is whole", what)
		}
		if l, err := OpenUndoLog(path, header(), int64(len(whole))); err == nil {
			l.Close()
			t.Errorf("%s: a conversion continues", what)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
			t.Errorf("%s: the log is changed, %v", what, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			refused(fmt.Sprintf("bit %d of byte %d", bit, i), b)
		}
		refused(fmt.Sprintf("cut at %d", i), whole[:i])
	}
}
