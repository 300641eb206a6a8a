package undo

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A failure ends the undo with an error that names the collection. What was restored until then is told, and the same command goes on.
func TestPlanFails(t *testing.T) {
	for _, failing := range []string{"a", "b", record.Name} {
		m := apply(t)
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if of, _ := command.Lookup(name).StringValueOK(); of == failing && (name == "update" || name == "insert") {
				f.Code = 13
			}
			return f
		}
		steps, restored, err := m.undo()
		var of *migration.CollectionError
		switch {
		case err == nil || restored:
			t.Errorf("%s: %v, %v", failing, restored, err)
		case failing == record.Name && len(steps) > 0, failing != record.Name && (!errors.As(err, &of) || of.Collection != failing || steps[len(steps)-1].Step.Collection != failing):
			t.Errorf("%s: %q, %v", failing, names(steps), err)
		}
		m.s.Before = nil
		if plans := m.plans(); failing != record.Name && len(plans) != 1 {
			t.Errorf("%s: %+v", failing, plans)
		}
		if _, restored, err := m.undo(); err != nil || !restored {
			t.Errorf("%s: %v", failing, err)
		}
		m.same("a", m.before)
		m.same("b", m.before)
	}
}

// If files of a step are missing, damaged or others, all are named, and nothing is written.
func TestPlanWithoutFiles(t *testing.T) {
	remove := func(t *testing.T, name string) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for what, spoil := range map[string]func(t *testing.T, name string){
		"removed": remove,
		"cut off": func(t *testing.T, name string) {
			info, err := os.Stat(name)
			if err == nil {
				err = os.Truncate(name, info.Size()-1)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"of another collection": func(t *testing.T, name string) {
			remove(t, name)
			l, err := convert.OpenUndoLog(name, convert.Header{ID: "0123456789abcdef"}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, of := range []string{"a", "b", "ab"} {
			m := apply(t)
			state, err := plan.ReadState(m.dir)
			if err != nil {
				t.Fatal(err)
			}
			var spoilt []string
			for _, st := range state.Steps() {
				if st.Into == "" && strings.Contains(of, st.Collection) {
					spoilt = append(spoilt, state.Files(st).UndoLog)
				}
			}
			for _, name := range spoilt {
				spoil(t, name)
			}
			for _, m.o.Write = range []bool{false, true} {
				steps, restored, err := m.undo()
				if err == nil || restored || len(steps) > 0 || slices.ContainsFunc(spoilt, func(name string) bool { return !strings.Contains(err.Error(), name) }) {
					t.Errorf("%s of %s: %+v, %v", what, of, steps, err)
				}
			}
			m.same("a", m.after)
			m.same("b", m.after)
			if len(m.plans()) > 0 {
				t.Errorf("%s of %s: it is recorded", what, of)
			}
		}
	}
}

// Whichever command the server refuses, the undo fails and is not complete, and the same command restores the rest. That the server
// does not say what it is, or what the user may do, changes nothing.
func TestPlanAnyCommandFails(t *testing.T) {
	refused := 0
	for at := 1; ; at++ {
		m := apply(t)
		m.limit = time.Second // a run whose end is not recorded is waited for
		var sent atomic.Int64
		var last atomic.Value
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if name != "endSessions" && sent.Add(1) == int64(at) {
				last.Store(name)
				f.Code = 2
			}
			return f
		}
		_, _, err := m.undo()
		m.s.Before = nil
		name, is := last.Load().(string)
		if !is { // all commands were answered
			break
		}
		refused++
		if tolerated := name == "buildInfo" || name == "ping" || name == "connectionStatus"; (err == nil) != tolerated {
			t.Errorf("%s, command %d: %v", name, at, err)
		}
		if err != nil {
			if _, restored, err := m.undo(); err != nil || !restored {
				t.Errorf("after %s, command %d: %v", name, at, err)
			}
		}
		m.same("a", m.before)
		m.same("b", m.before)
	}
	if refused < 20 {
		t.Errorf("%d commands", refused)
	}
}

// A log that has less than the record says is damaged.
func TestPlanOfLongerLog(t *testing.T) {
	m := apply(t)
	ended := time.Now().Add(-time.Hour)
	m.insert(record.Run{ID: "b/1", Kind: record.Convert, Task: kinds.Task{Collection: "b", Pairs: []kinds.Pair{{From: "javaLegacy"}}}, Epoch: 1, Conversion: "first", Started: ended, Updated: ended, Ended: &ended,
		Outcome: record.Done, UndoID: m.ids["b"], UndoSize: 1 << 20})
	if steps, _, err := m.undo(); err == nil || len(steps) > 0 || !strings.Contains(err.Error(), "of 1048576") {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same("a", m.after)
}

// If the collections cannot be put back, nothing is changed.
func TestPlanNotPutBack(t *testing.T) {
	m := apply(t)
	other := errors.New("not put back")
	m.putBack = func() error { return other }
	if steps, restored, err := m.undo(); !errors.Is(err, other) || restored || len(steps) > 0 || len(m.plans()) > 0 {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same("a", m.after)
	m.same("b", m.after)
}

// Wherever the ledger cannot be written any more, the undo fails, and the same command restores the rest. Nothing is undone of which
// the ledger does not say it before.
func TestPlanLedgerFails(t *testing.T) {
	for fails := 1; ; fails++ {
		m := apply(t)
		writes := 0
		m.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
			if slices.Contains([]string{"insert", "update", "findAndModify"}, name) {
				if writes++; writes == fails {
					_ = m.state.Close()
				}
			}
			return f
		}
		steps, _, err := m.undo()
		m.s.Before = nil
		if writes < fails {
			if err != nil || fails < 6 { // of the record, and of two collections in batches of three documents
				t.Errorf("%d writes, %v", writes, err)
			}
			return
		}
		state, readErr := plan.ReadState(m.dir)
		if readErr != nil || state.Restored != (err == nil) || err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("write %d: %v, restored %v, %v", fails, err, state.Restored, readErr)
		}
		if len(steps) > 0 && state.Undone == "" {
			t.Errorf("write %d: the undo has begun, and the ledger does not have it", fails)
		}
		for _, st := range state.Steps() {
			restored := slices.ContainsFunc(m.s.Documents(m.collection(st.Collection)), func(doc bson.Raw) bool {
				return slices.ContainsFunc(m.before[st.Collection], func(b bson.Raw) bool { return bytes.Equal(b, doc) })
			})
			if restored && state.Of(st).Undone == "" {
				t.Errorf("write %d: values of %s are restored, and the ledger does not have it", fails, st.Collection)
			}
		}
		if _, restored, err := m.undo(); err != nil || !restored {
			t.Errorf("write %d: %v", fails, err)
		}
		m.same("a", m.before)
		m.same("b", m.before)
	}
}

// A plan is not undone again while a conversion that began after its undo has made values of one of its collections. What
// it did with a copy, or with a collection that was not begun, does not matter, nor does one that began before the undo.
func TestPlanInOrder(t *testing.T) {
	for _, tt := range []struct {
		of, idle string
		before   bool
		refused  bool
	}{{"b", "", false, true}, {"b", "", true, false}, {"b", "b", false, false}, {"c", "", false, false}} {
		m := applied(t, &plan.Plan{Database: "d"}, tt.idle, 5)
		ended := time.Now().Add(-time.Hour)
		run := record.Run{Kind: record.Convert, Task: kinds.Task{Collection: tt.of}, Started: ended, Updated: ended, Ended: &ended, Outcome: record.Done, Progress: record.Progress{Changed: 1}}
		run.Pairs = []kinds.Pair{{From: "javaLegacy"}}
		first, undo, later := run, run, run
		first.ID, first.Epoch, first.UndoID = tt.of+"/1", 1, m.ids[tt.of]
		undo.ID, undo.Epoch, undo.UndoID, undo.Kind = tt.of+"/2", 2, m.ids[tt.of], record.Undo
		later.ID, later.Epoch, later.UndoID, later.Directory = tt.of+"/3", 3, "later", "/later"
		later.Conversion, undo.Started, later.Started = "later", ended.Add(time.Minute), ended.Add(2*time.Minute)
		if tt.before {
			later.Started = ended.Add(time.Second)
		}
		m.insert(first)
		m.insert(undo)
		m.insert(later)
		begun := false
		m.putBack = func() error {
			begun = true
			return nil
		}
		_, restored, err := m.undo()
		if refused := isUsage(err) && strings.Contains(err.Error(), "/later"); refused != tt.refused || restored == tt.refused || begun == tt.refused {
			t.Errorf("%+v: got %v, restored %v, put back %v", tt, err, restored, begun)
		}
		if tt.refused {
			m.same("a", m.after)
			m.same("b", m.after)
		}
	}
}

// A collection that was dropped is an error of its step. What is restored before it stays restored.
func TestPlanOfDropped(t *testing.T) {
	m := apply(t)
	m.s.Drop(m.collection("a"))
	var of *migration.CollectionError
	if steps, restored, err := m.undo(); !errors.As(err, &of) || of.Collection != "a" || !isUsage(err) || restored || len(steps) != 3 {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same("b", m.before)
}
