package plan

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
)

// A ledger of a plan that is cut at any byte tells of an earlier state, and is never taken for another
// one. The directory can then be opened again, if it ever had a plan.
func TestTornState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, LedgerFile)
	p := example()
	s, err := OpenState(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	sizes := []int64{size()}
	s.Decided = true
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	sizes = append(sizes, size())
	for range 2 { // the second one changes nothing
		if err := s.MarkUndone(time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	sizes = append(sizes, size())
	if _, err := LockState(dir); err == nil {
		t.Error("a directory that is in use is locked")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadState(dir)
		if int64(n) < sizes[0] {
			if err == nil {
				t.Fatalf("%d bytes: %+v", n, s)
			}
			if _, err := LockState(dir); err == nil {
				t.Fatalf("%d bytes: locked", n)
			}
			continue
		}
		if err != nil || Difference(s.Plan, p) != "" || s.Decided != (int64(n) >= sizes[1]) || (s.Undone != "") != (int64(n) >= sizes[2]) {
			t.Fatalf("%d bytes: %+v, %v", n, s, err)
		}
		if s, err = LockState(dir); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		err = s.MarkUndone(time.Unix(2e9, 0))
		if e := s.Close(); err != nil || e != nil {
			t.Fatal(err, e)
		}
		if s, err = ReadState(dir); err != nil || s.Undone == "" {
			t.Fatalf("%d bytes: %+v, %v", n, s, err)
		}
	}
}

// A ledger that has lost its last record does not hide that a step has begun: another plan does not remove
// the state file of the step.
func TestBegunWithoutLastRecord(t *testing.T) {
	dir, p := t.TempDir(), example()
	path := filepath.Join(dir, LedgerFile)
	s, err := OpenState(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	undecided, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Decided = true
	if err := errors.Join(s.Save(), s.Close()); err != nil {
		t.Fatal(err)
	}
	st := p.Steps()[0]
	step := st.Files(dir).State
	f, err := convert.OpenState(step, convert.Identity{Database: p.Database, Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields})
	if err != nil {
		t.Fatal(err)
	}
	f.UndoID = "0123456789abcdef"
	if err := errors.Join(f.Save(), f.Close(), os.WriteFile(path, undecided, 0o600)); err != nil {
		t.Fatal(err)
	}
	if s, err := ReadState(dir); err != nil || !s.Decided {
		t.Errorf("%+v, %v", s, err)
	}
	other := example()
	other.Collections = other.Collections[:1]
	if s, err := OpenState(dir, other); err == nil {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(step); err != nil {
		t.Error(err)
	}
}

// A wrong bit is found, except in the last record, which is then as if it had not been written.
func TestDamagedState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, LedgerFile)
	s, err := OpenState(dir, example())
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Decided = true
	if err := errors.Join(s.Save(), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadState(dir)
		if int64(i) >= before.Size() {
			if err != nil || s.Decided {
				t.Fatalf("byte %d: %+v, %v", i, s, err)
			}
		} else if err == nil {
			t.Fatalf("byte %d: %+v", i, s)
		}
	}
	if _, err := ReadState(t.TempDir()); !errors.Is(err, ErrNoState) {
		t.Error(err)
	}
	if _, err := LockState(t.TempDir()); !errors.Is(err, ErrNoState) {
		t.Error(err)
	}
}
