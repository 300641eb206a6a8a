package convert

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// openState returns the state in the ledger at path, which is new if the ledger has none.
func openState(t *testing.T, path string) (*State, *ledger.File) {
	t.Helper()
	f, err := ledger.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &State{Conversion: "first"}
	if facts := f.Facts("c/"); len(facts) > 0 {
		if s, err = StateOf(facts); err != nil {
			t.Fatal(err)
		}
	}
	s.SaveTo(f, "c/")
	return s, f
}

// What is saved is read again, and what others have in the ledger stays.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	s, f := openState(t, path)
	other := ledger.Facts{"x": json.RawMessage("1")}
	if err := f.Set("c.2/", other); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(); err != nil || s.Begun() || s.HasFiles() {
		t.Fatalf("%+v, %v", s, err)
	}
	id := marshal(t, bson.D{{Key: "v", Value: bson.Binary{Subtype: 3, Data: []byte{0xff, 0}}}}).Lookup("v")
	s.Position, s.UndoOffset, s.UndoSize, s.Changed = newPosition(id), 1<<40, 1<<41, 7
	if err := errors.Join(s.Save(), f.Close()); err != nil {
		t.Fatal(err)
	}
	again, f := openState(t, path)
	if !again.Position.raw().Equal(id) || again.UndoOffset != 1<<40 || again.Changed != 7 || again.Done || again.Conversion != "first" || !again.Begun() || !reflect.DeepEqual(f.Facts("c.2/"), other) {
		t.Errorf("%+v", again)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var of *RecordError
	s.Changed++
	if err := s.Save(); !errors.As(err, &of) || of.Record != LedgerRecord || of.Path != path {
		t.Errorf("saved to a ledger that is closed: %v", err)
	}
	for _, bad := range []string{`{}`, `{"unknown":1}`, `{"run":"x","unknown":1}`, `{"run":"x","undoOffset":-1}`, `{"run":"x","position":{"type":7,"value":"AAA="}}`} {
		var facts ledger.Facts
		if err := json.Unmarshal([]byte(bad), &facts); err != nil {
			t.Fatal(err)
		}
		if s, err := StateOf(facts); !errors.Is(err, ledger.ErrFormat) {
			t.Errorf("%s is the state %+v, %v", bad, s, err)
		}
	}
}

// The id of the undo log is in the ledger before the log is made, and stays.
func TestBeginUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	var id string
	for range 2 {
		s, f := openState(t, path)
		if err := s.BeginUndoLog(); err != nil || !s.HasFiles() || s.Begun() {
			t.Errorf("%+v, %v", s, err)
		}
		if id == "" {
			id = s.UndoID
		}
		if s.UndoID != id || len(id) != 16 || strings.Trim(id, "0123456789abcdef") != "" || string(f.Facts("c/")["undoId"]) != strconv.Quote(id) {
			t.Errorf("%q, %q", id, s.UndoID)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The ledger has each run.
func TestBegin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	for _, run := range []string{"r1", "r2"} {
		s, f := openState(t, path)
		if err := errors.Join(s.Begin(run), f.Close()); err != nil {
			t.Fatal(err)
		}
		s, f = openState(t, path)
		if !s.Knows(run) || s.Knows("r3") {
			t.Errorf("%s: %+v", run, s)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzState(f *testing.F) {
	s := State{Conversion: "first", Position: &Position{7, make([]byte, 12)}, UndoID: "x", UndoOffset: 5}
	b, err := json.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"run":"first","position":{"type":2,"value":"AgAAAGEA"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var facts ledger.Facts
		if json.Unmarshal(b, &facts) != nil {
			return
		}
		s, err := StateOf(facts)
		if err != nil {
			return
		}
		facts = ledger.Facts{}
		if err := facts.Add("", s); err != nil {
			t.Fatal(err)
		}
		again, err := StateOf(facts)
		if err != nil || again.Conversion != s.Conversion || again.UndoOffset != s.UndoOffset || !again.Position.raw().Equal(s.Position.raw()) {
			t.Errorf("%s reads as %+v, %v", b, again, err)
		}
	})
}
