package convert

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s, err := OpenState(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenState(path, identity()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	id := marshal(t, bson.D{{Key: "v", Value: bson.Binary{Subtype: 3, Data: []byte{0xff, 0}}}}).Lookup("v")
	s.Position, s.UndoOffset, s.Changed, s.UndoID = newPosition(id), 1<<40, 7, "abc"
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	again, err := OpenState(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	if !again.Position.raw().Equal(id) || again.UndoOffset != 1<<40 || again.Changed != 7 || again.Done {
		t.Errorf("%+v", again.State)
	}
	closed(t, again)
	other := identity()
	other.Part = "1/2"
	if _, err := OpenState(path, other); err == nil {
		t.Error("a state of another conversion is taken")
	}
	// A wrong bit is found, and so is a file that was cut, except in the last record: it may have been
	// torn, and the ledger is then as it was before.
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (State, error) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadState(path)
	}
	for i := range good {
		for _, b := range [][]byte{good[:i], slices.Concat(good[:i], []byte{good[i] ^ 1<<(i%8)}, good[i+1:])} {
			if s, err := read(b); err == nil && (s.UndoOffset != 0 || s.Position != nil || s.Changed != 0) {
				t.Fatalf("%q is read as %+v", b, s)
			}
		}
	}
	for _, bad := range []string{"", "{", "null", `{"bsonids":"state 2"}`} {
		if s, err := read([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, s)
		}
		if s, err := OpenState(path, identity()); err == nil {
			t.Errorf("%q is opened as %+v", bad, s.State)
		}
	}
	for _, bad := range []string{`{}`, `{"unknown":1}`, `{"conversion":{"database":"d"},"unknown":1}`, `{"conversion":{"database":"d"},"undoOffset":-1}`,
		`{"conversion":{"database":"d"},"position":{"type":7,"value":"AAA="}}`} {
		var facts ledger.Facts
		if err := json.Unmarshal([]byte(bad), &facts); err != nil {
			t.Fatal(err)
		}
		if s, err := stateOf(facts); !errors.Is(err, ledger.ErrFormat) {
			t.Errorf("%s is the state %+v, %v", bad, s, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 { // the file and its lock
		t.Errorf("%v left behind, %v", entries, err)
	}
}

func FuzzState(f *testing.F) {
	s := State{Identity: identity(), Position: &Position{7, make([]byte, 12)}, UndoID: "x", UndoOffset: 5}
	b, err := json.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"conversion":{"database":"d"},"position":{"type":2,"value":"AgAAAGEA"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var facts ledger.Facts
		if json.Unmarshal(b, &facts) != nil {
			return
		}
		s, err := stateOf(facts)
		if err != nil {
			return
		}
		if facts, err = ledger.FactsOf(s); err != nil {
			t.Fatal(err)
		}
		again, err := stateOf(facts)
		if err != nil || !again.Identity.Equal(s.Identity) || again.UndoOffset != s.UndoOffset || !again.Position.raw().Equal(s.Position.raw()) {
			t.Errorf("%s reads as %+v, %v", b, again, err)
		}
	})
}

// A symbolic link stands for its file: a process that uses the other name is locked out, and saving
// writes the file and keeps the link.
func TestLinkedFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", "undo"} {
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(dir, name+"-link")); err != nil {
			t.Skip(err) // Windows requires a privilege
		}
	}
	for _, first := range []string{"", "-link"} { // the link exists before its file
		s, err := OpenState(filepath.Join(dir, "state"+first), identity())
		if err != nil {
			t.Fatal(err)
		}
		u, err := OpenUndoLog(filepath.Join(dir, "undo"+first), identity(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"", "-link"} {
			if _, err := OpenState(filepath.Join(dir, "state"+other), identity()); err == nil {
				t.Errorf("two processes have the state: %q and %q", first, other)
			}
			if _, err := OpenUndoLog(filepath.Join(dir, "undo"+other), identity(), "", 0); err == nil {
				t.Errorf("two processes have the undo log: %q and %q", first, other)
			}
			if _, err := ReadUndoLogAlone(filepath.Join(dir, "undo"+other)); err == nil {
				t.Errorf("an undo log is undone that is written: %q and %q", first, other)
			}
		}
		s.Changed += 7
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), u.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"state", "state-link"} {
		s, err := OpenState(filepath.Join(dir, name), identity())
		if err != nil {
			t.Fatal(err)
		}
		if s.Changed != 14 {
			t.Errorf("%s: %d", name, s.Changed)
		}
		closed(t, s)
	}
}
