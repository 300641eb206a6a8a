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
	if err := os.WriteFile(filepath.Join(dir, PlanFile), write(t, p), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// lock locks the directory and edits its plan.
func lock(t *testing.T, dir string, p *Plan) (*State, Edited, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, PlanFile), write(t, p), 0o600); err != nil {
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

// identity returns the identity of the conversion of a step.
func identity(p *Plan, st Step) convert.Identity {
	return convert.Identity{Database: p.Database, Collection: st.Collection, Pairs: st.Pairs, Into: st.Into, Part: st.Part}
}

// stateFile changes the state file of a step, or makes one.
func stateFile(t *testing.T, dir string, p *Plan, st Step, change func(*convert.StateFile)) {
	t.Helper()
	f, err := convert.OpenState(st.Files(dir).State, identity(p, st))
	if err != nil {
		t.Fatal(err)
	}
	f.Decisions = make([]decide.Decision, len(st.Pairs))
	change(f)
	if err := errors.Join(f.Save(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func idle(*convert.StateFile)    {}
func begun(f *convert.StateFile) { f.UndoID = "0123456789abcdef" }

// seal writes the state files of the new steps, as apply does, and seals the plan.
func seal(t *testing.T, s *State, e Edited, p *Plan) {
	t.Helper()
	for _, st := range e.New {
		stateFile(t, s.dir, p, st, idle)
	}
	if err := s.Adopt(p, e.Steps); err != nil {
		t.Fatal(err)
	}
}

// A ledger of a plan that is cut at any byte tells of an earlier state, and is never taken for another one.
// If a conversion has begun since, that is found by its state file.
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
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadState(dir); err == nil || !strings.Contains(err.Error(), "put the latest copy of it back") {
		t.Errorf("flipped: %v", err)
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
	stateFile(t, dir, p, e.Steps[0], begun)
	for n := range int(sizes[0]) {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
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
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
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

// Clean removes what steps have left that are of no use, and no undo log of another conversion, although that has no
// entry.
func TestCleanOnlyOwn(t *testing.T) {
	for _, tt := range []struct {
		state, log convert.Identity // no state file if it is zero
		stays      bool
	}{
		{convert.Identity{Database: "shop", Collection: "users"}, convert.Identity{Database: "shop", Collection: "users"}, false},
		{convert.Identity{Database: "shop", Collection: "users"}, convert.Identity{Database: "shop", Collection: "orders"}, true},
		{convert.Identity{}, convert.Identity{Database: "shop", Collection: "orders"}, true},
	} {
		dir := migrated(t, split())
		s, err := Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		f := stemFiles(filepath.Join(dir, "users.javaLegacy"))
		if tt.state.Database != "" {
			of, err := convert.OpenState(f.State, tt.state)
			if err == nil {
				err = errors.Join(of.Save(), of.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		u, err := convert.OpenUndoLog(f.UndoLog, tt.log, f.State, 0)
		if err == nil {
			err = u.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Clean(), s.Close()); err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
		if _, err := os.Stat(f.UndoLog); (err == nil) != tt.stays {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
