package undolog

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

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
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

// A log is not read after it was closed, and what is no regular file is none.
func TestNoUndoLogToRead(t *testing.T) {
	u := opened(t, writtenLog(t))
	var of *files.Error
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	if err := u.Close(); err == nil {
		t.Error("closed twice")
	}
	if err := Of(u).Each(func(Entry) error { return nil }); !errors.As(err, &of) {
		t.Errorf("of a closed file: %v", err)
	}
	for _, path := range []string{t.TempDir(), os.DevNull} {
		if _, err := Open(path); !errors.As(err, &of) || of.What != Name || !strings.Contains(err.Error(), "not a regular file") {
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
	path, text := writtenLog(t), filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text of another program, which is long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, text} {
		before := openFiles(t)
		_ = WriteText(io.Discard, path)
		_ = MarkUndone(path, Undone{})
		if after := openFiles(t); after != before {
			t.Errorf("%s: %d files are open, %d before", path, after, before)
		}
	}
}

// noFile fails whatever is done with it.
type noFile struct{ journal.File }

func (noFile) ReadAt([]byte, int64) (int, error) { return 0, errTest }
func (noFile) Seek(int64, int) (int64, error)    { return 100, nil }

// A file that cannot be read is not taken for an empty one, which would be written over.
func TestUnreadableUndoLog(t *testing.T) {
	if _, _, err := readHeader(noFile{}); !errors.Is(err, errTest) {
		t.Error(err)
	}
}

// A path is written as it is, and a file that is no log is an error.
func TestTextOfOtherFiles(t *testing.T) {
	l := New(t.TempDir(), header())
	e := entriesOf(t, "<&>")
	e[0].Changes[0].Path = "a<&>"
	if err := errors.Join(l.Append(e), l.Close()); err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := WriteText(&w, l.Path()); err != nil || strings.Count(w.String(), "<&>") != 2 {
		t.Errorf("%s, %v", w.String(), err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("text of another program, which is long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteText(&w, other); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), other) {
		t.Error(err)
	}
	if err := WriteText(&w, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
