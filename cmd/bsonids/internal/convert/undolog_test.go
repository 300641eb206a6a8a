package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy", "standard")
	l, err := OpenUndoLog(path, identity(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenUndoLog(path, identity(), ""); err == nil {
		t.Error("opened twice")
	}
	if _, err := ReadUndoLogAlone(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("to be undone while it is written: %v", err)
	}
	if u, err := ReadUndoLog(path); err != nil {
		t.Errorf("not to be read while it is written: %v", err)
	} else if err := u.Close(); err != nil {
		t.Error(err)
	}
	dec, _ := bson.ParseDecimal128("1E+3")
	ids := []any{bson.ObjectID{1}, "text\n", int32(1), int64(1) << 60, 1.5, math.Inf(1), bson.Binary{Subtype: 3, Data: []byte{1}},
		bson.D{{Key: "x", Value: bson.A{1, "y"}}}, true, nil, dec, bson.DateTime(-1), bson.Timestamp{T: 1, I: 2}, bson.MinKey{}, bson.MaxKey{}}
	want := plans(t, c, ids...)
	no := func(Plan) bool { return false }
	start := l.Size()
	if err := l.Append(want, c, no); err != nil || start == 0 {
		t.Fatalf("%d, %v", start, err)
	}
	for _, p := range want {
		if !keepsID(p.ID) {
			t.Errorf("%v doesn't survive", p.ID)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u, err := ReadUndoLogAlone(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenUndoLog(path, identity(), ""); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("to be written while it is undone: %v", err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := ReadUndoLogAlone(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that is missing: %v", err)
	}
	if left, err := filepath.Glob(missing + "*"); err != nil || left != nil {
		t.Errorf("a log that is missing leaves %q, %v", left, err)
	}
	got := readAll(t, path)
	for i, p := range want {
		e := got[i]
		if !e.ID.Equal(p.ID) || len(e.Changes) != 1 || e.Changes[0].Path != `a.ü"` || e.Changes[0].Old != p.Changes[0].Old || e.Changes[0].New != p.Changes[0].New || e.from != 3 || e.to != 4 || e.Again {
			t.Errorf("%v reads as %+v", p, e)
		}
	}

	// A process that is killed during a write leaves a partial line. Opening the log removes it.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 10, 50} {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, path); len(got) != len(want)-1 {
			t.Errorf("%d octets cut off: %d entries", cut, len(got))
		}
		l, err := OpenUndoLog(path, identity(), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(want[len(want)-1:], c, func(Plan) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, path); len(got) != len(want) || !got[len(got)-1].Again {
			t.Errorf("%d octets cut off and appended: %d entries", cut, len(got))
		}
	}
	other := identity()
	other.Collection = "x"
	if _, err := OpenUndoLog(path, other, ""); err == nil {
		t.Error("a log of another conversion is taken")
	}
	if keepsID(marshal(t, bson.D{{Key: "v", Value: string([]byte{0xff})}}).Lookup("v")) {
		t.Error("text that is no UTF-8 is said to survive")
	}
}

// Lines with "again" void the earlier lines about their document, and no others.
func TestVoid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy", "standard")
	l, err := OpenUndoLog(path, identity(), "")
	if err != nil {
		t.Fatal(err)
	}
	p := plans(t, c, "a", "b", "c")
	for _, step := range []struct {
		plan  int
		again bool
	}{{0, false}, {1, false}, {0, true}, {2, false}, {0, true}, {1, false}} {
		if err := l.Append(p[step.plan:step.plan+1], c, func(Plan) bool { return step.again }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 2, 100} {
		u, err := ReadUndoLog(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = entries(u, size, func(b []Entry) error {
			if len(b) > size {
				t.Errorf("%d entries at a time, want %d", len(b), size)
			}
			for _, e := range b {
				got = append(got, e.ID.StringValue())
			}
			return nil
		})
		if s := strings.Join(got, ""); err != nil || s != "bcab" {
			t.Errorf("%s, %v", s, err)
		}
		u.Close()
	}
}

// cutOff is a line with an unknown field that has no end. The driver does not return from skipping it.
const cutOff = `{"":{"$numberInt:"1"},"changes":[{"path":"a","old":{"$binary":{"base64":"AA==","subType4:"03`

// A line that is cut off is an error in an undo log, and in a skip list.
func TestLineCutOff(t *testing.T) {
	if _, err := ParseEntry([]byte(cutOff)); err == nil {
		t.Error("no error")
	}
	if err := listedLine([]byte(cutOff), "db.c", 3, nil); err == nil {
		t.Error("no error")
	}
}

func FuzzParseEntry(f *testing.F) {
	c := conversion(f, "javaLegacy", "standard")
	for i, p := range plans(f, c, "a", 1, bson.ObjectID{1}) {
		line, err := appendEntry(nil, p, 3, 4, i == 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"_id":1}`))
	f.Add([]byte(`{`))
	f.Add([]byte(cutOff))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseEntry(line)
		if err != nil {
			return
		}
		out, err := appendEntry(nil, Plan{ID: e.ID, Changes: e.Changes}, e.from, e.to, e.Again)
		if err != nil {
			return // extended JSON cannot write this _id; keepsID keeps it out of the log
		}
		if bytes.IndexByte(out, '\n') >= 0 {
			t.Errorf("%q is more than one line", out)
		}
		again, err := ParseEntry(out)
		if err != nil || len(again.Changes) != len(e.Changes) {
			t.Errorf("%s reads as %+v, %v", out, again, err)
		}
	})
}

// An error has the number of its line in the file, for any start of reading.
func TestLineNumber(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "undo")
	l, err := OpenUndoLog(path, identity(), "")
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int64
	for i := range 4 { // lines 2 to 5
		offset := l.Size()
		err := l.Append(plans(t, c, int32(i)), c, func(Plan) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, offset)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[offsets[3]:], "xx")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, offsets[1], offsets[3]} {
		u, err := ReadUndoLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Rewind(from); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = u.Next()
		}
		if !strings.Contains(err.Error(), "line 5:") {
			t.Errorf("from %d: %v", from, err)
		}
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// all does all that is done with a batch.
func (r *runner) all(t *testing.T, b batch) {
	t.Helper()
	group := []batch{b}
	if err := r.prepare(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if err := r.process(t.Context(), t.Context(), group[0]); err != nil {
		t.Fatal(err)
	}
}

// The quick ways to write an _id and a path agree with those of the driver and of encoding/json, and
// an _id that is said to be kept comes back.
func TestQuickJSON(t *testing.T) {
	texts := []string{"", "a", "a b~", "a\"b", `a\b`, "<a>", "a&b", "\t", "\x00", "caf\u00e9", "\x7f", "\u2028", "\xff"}
	ids := []any{int32(-5), int64(1) << 62, bson.ObjectID{1, 2, 0xfe}, 1.5, true, nil, bson.D{{Key: "a", Value: 1}}}
	for _, s := range texts {
		ids = append(ids, s)
		got, err := appendPath([]byte("x"), s)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := json.Marshal(s); string(got) != "x"+string(want) {
			t.Errorf("path %q: %s, want %s", s, got[1:], want)
		}
	}
	for _, subtype := range []byte{0, 2, 3, 4, 5, 0x80, 0xff} {
		ids = append(ids, bson.Binary{Subtype: subtype, Data: []byte("0123456789abcde\xff")}, bson.Binary{Subtype: subtype, Data: []byte("0")})
	}
	for _, id := range ids {
		v := marshal(t, bson.D{{Key: "v", Value: id}}).Lookup("v")
		want, err := extJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendID([]byte("x"), v)
		if err != nil || string(got) != "x"+string(want) {
			t.Errorf("%v: %s, want %s; %v", id, got, want, err)
		}
		line, err := appendEntry(nil, Plan{ID: v, Changes: []Change{{Path: "a"}}}, 3, 4, false)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEntry(line)
		if kept := err == nil && e.ID.Equal(v); kept != keepsID(v) {
			t.Errorf("%v: kept %v, said %v", id, kept, keepsID(v))
		}
	}
}

// A document is skipped if JSON cannot represent the path of a value.
func TestUndoLogPath(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "caf\xe9", Value: value(t, "javaLegacy")}}))
	if err != nil {
		t.Fatal(err)
	}
	f := newFiles(t, c)
	f.with(t, func(s *StateFile, u *UndoLog) {
		r := &runner{Options: Options{Conversion: c, Write: true, Undo: u, Progress: func(int) {}, Report: func(Totals) {}}, tracker: newTracker(),
			result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
		r.tracker.begin(0, p.ID)
		r.all(t, batch{plans: []Plan{p}, read: 1})
		if r.result.Skipped != 1 || len(readAll(t, f.undo)) != 0 {
			t.Errorf("%+v, %v", r.result, readAll(t, f.undo))
		}
	})
}

// files are the state file and the undo log of a conversion, opened for one run after another.
type files struct {
	state, undo string
	id          Identity
}

func newFiles(t *testing.T, c Conversion) files {
	dir := t.TempDir()
	return files{filepath.Join(dir, "state"), filepath.Join(dir, "undo"), Identity{Database: "d", Collection: "c", From: c.From.Name, To: c.To.Name}}
}

// with opens both files for do and closes them. It does not save the state, as if the process had
// been killed.
func (f files) with(t *testing.T, do func(*StateFile, *UndoLog)) {
	t.Helper()
	s, err := OpenState(f.state, f.id)
	if err != nil {
		t.Fatal(err)
	}
	u, err := OpenUndoLog(f.undo, f.id, f.state)
	if err != nil {
		t.Fatal(err)
	}
	do(s, u)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
