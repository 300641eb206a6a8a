package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

// readLedger reads a ledger that another process may be writing.
func readLedger(f journal.File) (*Ledger, error) {
	l, _, err := read(f)
	return l, err
}

// disk is a file that forgets what was not synced when the machine fails.
type disk struct {
	synced, b []byte
	fail      int // the number of writes, truncations and syncs until one fails; -1 for none
}

var errPower = errors.New("the machine failed")

func (d *disk) step() error {
	if d.fail == 0 {
		return errPower
	}
	d.fail--
	return nil
}

func (d *disk) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(d.b).ReadAt(p, off) }
func (d *disk) Seek(int64, int) (int64, error)          { return int64(len(d.b)), nil }

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if err := d.step(); err != nil {
		return 0, err
	}
	if int64(len(d.b)) < off {
		return 0, io.ErrUnexpectedEOF
	}
	d.b = append(d.b[:off:off], p...)
	return len(p), nil
}

func (d *disk) Truncate(n int64) error {
	if err := d.step(); err != nil {
		return err
	}
	d.b = slices.Clone(d.b[:n])
	return nil
}

func (d *disk) Sync() error {
	if err := d.step(); err != nil {
		return err
	}
	d.synced = slices.Clone(d.b)
	return nil
}

// after returns the file as it may be after the machine failed: what was synced, and n bytes of the
// write that was not.
func (d *disk) after(n int) *disk {
	b := slices.Clone(d.synced)
	if len(d.b) > len(d.synced) && bytes.HasPrefix(d.b, d.synced) {
		b = append(b, d.b[len(b):min(len(b)+n, len(d.b))]...)
	}
	return &disk{synced: slices.Clone(b), b: b, fail: -1}
}

// fresh returns a file with a new ledger, of which the first calls do not fail.
func fresh(t *testing.T, fail int) *disk {
	t.Helper()
	b := New()
	return &disk{b: b, synced: slices.Clone(b), fail: fail}
}

func facts(pairs ...string) Facts {
	f := Facts{}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return f
}

// The steps of a conversion, each with what the ledger must have after it.
var steps = []func(*Ledger) error{
	func(l *Ledger) error { return l.Begin("r1") },
	func(l *Ledger) error { return l.Set("", facts("created", "true")) },
	func(l *Ledger) error { return l.Set("", facts("created", "true", "position", `{"a":1}`)) },
	func(l *Ledger) error { return l.Set("", facts("created", "true", "position", `{"a":2}`, "size", "5")) },
	func(l *Ledger) error { return l.Begin("r2") },
	func(l *Ledger) error { return l.Set("", facts("position", `{"a":2}`)) },
}

// A ledger has, after a crash at any write, any torn write and any restart, all steps that returned,
// and at most one more. The rest then goes on.
func TestCrashes(t *testing.T) {
	type content struct {
		runs  []string
		facts Facts
	}
	var want []content // after each number of steps
	whole := fresh(t, -1)
	l, err := Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, content{nil, Facts{}})
	for _, step := range steps {
		if err := step(l); err != nil {
			t.Fatal(err)
		}
		again, err := readLedger(whole)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, content{again.runs, again.facts})
	}
	for fail := range 100 {
		d := fresh(t, fail)
		done := 0
		l, err := Open(d)
		for err == nil && done < len(steps) {
			if err = steps[done](l); err == nil {
				done++
			}
		}
		if err == nil {
			if fail < 10 {
				t.Fatalf("only %d calls may fail", fail)
			}
			return
		}
		for torn := range 200 {
			after := d.after(torn)
			l, err := Open(after)
			if err != nil {
				t.Fatalf("crash at %d, %d bytes: %v", fail, torn, err)
			}
			n := done
			if !reflect.DeepEqual(content{l.runs, l.facts}, want[n]) && n < len(steps) {
				n++
			}
			if !reflect.DeepEqual(content{l.runs, l.facts}, want[n]) {
				t.Fatalf("crash at %d, %d bytes: %q %s after %d steps", fail, torn, l.runs, l.facts, done)
			}
			for ; n < len(steps); n++ {
				if err := steps[n](l); err != nil {
					t.Fatal(err)
				}
			}
			if now, err := readLedger(after); err != nil || !reflect.DeepEqual(now.facts, want[n].facts) || !slices.Equal(now.runs, want[n].runs) {
				t.Fatalf("crash at %d, %d bytes, then to the end: %s, %v", fail, torn, now.facts, err)
			}
		}
	}
	t.Fatal("the steps do not end")
}

// What did not change is not written, and what a caller does to its map later does not matter.
func TestSet(t *testing.T) {
	d := fresh(t, -1)
	l, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	f := facts("a", "1", "b", "[2]")
	if err := l.Set("", f); err != nil {
		t.Fatal(err)
	}
	size := len(d.b)
	if err := l.Set("", f); err != nil || len(d.b) != size {
		t.Errorf("%d bytes more, %v", len(d.b)-size, err)
	}
	f["a"] = json.RawMessage("3")
	if err := l.Set("", f); err != nil || len(d.b) == size || string(l.Facts("")["a"]) != "3" || bytes.Contains(d.b[size:], []byte(`"b"`)) {
		t.Errorf("%q, %v", d.b[size:], err)
	}
	if err := l.Set("", Facts{}); err != nil || len(l.Facts("")) != 0 {
		t.Errorf("%s, %v", l.Facts(""), err)
	}
	if now, err := readLedger(d); err != nil || len(now.Facts("")) != 0 || now.Knows("") {
		t.Errorf("%s, %v", now.Facts(""), err)
	}
}

// A file of something else is an error and is not changed.
func TestOtherFile(t *testing.T) {
	d := fresh(t, -1)
	l, err := Open(d)
	if err == nil {
		err = errors.Join(l.Begin("r"), l.Begin("s"))
	}
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(d.b)
	flipped[len(format)+30] ^= 1
	for _, b := range [][]byte{[]byte("text"), []byte("bsonids undo log 3"), flipped, d.b[1:], nil, d.b[:10], d.b[:len(format)]} {
		f := &disk{b: slices.Clone(b), fail: -1}
		if _, err := Open(f); err == nil || !errors.Is(err, ErrFormat) && !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%q: %v", b, err)
		}
		if !bytes.Equal(f.b, b) {
			t.Errorf("%q became %q", b, f.b)
		}
	}
}

// A ledger whose records are not those of a ledger is an error, whatever its checksums are, and nothing of it is kept.
func TestOtherRecords(t *testing.T) {
	for _, b := range []string{"{}", "x", `{"id":7}`, `{"id":""}`} {
		if _, err := readLedger(&disk{b: journal.First(format, []byte(b)), fail: -1}); !errors.Is(err, ErrFormat) {
			t.Errorf("first record %s: got %v", b, err)
		}
	}
	for _, b := range []string{"x", `{"run":7}`, `{"set":[]}`} {
		d := fresh(t, -1)
		l, err := Open(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.w.Append([]byte(b), []int{len(b)}); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(d); !errors.Is(err, ErrFormat) {
			t.Errorf("record %s: got %v", b, err)
		}
	}
}

// brokenDisk is a file that cannot be read.
type brokenDisk struct{ disk }

func (*brokenDisk) ReadAt([]byte, int64) (int, error) { return 0, errPower }

// Errors of the file and of the writer are returned.
func TestErrors(t *testing.T) {
	d := fresh(t, -1)
	l, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	size := len(d.b)
	if err := l.Set("", facts("a", "no JSON")); err == nil || len(d.b) != size || len(l.Facts("")) != 0 {
		t.Errorf("got %v, %d bytes more and %s", err, len(d.b)-size, l.Facts(""))
	}
	if err := errors.Join(l.Begin("r1"), l.Begin("r2"), l.Begin("r3")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(journal.File) error{
		func(f journal.File) error { _, err := readLedger(f); return err }, func(f journal.File) error { _, err := Open(f); return err },
		func(f journal.File) error { return WriteText(io.Discard, f) },
	} {
		if err := f(&brokenDisk{*d}); !errors.Is(err, errPower) || errors.Is(err, ErrFormat) {
			t.Errorf("got %v", err)
		}
		damaged := &disk{b: bytes.Replace(d.b, []byte("r2"), []byte("x2"), 1), fail: -1}
		if err := f(damaged); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v", err)
		}
	}
	var text bytes.Buffer
	if err := WriteText(&text, d); err != nil || text.String() != "{\"run\":\"r1\"}\n{\"run\":\"r2\"}\n{\"run\":\"r3\"}\n" {
		t.Errorf("got %q, %v", text.String(), err)
	}
	r, w := io.Pipe()
	_ = r.CloseWithError(errPower)
	if err := WriteText(w, d); !errors.Is(err, errPower) {
		t.Errorf("got %v", err)
	}
}

// An id has 64 random bits.
func TestNewID(t *testing.T) {
	if a, b := NewID(), NewID(); len(a) != 16 || len(b) != 16 || a == b {
		t.Errorf("got %s and %s", a, b)
	}
}

// A run may begin if the ledger knows the last one and the undo log is not shorter than that of the record. It waits if it may
// have a copy of the files.
func TestJudge(t *testing.T) {
	l := &Ledger{runs: []string{"r1", "r2"}}
	for _, tt := range []struct {
		have Have
		r    Record
		wait bool
		err  error
	}{
		{Have{l, "here", 0}, Record{}, false, nil},
		{Have{l, "", 5}, Record{Place: "there", Size: 9, Moves: 3}, false, nil},
		{Have{l, "here", 5}, Record{Run: "r2", Place: "here", Size: 5}, false, nil},
		{Have{l, "here", 6}, Record{Run: "r1", Place: "here", Size: 5}, false, nil},
		{Have{l, "here", 4}, Record{Run: "r2", Place: "here", Size: 5}, false, ErrMore},
		{Have{l, "there", 4}, Record{Run: "r2", Place: "here", Size: 5}, false, ErrMore},
		{Have{l, "here", 5}, Record{Run: "r3", Place: "here", Size: 5}, false, ErrOlder},
		{Have{l, "there", 4}, Record{Run: "r3", Place: "here", Size: 5}, false, ErrOlder},
		{Have{l, "there", 5}, Record{Run: "r2", Place: "here", Size: 5}, true, nil},
		{Have{l, "", 5}, Record{Run: "r2", Place: "here", Size: 5}, true, nil},
		{Have{l, "here", 5}, Record{Run: "r2", Size: 5}, true, nil},
		{Have{l, "", 5}, Record{Run: "r2", Size: 5}, true, nil},
	} {
		if wait, err := Judge(tt.have, tt.r); wait != tt.wait || err != tt.err {
			t.Errorf("%+v, %+v: got %v, %v; want %v, %v", tt.have, tt.r, wait, err, tt.wait, tt.err)
		}
		moved := tt.r
		moved.Moves++
		if err := Again(tt.have, tt.r, moved); err != ErrMoved {
			t.Errorf("%+v, %+v: got %v after the record was written", tt.have, tt.r, err)
		}
		if err := Again(tt.have, tt.r, tt.r); err != tt.err {
			t.Errorf("%+v, %+v: got %v, want %v", tt.have, tt.r, err, tt.err)
		}
	}
}

// Several conversions write to one ledger at the same time. Each fact is there, and Set leaves what has other names.
func TestSetAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	const n = 20
	for i := range 4 {
		under, run := fmt.Sprintf("%d/", i), fmt.Sprint("run ", i)
		writers.Go(func() {
			err := f.Begin(run)
			for k := range n {
				err = errors.Join(err, f.Set(under, facts("n", fmt.Sprint(k), "gone", "1")), f.Set(under, facts("n", fmt.Sprint(k))))
			}
			if now := f.Facts(under); err != nil || !f.Knows(run) || len(now) != 1 || string(now["n"]) != fmt.Sprint(n-1) {
				t.Errorf("%s: %s, %v", under, now, err)
			}
		})
	}
	writers.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := ReadFile(path); err != nil || !reflect.DeepEqual(l.Facts(""), facts("0/n", "19", "1/n", "19", "2/n", "19", "3/n", "19")) || !l.Knows("run 3") {
		t.Errorf("%+v, %v", l, err)
	}
}
