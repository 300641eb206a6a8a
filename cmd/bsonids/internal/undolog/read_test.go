package undolog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

var errTest = errors.New("failing")

// A record that is whole and no entry is an error for whoever reads the entries.
func TestRecordsThatAreNoEntries(t *testing.T) {
	dir := t.TempDir()
	for name, record := range map[string][]byte{"no bytes": {}, "no entry": {entryRecord, 0xff}, "another": {9, 1, 2}, "an entry without changes": {entryRecord, 0, 3, 4, byte(bson.TypeNull), 0}} {
		h := header()
		h.Run = name
		l := New(dir, h)
		if err := l.Append(entriesOf(t, "a")); err != nil {
			t.Fatal(err)
		}
		if err := l.w.Append(record, []int{len(record)}); err != nil {
			t.Fatal(err)
		}
		closed(t, l)
		u := opened(t, l.Path())
		where := fmt.Sprintf("the record at byte %d", u.end-int64(len(record))-12) // after the head
		eachErr := Of(u).Each(func(Entry) error { return nil })
		for of, err := range map[string]error{"entries": eachErr, "text": WriteText(io.Discard, l.Path())} {
			if !errors.Is(err, errEntry) || !strings.Contains(err.Error(), where) {
				t.Errorf("%s, %s: got %v, want an error at %q", name, of, err, where)
			}
		}
	}
	for _, record := range []string{"\x01\x01", "\x02no JSON"} { // which are read when a log is opened
		h := header()
		h.Run = fmt.Sprintf("%x", record)
		l := New(dir, h)
		if err := errors.Join(l.Append(entriesOf(t, "a")), l.w.Append([]byte(record), []int{len(record)}), l.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(l.Path()); err == nil || !strings.Contains(err.Error(), "the record at byte") {
			t.Errorf("%q: %v", record, err)
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
		return 0, errTest
	}
	return w.Buffer.Write(p)
}

// A log as text has a line for its header and one for each entry, and an error of the writer is returned.
func TestLinesOfUndoLog(t *testing.T) {
	path := writtenLog(t)
	const lines = 4
	for n := range lines + 1 {
		w := &failingWriter{n: n}
		if err := WriteText(w, path); (err == nil) != (n == lines) || err != nil && !errors.Is(err, errTest) || bytes.Count(w.Bytes(), []byte("\n")) != n {
			t.Errorf("after %d of %d lines: got %v and %q", n, lines, err, w.String())
		}
	}
}

// An error of an undo log names the log: that it is none, and that its header has no run.
func TestErrorsNameTheUndoLog(t *testing.T) {
	dir := t.TempDir()
	named := func(what, path string, err error) {
		t.Helper()
		var of *files.Error
		if !errors.As(err, &of) || of.What != Name || of.Path != path {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for name, content := range map[string][]byte{"empty": nil, "a part of the first record": journal.First(format, nil)[:len(format)+5], "a text": []byte("text of another program, which is long enough\n")} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := Open(path)
		if named(name, path, err); u != nil || errors.Is(err, errUnmade) != (name != "a text") {
			t.Errorf("%s: got %v", name, u)
		}
	}
	for name, header := range map[string]string{"no run": `{"run":""}`, "no header": `[]`} {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Create(f, format, "", []byte(header)); err != nil {
			t.Fatal(err)
		}
		closed(t, f)
		_, err = Open(path)
		if named(name, path, err); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
