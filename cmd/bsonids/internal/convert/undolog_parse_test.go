package convert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// part is the bytes behind their length.
func part(b ...byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// An entry is read if it is as the format says, and refused if it is cut off anywhere or a part of it is not as it must be.
func TestParseEntryByHand(t *testing.T) {
	old, fresh := bytes.Repeat([]byte{0xaa}, 16), bytes.Repeat([]byte{0xbb}, 16)
	text := []byte{byte(bson.TypeString), 2, 0, 0, 0, 'x', 0}
	id := slices.Concat([]byte{byte(bson.TypeInt32)}, part(7, 0, 0, 0))
	stored := func(subtype byte, octets []byte) []byte { return slices.Concat([]byte{0, subtype}, octets) }
	change := slices.Concat(part('a', '.', '0'), stored(3, old), stored(4, fresh))
	texts := slices.Concat(part('b'), part(text...), part(text...))
	entry := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	head := []byte{entryRecord, flagAgain}
	whole := entry(head, id, change, texts)
	e, err := ParseEntry(whole)
	want := []rule.Change{{Path: "a.0", Old: rule.Value{Subtype: 3, Octets: [16]byte(old)}, New: rule.Value{Subtype: 4, Octets: [16]byte(fresh)}},
		{Path: "b", Old: rule.Value{Other: string(text)}, New: rule.Value{Other: string(text)}}}
	if err != nil || !e.Again || e.ID.Int32() != 7 || !slices.Equal(e.Changes, want) {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := ParseEntry(entry([]byte{entryRecord, 0}, id, change)); err != nil || e.Again || !slices.Equal(e.Changes, want[:1]) {
		t.Errorf("%+v, %v", e, err)
	}
	ends := len(entry(head, id, change))
	for n := range whole {
		if e, err := ParseEntry(whole[:n]); !errors.Is(err, errEntry) && n != ends {
			t.Errorf("cut off after %d bytes: %+v, %v", n, e, err)
		}
	}
	overflow := bytes.Repeat([]byte{0xff}, 11)
	broken := []byte{byte(bson.TypeString), 9, 0, 0, 0, 'x', 0}
	for name, b := range map[string][]byte{
		"another record":            entry([]byte{9, 0}, id, change),
		"another flag":              entry([]byte{entryRecord, 2}, id, change),
		"no type of _id":            entry(head, []byte{0}, part(), change),
		"an _id of another size":    entry(head, []byte{byte(bson.TypeInt32)}, part(7, 0), change),
		"an _id that is no value":   entry(head, []byte{byte(bson.TypeString)}, part(9, 0, 0, 0, 'x', 0), change),
		"an _id without end":        entry(head, []byte{byte(bson.TypeNull)}, overflow),
		"no change":                 entry(head, id),
		"no path":                   entry(head, id, part(), stored(3, old), stored(4, fresh)),
		"no path, then another":     entry(head, id, part(), stored(3, old), stored(4, fresh), change),
		"a path without end":        entry(head, id, overflow, stored(3, old), stored(4, fresh)),
		"an old value that is none": entry(head, id, part('a'), part(broken...), stored(4, fresh)),
		"a new value that is none":  entry(head, id, part('a'), stored(3, old), part(broken...)),
		"a binary value in BSON":    entry(head, id, part('a'), part(slices.Concat([]byte{byte(bson.TypeBinary), 16, 0, 0, 0, 3}, old)...), stored(4, fresh)),
		"more at the end":           entry(head, id, change, []byte{0}),
	} {
		if e, err := ParseEntry(b); !errors.Is(err, errEntry) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// A new log is private, has its header, and is not left if it cannot be the one that is asked for.
func TestNewUndoLog(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		path := filepath.Join(dir, "a")
		l, err := OpenUndoLog(path, header(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if u := openLog(t, path); l.ID != header().ID || u.ID != l.ID || u.Task.Collection != "c" {
			t.Errorf("%+v and %+v", l.Header, u.Header)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != l.Size() {
			t.Errorf("%v, %v, %d", info, err, l.Size())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err == nil {
			t.Error("closed twice")
		}
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		_, err := OpenUndoLog(path, header(), 1)
		var of *RecordError
		if !errors.As(err, &of) || path != dir && !strings.Contains(err.Error(), "0 bytes are whole of 1") {
			t.Errorf("%s: %v", path, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "none*"))
	if err != nil || left != nil {
		t.Errorf("a log that could not be made leaves %q, %v", left, err)
	}
}

// A log is opened again if it has at least the bytes that were written, and goes on at its end.
func TestUndoLogAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	whole := writtenLog(t, path)
	c := conversion(t, "javaLegacy")
	size := int64(len(whole))
	if _, err := OpenUndoLog(path, header(), size+1); err == nil {
		t.Error("a log that is too short is opened")
	}
	l, err := OpenUndoLog(path, header(), size)
	if err != nil || l.Size() != size {
		t.Fatal(l.Size(), err)
	}
	if err := l.Append(plans(t, c, "x"), func(Planned) bool { return false }); err != nil || l.Size() <= size {
		t.Error(l.Size(), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != l.Size() {
		t.Errorf("%d bytes of %d, %v", info.Size(), l.Size(), err)
	}
	closed(t, l)
	if n := len(readAll(t, path)); n != 4 {
		t.Errorf("%d entries", n)
	}
}

// A log is not read after it was closed, and what is no regular file is none.
func TestNoUndoLogToRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	writtenLog(t, path)
	u := openLog(t, path)
	var of *RecordError
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	if err := u.Close(); err == nil {
		t.Error("closed twice")
	}
	_, unmetErr := stillUnmet(u, make([]unmet, 1))
	if unmetErr == nil || entries(u, 10, func([]Entry) error { return nil }) == nil {
		t.Errorf("of a closed file: %v", unmetErr)
	}
	if all, err := stillUnmet(u, nil); all != nil || err != nil {
		t.Errorf("nothing to look for: %v, %v", all, err)
	}
	for _, path := range []string{filepath.Dir(path), os.DevNull} {
		if _, err := ReadUndoLog(path); !errors.As(err, &of) || of.Record != UndoRecord || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// openFiles counts the files that the process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not tell which files are open")
	}
	return len(all)
}

// A log that was read or refused is not left open.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	path, text, state := filepath.Join(dir, "undo"), filepath.Join(dir, "text"), filepath.Join(dir, "ledger")
	logOf(t, path, []any{"a"})
	if err := errors.Join(os.WriteFile(state, ledger.New(), 0o600), os.WriteFile(text, []byte("text of another program, which is long enough\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"the text of a log":    func() error { return WriteText(io.Discard, path) },
		"the text of no log":   func() error { _ = WriteText(io.Discard, text); return nil },
		"the text of a ledger": func() error { return WriteText(io.Discard, state) },
	} {
		before := openFiles(t)
		err := f()
		if after := openFiles(t); err != nil || after != before {
			t.Errorf("%s: %d files are open, %d before, %v", name, after, before, err)
		}
	}
}

// noFile fails whatever is done with it.
type noFile struct{ journal.File }

func (noFile) ReadAt([]byte, int64) (int, error) { return 0, errUndoTest }
func (noFile) Seek(int64, int) (int64, error)    { return 100, nil }

// A file that cannot be read is not taken for an empty one, which would be written over.
func TestUnreadableUndoLog(t *testing.T) {
	if _, _, err := readHeader(noFile{}); !errors.Is(err, errUndoTest) {
		t.Error(err)
	}
}

// A path is written as it is, and a file that is neither a log nor a ledger is an error.
func TestTextOfOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy")
	p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: "<&>"}, {Key: "a<&>", Value: bson.Binary{Subtype: 3, Data: make([]byte, 16)}}}))
	if err != nil {
		t.Fatal(err)
	}
	l := newLog(t, path)
	if err := errors.Join(l.Append([]Planned{{Plan: p}}, func(Planned) bool { return false }), l.Close()); err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := WriteText(&w, path); err != nil || strings.Count(w.String(), "<&>") != 2 {
		t.Errorf("%s, %v", w.String(), err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("text of another program, which is long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteText(&w, other); err == nil || !strings.Contains(err.Error(), "neither") || !strings.Contains(err.Error(), other) {
		t.Error(err)
	}
	if err := WriteText(&w, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
