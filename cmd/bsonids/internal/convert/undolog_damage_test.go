package convert

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writtenLog writes a log of three entries and returns its bytes.
func writtenLog(t *testing.T, path string) []byte {
	t.Helper()
	c := conversion(t, "javaLegacy", "standard")
	l, err := OpenUndoLog(path, identity(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := l.Append(plans(t, c, int32(i)), c, func(Plan) bool { return i == 2 }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
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

// The reader detects every wrong bit of a log, and every line that is missing from the middle,
// duplicated or moved.
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
		if n, err := readThrough(path); err == nil {
			t.Errorf("%s: %d entries are read", what, n)
		}
	}
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			refused(string(b[i:min(i+20, len(b))]), b)
			if i < 60 || i > len(whole)-60 {
				if _, err := OpenUndoLog(path, identity(), ""); i < 60 && err == nil || i == len(whole)-1 && err == nil {
					t.Errorf("octet %d: a conversion continues with the log", i)
				}
			}
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	refused("one line gone", bytes.Join([][]byte{lines[0], lines[2], lines[3]}, nil))
	refused("one line twice", bytes.Join([][]byte{lines[0], lines[1], lines[1], lines[2], lines[3]}, nil))
	refused("two lines swapped", bytes.Join([][]byte{lines[0], lines[2], lines[1], lines[3]}, nil))
	other := filepath.Join(t.TempDir(), "other")
	refused("a line of another log", bytes.Join([][]byte{lines[0], bytes.SplitAfter(writtenLog(t, other), []byte("\n"))[1], lines[2], lines[3]}, nil))
}

// A log of the first format, without checksums, can be read and undone. A conversion cannot
// continue with it.
func TestOldUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	const old = `{"bsonids":"undo log 1","id":"0011223344556677","conversion":{"database":"d","collection":"c","from":"javaLegacy","to":"standard"}}
{"_id":{"$numberInt":"1"},"changes":[{"path":"a","old":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"new":{"$binary":{"base64":"AQAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}}]}
`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := readThrough(path); n != 1 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	if _, err := OpenUndoLog(path, Identity{Database: "d", Collection: "c", From: "javaLegacy", To: "standard"}, ""); err == nil || !strings.Contains(err.Error(), "older version") {
		t.Errorf("a conversion continues with it: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != old {
		t.Errorf("it became %s, %v", b, err)
	}
}

// A conversion cannot continue with a log that undo has marked. The log can be undone again.
func TestMarkedUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	writtenLog(t, path)
	for i, done := range []bool{false, true, false, true} {
		u, err := ReadUndoLogAlone(path)
		if err != nil {
			t.Fatal(err)
		}
		if (u.Undone() != nil) != (i > 0) {
			t.Errorf("mark %v", u.Undone())
		}
		if err := u.Mark(time.Unix(0, 0), done); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := entries(u, 10, func(b []Entry) error { n += len(b); return nil }); err != nil || n != 3 {
			t.Errorf("%d entries, %v", n, err)
		}
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
		want := "has not finished"
		if done {
			want = "was undone on 1970-01-01T00:00:00Z"
		}
		if _, err := OpenUndoLog(path, identity(), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a conversion continues: %v", err)
		}
	}
}
