package migrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// If undo logs are missing, cut off or damaged, all are named, and nothing is written. A flag restores the rest, and leaves the
// files as they are: they may have old values.
func TestUndoWithoutLogs(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(path string, b []byte) error{
		"removed":  func(path string, _ []byte) error { return os.Remove(path) },
		"cut off":  func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o600) },
		"flipped":  func(path string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
		"no log":   func(path string, _ []byte) error { return os.WriteFile(path, []byte("text\n"), 0o600) },
		"unmade":   func(path string, b []byte) error { return os.WriteFile(path, b[:10], 0o600) },
		"no bytes": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
	} {
		for _, of := range []string{"a", "b", "ab"} {
			m := applied(t, 6)
			var spoilt []string
			for _, name := range strings.Split(of, "") {
				path := m.logs[name][1]
				b, err := os.ReadFile(path)
				if err == nil {
					err = spoil(path, b)
				}
				if err != nil {
					t.Fatal(err)
				}
				spoilt = append(spoilt, path)
			}
			recorded := len(m.runs())
			for _, m.o.Write = range []bool{false, true} {
				steps, err := m.undo()
				if err == nil || len(steps) > 0 || slices.ContainsFunc(spoilt, func(path string) bool { return !strings.Contains(err.Error(), path) }) {
					t.Errorf("%s of %s: %+v, %v", what, of, steps, err)
				}
			}
			if m.same(m.after); len(m.runs()) != recorded {
				t.Errorf("%s of %s: it is recorded", what, of)
			}
			left := make(map[string][]byte)
			for _, path := range spoilt {
				left[path], _ = os.ReadFile(path)
			}
			m.o.WithoutLost = true
			if steps, err := m.undo(); err != nil || len(steps) != 3 || slices.ContainsFunc(spoilt, func(path string) bool { return !strings.Contains(strings.Join(m.warnings, "\n"), path) }) {
				t.Errorf("%s of %s: %+v, %v, %q", what, of, steps, err, m.warnings)
			}
			for path, b := range left {
				if now, _ := os.ReadFile(path); !bytes.Equal(now, b) {
					t.Errorf("%s of %s: %s had %d bytes, and has %d", what, of, path, len(b), len(now))
				}
			}
			for name, docs := range m.before {
				n := len(docs)
				if strings.Contains(of, name) {
					n = 3 // those in the log of the first run, at least
				}
				for i, doc := range m.s.Documents(m.collection(name))[:n] {
					if !slices.Equal(doc, docs[i]) {
						t.Errorf("%s of %s: %v is not restored", what, of, doc)
					}
				}
			}
		}
	}
}

// A log that was lost in an undo and is found is looked at like any other one: if it has lost its end, it is named. So is one of
// another migration that was put into the directory.
func TestUndoOfFound(t *testing.T) {
	for _, whole := range []bool{false, true} {
		m := applied(t, 6)
		path := m.logs["b"][1]
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.o.WithoutLost = true
		if _, err := m.undo(); err != nil {
			t.Fatal(err)
		}
		m.o.WithoutLost = false
		end := len(b)
		if !whole {
			end -= 5
		}
		if err := os.WriteFile(path, b[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.undo(); (err == nil) != whole || !whole && !strings.Contains(err.Error(), path) {
			t.Errorf("whole %v: %v", whole, err)
		}
		if whole {
			m.same(m.before)
		}

		m = applied(t, 6)
		if _, err := m.collection(record.Name).UpdateMany(t.Context(), bson.D{{Key: "collection", Value: "b"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "migration", Value: "other"}}}}); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(m.logs["b"][1], int64(end)); err != nil {
			t.Fatal(err)
		}
		if _, err := m.undo(); (err == nil) != whole || !whole && !strings.Contains(err.Error(), m.logs["b"][1]) {
			t.Errorf("of another migration, whole %v: %v", whole, err)
		}
	}
}

// Without the record, nothing tells whether a log has lost its end: a flag goes by what the logs say, after a batch of their runs can be
// in flight no more. The logs then say themselves that they are undone.
func TestUndoWithoutRecord(t *testing.T) {
	m := applied(t, 6)
	m.s.Drop(m.collection(record.Name))
	if steps, err := m.undo(); err == nil || len(steps) > 0 || !strings.Contains(err.Error(), "--without-record") || !strings.Contains(err.Error(), m.logs["a"][0]) {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same(m.after)
	m.o.WithoutRecord = true
	if steps, err := m.undo(); err != nil || len(steps) != 3 || !m.complete() || !strings.Contains(strings.Join(m.warnings, "\n"), "waiting for 1ms") {
		t.Errorf("%+v, %v, %q", steps, err, m.warnings)
	}
	m.same(m.before)
	m.s.Drop(m.collection(record.Name))
	m.s.Put(m.collection("a"), m.after["a"]...)
	if _, err := m.undo(); !isUsage(err) {
		t.Errorf("again: %v", err)
	}
	m.same(map[string][]bson.Raw{"a": m.after["a"]})
}

// A log that has not even a header is named if the record lacks its run, and the limit of a batch is waited for. It has nothing to
// restore if the record says that its run has changed nothing.
func TestUndoOfUnmade(t *testing.T) {
	m := applied(t, 6)
	m.limit = 50 * time.Millisecond
	path := m.logs["b"][1]
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := m.collection(record.Name).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "b/2"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "log", Value: record.Log{}}, {Key: "progress", Value: record.Progress{}}}}}); err != nil {
		t.Fatal(err)
	}
	m.o.Write = false
	if _, err := m.undo(); err != nil {
		t.Error(err)
	}
	m.s.Drop(m.collection(record.Name))
	m.o.Write, m.o.WithoutRecord = true, true
	if steps, err := m.undo(); err == nil || len(steps) > 0 || !strings.Contains(err.Error(), path) {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same(m.after)
	m.o.WithoutLost = true
	if _, err := m.undo(); err != nil || !strings.Contains(strings.Join(m.warnings, "\n"), path) || !strings.Contains(strings.Join(m.warnings, "\n"), "waiting for 50ms") {
		t.Errorf("%v, %q", err, m.warnings)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"], "b": append(slices.Clone(m.before["b"][:3]), m.after["b"][3:]...)})
}

// A run that has just begun, as that of an undo that was interrupted while it waited, does not show that the batches are over of the
// runs that the record lacks. One that has begun long ago does.
func TestUndoWaitsAgain(t *testing.T) {
	for ago, waits := range map[time.Duration]bool{-time.Minute: true, time.Minute: false} {
		m := applied(t, 6)
		m.s.Drop(m.collection(record.Name))
		began := time.Now().Add(-ago).UTC()
		for _, st := range m.plan.Steps()[:2] {
			m.insert(record.Run{ID: st.Collection + "/1", Kind: record.Undo, Task: st.Task, Epoch: 1, Started: began, Updated: began, Ended: &began, Outcome: record.Stopped})
		}
		m.o.WithoutRecord = true
		if _, err := m.undo(); err != nil || strings.Contains(strings.Join(m.warnings, "\n"), "waiting for 1ms") != waits {
			t.Errorf("begun %v ago: %v, %q", ago, err, m.warnings)
		}
		m.same(m.before)
	}
}

// A user who may not read the record learns from the logs what would be restored.
func TestUndoOfDenied(t *testing.T) {
	m := applied(t, 6)
	m.o.Write, m.o.WithoutRecord = false, true
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); of == record.Name {
			f.Code = 13
		}
		return f
	}
	steps, err := m.undo()
	if err != nil || len(steps) != 3 || steps[0].Result.Restored != 6 || steps[1].Result.Restored != 6 {
		t.Errorf("%+v, %v", steps, err)
	}
	m.o.Write = true
	var failed *failure.Error
	if _, err := m.undo(); !errors.As(err, &failed) || failed.Kind != failure.Denied || !strings.Contains(err.Error(), record.Name) {
		t.Error(err)
	}
}

// A failure ends the undo with an error that names the collection. What was restored until then is told, and the same command goes on.
func TestUndoFails(t *testing.T) {
	for _, failing := range []string{"a", "b", record.Name} {
		m := applied(t, 6)
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if of, _ := command.Lookup(name).StringValueOK(); of == failing && (name == "update" || name == "insert") {
				f.Code = 13
			}
			return f
		}
		steps, err := m.undo()
		var of *failure.CollectionError
		if err == nil || m.complete() || failing != record.Name && (!errors.As(err, &of) || of.Collection != failing || steps[len(steps)-1].Step.Collection != failing) {
			t.Errorf("%s: %q, %v", failing, names(steps), err)
		}
		m.s.Before = nil
		if _, err := m.undo(); err != nil || !m.complete() {
			t.Errorf("%s: %v", failing, err)
		}
		m.same(m.before)
	}
}

// Whichever command the server refuses, the undo fails and is not complete, and the same command restores the rest. That the server
// does not say what it is, or what the user may do, changes nothing.
func TestUndoAnyCommandFails(t *testing.T) {
	t.Parallel()
	refused := 0
	for at := 1; ; at++ {
		m := applied(t, 6)
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
		_, err := m.undo()
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
			if _, err := m.undo(); err != nil || !m.complete() {
				t.Errorf("after %s, command %d: %v", name, at, err)
			}
		}
		m.same(m.before)
	}
	if refused < 20 {
		t.Errorf("%d commands", refused)
	}
}

// What another run has converted between the look into the record and the lock of the collection is not called restored.
func TestUndoConvertedSince(t *testing.T) {
	for _, fresh := range []bool{false, true} { // another run, or more by one that had not ended
		m := applied(t, 6)
		var done atomic.Bool
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if kind, _ := command.Lookup("documents", "0", "kind").StringValueOK(); name != "insert" || kind != record.Undo || done.Swap(true) {
				return f
			}
			if fresh {
				r := m.runs()[0]
				r.ID, r.Task, r.Epoch, r.Conversion, r.Log, r.By.Token = "b/3", m.plan.Steps()[1].Task, 3, m.plan.Conversion(m.plan.Steps()[1].Task), record.Log{Size: 100}, "since"
				m.insert(r)
				return memory.Fault{Code: 11000}
			}
			if _, err := m.collection(record.Name).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "b/2"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "log", Value: record.Log{Size: 1e6}}}}}); err != nil {
				t.Error(err)
			}
			return f
		}
		_, err := m.undo()
		if m.s.Before = nil; !done.Load() || err == nil || !strings.Contains(err.Error(), "since") || m.complete() {
			t.Errorf("%v, complete %v", err, m.complete())
		}
		m.same(m.after)
	}
}

// If the collections cannot be put back, nothing is changed.
func TestUndoNotPutBack(t *testing.T) {
	m := applied(t, 6)
	other := errors.New("not put back")
	m.putBack = func() error { return other }
	recorded := len(m.runs())
	if steps, err := m.undo(); !errors.Is(err, other) || len(steps) > 0 || len(m.runs()) != recorded {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same(m.after)
}

// A collection that was dropped is an error of its step, and the others are restored. One of the same name that lacks
// documents is another one: what became of its values is unknown.
func TestUndoOfDropped(t *testing.T) {
	var m *migrated
	for _, names := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
		m = applied(t, 6)
		for _, name := range names {
			m.s.Drop(m.collection(name))
			delete(m.before, name)
		}
		last := names[len(names)-1]
		var of *failure.CollectionError
		if steps, err := m.undo(); !errors.As(err, &of) || of.Collection != last || !isUsage(err) || len(steps) != 3 || len(m.warnings) != len(names)-1 {
			t.Errorf("%v: %+v, %v, %q", names, steps, err, m.warnings)
		}
		m.same(m.before)
	}
	for _, known := range []bool{false, true} {
		m = applied(t, 6)
		if known {
			if _, err := m.collection(record.Name).UpdateMany(t.Context(), bson.D{{Key: "collection", Value: "b"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "collectionUUID", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}}}); err != nil {
				t.Fatal(err)
			}
		}
		m.s.Put(m.collection("b"), m.after["b"][1:]...)
		steps, err := m.undo()
		if (err != nil) != known || steps[0].Result.Gone != 1 || steps[0].Result.Restored != 5 || err != nil && !strings.Contains(err.Error(), "another collection") {
			t.Errorf("%v: %+v, %v", known, steps, err)
		}
		m.same(map[string][]bson.Raw{"a": m.before["a"]})
	}
}

// A cutover that has not ended forbids an undo, dry or not, and another run forbids one that writes, before anything is changed.
func TestUndoHeld(t *testing.T) {
	for name, prepare := range map[string]func(m *migrated){
		"cutover": func(m *migrated) {
			m.insert(bson.D{{Key: "_id", Value: "x/cutover"}, {Key: "kind", Value: "cutover"}, {Key: "state", Value: record.Fencing}, {Key: "exchanges", Value: bson.A{bson.D{{Key: "name", Value: "b"}, {Key: "new", Value: "n"}}}}})
		},
		"has not ended": func(m *migrated) {
			r := m.runs()[0]
			r.ID, r.Task, r.Epoch, r.Updated, r.Ended, r.Outcome, r.Conversion, r.Log = "b/9", m.plan.Steps()[1].Task, 9, time.Now().Add(time.Hour), nil, "", "other", record.Log{}
			r.By.Token, r.Progress = "other", record.Progress{}
			m.insert(r)
		},
	} {
		for _, write := range []bool{true, false} {
			m := applied(t, 6)
			prepare(m)
			m.o.Write = write
			if _, err := m.undo(); (err != nil) != (write || name == "cutover") || err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%s, write %v: %v", name, write, err)
			}
			m.same(m.after)
		}
	}
}

// An undo that is interrupted writes no further batch, and can be run again.
func TestUndoInterrupted(t *testing.T) {
	m := applied(t, 6)
	m.o.Batch = 2
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batches := 0
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup("update").StringValueOK(); of == "b" {
			batches++
			cancel()
		}
		return f
	}
	if steps, err := m.undoWith(ctx); !errors.Is(err, context.Canceled) || batches != 1 || steps[0].Result.Restored != 2 {
		t.Errorf("%d batches, %+v, %v", batches, steps, err)
	}
	m.s.Before = nil
	if _, err := m.undo(); err != nil {
		t.Error(err)
	}
	m.same(m.before)
}

// The file rate in the directory limits an undo that writes, and no other.
func TestUndoSteered(t *testing.T) {
	for _, write := range []bool{false, true} {
		m := applied(t, 6)
		m.o.Write = write
		if err := os.WriteFile(filepath.Join(m.dir, "rate"), []byte("fast"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.undo(); err != nil || (len(m.warnings) > 0) != write {
			t.Errorf("%v, %q", err, m.warnings)
		}
	}
}

// FerretDB 1 gets no batch of more than 60 documents.
func TestUndoOfFerretDB(t *testing.T) {
	m := applied(t, 140)
	m.s.FerretDB, m.o.Batch = "v1.24.0", 1000
	var updates atomic.Int64
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); name == "update" && of == "b" {
			updates.Add(1)
		}
		return f
	}
	if _, err := m.undo(); err != nil || !m.complete() || updates.Load() != 4 { // two of each log
		t.Errorf("%d updates, %v", updates.Load(), err)
	}
	m.same(m.before)
}
