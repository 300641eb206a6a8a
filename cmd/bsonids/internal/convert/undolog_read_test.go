package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

var errUndoTest = errors.New("failing")

// logOf writes an undo log with an entry for each of the ids, and the records.
func logOf(t *testing.T, path string, ids []any, records ...[]byte) {
	t.Helper()
	c := conversion(t, "javaLegacy")
	l, err := OpenUndoLog(path, header(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := l.Append(plans(t, c, id), func(Planned) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range records {
		if err := l.w.Append(r, []int{len(r)}); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
}

func openLog(t *testing.T, path string) *UndoReader {
	t.Helper()
	u, err := ReadUndoLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// A record that is whole and no entry is an error for whoever reads the entries.
func TestRecordsThatAreNoEntries(t *testing.T) {
	dir := t.TempDir()
	for name, record := range map[string][]byte{"no bytes": {}, "no entry": {entryRecord, 0xff}, "another": {9, 1, 2}, "an entry without changes": {entryRecord, 0, 3, 4, byte(bson.TypeNull), 0}} {
		path := filepath.Join(dir, name)
		logOf(t, path, []any{"a"}, record)
		u := openLog(t, path)
		where := fmt.Sprintf("the record at byte %d", u.end-int64(len(record))-12) // after the head
		_, unmetErr := stillUnmet(u, []unmet{{id: bson.RawValue{Type: bson.TypeNull}}})
		entriesErr := entries(u, 10, func([]Entry) error { return nil })
		for of, err := range map[string]error{"stillUnmet": unmetErr, "entries": entriesErr, "text": WriteText(io.Discard, path)} {
			if !errors.Is(err, errEntry) || !strings.Contains(err.Error(), where) {
				t.Errorf("%s, %s: got %v, want an error at %q", name, of, err, where)
			}
		}
	}
}

// A log covers what was written to it, and is read from any place up to its end.
func TestCoversAndRewind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	writtenLog(t, path)
	u := openLog(t, path)
	for _, tt := range []struct {
		id   string
		size int64
		ok   bool
	}{{"", 0, true}, {u.ID, u.Size(), true}, {"", u.Size(), true}, {"", u.Size() + 1, false}, {u.ID, u.Size() + 1, false}, {u.ID + "0", 0, false}} {
		if err := u.Covers(tt.id, tt.size); (err == nil) != tt.ok {
			t.Errorf("%q and %d bytes: got %v", tt.id, tt.size, err)
		}
	}
	for offset, n := range map[int64]int{0: 3, u.begin: 3, u.end: 0} {
		if err := u.Rewind(offset); err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := u.Next(); err != nil {
				t.Errorf("from byte %d: %v", offset, err)
			}
		}
		if _, err := u.Next(); err == nil {
			t.Errorf("more than %d entries from byte %d", n, offset)
		}
	}
	if err := u.Rewind(u.end + 1); err == nil {
		t.Error("the log is read from behind its end")
	}
}

// Entries come in batches that are full, unless the next entry is about a document in the batch, and an error ends them.
func TestBatchesOfEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	logOf(t, path, nil)
	if err := entries(openLog(t, path), 1, func([]Entry) error { t.Error("a batch of a log without entries"); return nil }); err != nil {
		t.Error(err)
	}
	logOf(t, path, []any{"a", "b", "a", "c", "d", "e", "e"})
	for size, want := range map[int]string{1: "a b a c d e e ", 2: "ab ac de e ", 3: "ab acd e e ", 10: "ab acde e "} {
		u := openLog(t, path)
		var got strings.Builder
		if err := entries(u, size, func(b []Entry) error {
			for _, e := range b {
				got.WriteString(e.ID.StringValue())
			}
			got.WriteByte(' ')
			return nil
		}); err != nil || got.String() != want {
			t.Errorf("batches of %d: got %q and %v, want %q", size, got.String(), err, want)
		}
		calls := 0
		if err := entries(u, size, func([]Entry) error { calls++; return errUndoTest }); !errors.Is(err, errUndoTest) || calls != 1 {
			t.Errorf("an error after %d calls: got %v", calls, err)
		}
		closed(t, u)
	}
}

// A batch has about as many bytes as one update: 16 MiB, and one entry.
func TestBatchesOfLargeEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	l := newLog(t, path)
	for i := range 7 {
		change := rule.Change{Path: strings.Repeat("p", 6<<20), Old: rule.Null, New: rule.Null}
		p := Planned{Plan: rule.Plan{ID: bson.RawValue{Type: bson.TypeInt32, Value: []byte{byte(i), 0, 0, 0}}, Changes: []rule.Change{change}}}
		if err := l.Append([]Planned{p}, func(Planned) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	u, got := openLog(t, path), []int(nil)
	if err := entries(u, 1000, func(b []Entry) error { got = append(got, len(b)); return nil }); err != nil || !slices.Equal(got, []int{3, 3, 1}) {
		t.Errorf("batches of %d entries, %v", got, err)
	}
	closed(t, u)
}

// The way back of an entry has its changes in the document that they made.
func TestWayBackOfAnEntry(t *testing.T) {
	c := conversion(t, "javaLegacy")
	doc := marshal(t, bson.D{{Key: "_id", Value: "a"}, {Key: "a", Value: kindstest.Value(c[0].From.Name)}})
	p, err := c.Plan(doc)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEntry(appendEntry(nil, Planned{Plan: p}, false))
	if err != nil {
		t.Fatal(err)
	}
	converted := marshal(t, bson.D{{Key: "_id", Value: "a"}, {Key: "a", Value: bson.Binary{Subtype: 4, Data: p.Changes[0].New.Octets[:]}}})
	for name, tt := range map[string]struct {
		doc           bson.Raw
		changes, lost int
	}{"converted": {converted, 1, 0}, "without the field": {marshal(t, bson.D{{Key: "_id", Value: "a"}}), 0, 1}} {
		back, lost, err := e.wayBack(tt.doc)
		if err != nil || back.ID.StringValue() != "a" || len(back.Changes) != tt.changes || len(lost) != tt.lost {
			t.Errorf("%s: got %+v, %v and %v", name, back, lost, err)
		}
	}
}

// failingWriter fails at the write after n writes, and at no other.
type failingWriter struct {
	bytes.Buffer
	n int
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.n--; w.n == -1 {
		return 0, errUndoTest
	}
	return w.Buffer.Write(p)
}

// A log as text has a line for its header and one for each entry, and an error of the writer is returned.
func TestLinesOfUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	writtenLog(t, path)
	const lines = 4
	for n := range lines + 1 {
		w := &failingWriter{n: n}
		if err := WriteText(w, path); (err == nil) != (n == lines) || err != nil && !errors.Is(err, errUndoTest) || bytes.Count(w.Bytes(), []byte("\n")) != n {
			t.Errorf("after %d of %d lines: got %v and %q", n, lines, err, w.String())
		}
	}
}

// An error of an undo log names the log: that it is none, that its header has no id, and that it cannot be written to.
func TestErrorsNameTheUndoLog(t *testing.T) {
	dir := t.TempDir()
	named := func(what, path string, err error) {
		t.Helper()
		var of *RecordError
		if !errors.As(err, &of) || of.Record != UndoRecord || of.Path != path {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for name, content := range map[string][]byte{"empty": nil, "a part of the first record": journal.First(undoFormat, nil)[:len(undoFormat)+5], "a text": []byte("text of another program, which is long enough\n")} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := ReadUndoLog(path)
		if named(name, path, err); u != nil {
			t.Errorf("%s: got %v", name, u)
		}
	}
	text := filepath.Join(dir, "a text")
	_, err := OpenUndoLog(text, header(), 0)
	named("a text", text, err)
	for name, header := range map[string]string{"no id": `{"id":""}`, "no header": `[]`} {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Create(f, undoFormat, "", []byte(header)); err != nil {
			t.Fatal(err)
		}
		closed(t, f)
		_, err = ReadUndoLog(path)
		if named(name, path, err); !errors.Is(err, errNoUndoLog) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	path := filepath.Join(dir, "undo")
	c := conversion(t, "javaLegacy")
	l := newLog(t, path)
	size := l.Size()
	closed(t, l)
	named("a log that is closed", path, l.Append(plans(t, c, "a"), func(Planned) bool { return false }))
	if l.Size() != size {
		t.Errorf("the log has %d bytes after an error, want %d", l.Size(), size)
	}
}
