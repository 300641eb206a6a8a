package ledger

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// A file is created once, is open in one process, and keeps runs and facts.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ledger")
	if _, err := ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	f, err := OpenFile(path)
	if err != nil || f.Path() != path || len(f.Facts("")) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := OpenFile(path); !errors.Is(err, files.ErrInUse) {
		t.Errorf("%v", err)
	}
	facts := Facts{}
	if err := facts.Add("", struct {
		A int `json:"a"`
	}{7}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Begin("r1"), f.Set("", facts), f.Close()); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFile(path); err != nil || !f.Knows("r1") || string(f.Facts("")["a"]) != "7" {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := ReadFile(path); err != nil || string(l.Facts("")["a"]) != "7" {
		t.Errorf("%+v, %v", l, err)
	}
	var v struct{ A, B int }
	if err := facts.Decode(&v); err != nil || v.A != 7 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := (Facts{"c": json.RawMessage("1")}).Decode(&v); !errors.Is(err, ErrFormat) {
		t.Errorf("%v", err)
	}
	if err := facts.Add("", make(chan int)); err == nil {
		t.Error("a channel has facts")
	}
	if err := facts.Add("", 1); err == nil {
		t.Error("a number has facts")
	}
	if err := facts.Add("x/", struct{ B int }{1}); err != nil || len(facts) != 2 || string(facts["x/B"]) != "1" {
		t.Errorf("%s, %v", facts, err)
	}
	if err := (Facts{"c": json.RawMessage("x")}).Decode(&v); err == nil || errors.Is(err, ErrFormat) {
		t.Error("what is not JSON is decoded")
	}
}

// What is not a ledger is refused, not changed, and not left locked.
func TestNoLedgerFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "text")
	if err := os.WriteFile(path, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := OpenFile(path); !errors.Is(err, ErrFormat) {
			t.Errorf("%v", err)
		}
		if _, err := ReadFile(path); !errors.Is(err, ErrFormat) {
			t.Errorf("%v", err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "hello\n" {
		t.Errorf("%q, %v", b, err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "x")} {
		if _, err := OpenFile(path); err == nil {
			t.Errorf("%s is opened", path)
		}
		if _, err := ReadFile(path); err == nil {
			t.Errorf("%s is read", path)
		}
	}
	if _, err := ReadFile(dir); err == nil || err.Error() != "not a regular file" {
		t.Errorf("a directory: got %v", err)
	}
	// Its lock can be made, and the file cannot: while it is written its name is longer.
	_, err := OpenFile(filepath.Join(dir, strings.Repeat("x", 249)))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrInvalid) {
		t.Errorf("a long name: got %v", err)
	}
}

// Close unlocks the file, and is an error the second time.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ledger")
	for range 2 {
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("again: got %v", err)
		}
	}
}

// ReadFile leaves no file open.
func TestReadFileCloses(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	path := filepath.Join(t.TempDir(), "a.ledger")
	if err := os.WriteFile(path, New(), 0o600); err != nil {
		t.Fatal(err)
	}
	before := open()
	for range 100 {
		if _, err := ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if n := open(); n > before+50 {
		t.Errorf("%d files were open, and %d are", before, n)
	}
}
