package plan

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
)

// migrated returns the directory of a migration with the plan in its file.
func migrated(t *testing.T, p *Plan) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, PlanFile), p.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// lock locks the directory and edits its plan.
func lock(t *testing.T, dir string, p *Plan) (*State, Edited, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, PlanFile), p.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Edit(got)
	return s, e, err
}

// saved changes the state of a step in the ledger.
func saved(t *testing.T, s *State, st Step, change func(*convert.State)) {
	t.Helper()
	of := s.Of(st)
	change(of)
	if err := of.Save(); err != nil {
		t.Fatal(err)
	}
}

// begun is a change of a state: the conversion has begun.
func begun(of *convert.State) { of.UndoID, of.UndoSize = "0123456789abcdef", 1 }

// seal seals the plan with decisions about the new steps, as apply does.
func seal(t *testing.T, s *State, e Edited, p *Plan) {
	t.Helper()
	decided := make(map[string]*convert.State)
	for _, st := range e.New {
		decided[st.Name()] = &convert.State{Decisions: make([]decide.Decision, len(st.Pairs))}
	}
	if err := s.Adopt(p, e.Steps, decided); err != nil {
		t.Fatal(err)
	}
}

// put writes a file.
func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A ledger of a plan that is cut at any byte tells of an earlier state, and is never taken for another one.
// If a conversion has begun since, that is found by its files.
func TestTornState(t *testing.T) {
	p := example()
	p.Collections[1].Fields[0].Decision = Leave
	dir := migrated(t, p)
	path := filepath.Join(dir, LedgerFile)
	s, e, err := lock(t, dir, p)
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
	seal(t, s, e, p)
	sizes := []int64{size()}
	if _, err := Lock(dir); err == nil {
		t.Error("a directory that is in use is locked")
	}
	for range 2 { // the second one changes nothing
		if err := s.MarkUndone(time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	sizes = append(sizes, size())
	if err := s.MarkRestored(); err != nil {
		t.Fatal(err)
	}
	sizes = append(sizes, size())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(whole)/4] ^= 1 // in the first record, which others follow
	put(t, path, flipped)
	if _, err := ReadState(dir); err == nil || !strings.Contains(err.Error(), "put the latest copy of it back") {
		t.Errorf("flipped: %v", err)
	}
	for n := range len(whole) + 1 {
		put(t, path, whole[:n])
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
		if err != nil || len(Changes(s.Plan, p)) > 0 || !reflect.DeepEqual(s.Steps(), e.Steps) || (s.Undone != "") != (int64(n) >= sizes[1]) || s.Restored != (int64(n) >= sizes[2]) {
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
	put(t, e.Steps[0].Files(dir).SkipList, []byte("x"))
	for n := range int(sizes[0]) {
		put(t, path, whole[:n])
		if s, err := ReadState(dir); err == nil || errors.Is(err, ErrNoState) {
			t.Fatalf("%d bytes: %+v, %v", n, s, err)
		}
		if s, err := Lock(dir); err == nil {
			t.Fatalf("%d bytes: %+v", n, s)
		}
	}
}

// A wrong bit is found, except in the last record, which is then as if it had not been written.
func TestDamagedState(t *testing.T) {
	p := example()
	dir := migrated(t, p)
	path := filepath.Join(dir, LedgerFile)
	s, e, err := lock(t, dir, p)
	if err != nil {
		t.Fatal(err)
	}
	seal(t, s, e, p)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.MarkUndone(time.Now()), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 4
		put(t, path, b)
		s, err := ReadState(dir)
		if int64(i) >= before.Size() {
			if err != nil || s.Undone != "" {
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
