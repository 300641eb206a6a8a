package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// migrated is the directory of a plan that was applied: the collections a and b of the database d are converted from
// javaLegacy, and c has the copy c_new.
type migrated struct {
	*testing.T
	*messages
	s             *memory.Server
	dir           string
	before, after map[string][]bson.Raw
	ids           map[string]string // of the undo logs
	o             Options
	limit         time.Duration // of a batch
	putBack       func() error
	state         *plan.State // which is undone
}

func apply(t *testing.T) *migrated {
	t.Helper()
	return applied(t, &plan.Plan{Database: "d"}, "", 5)
}

// applied carries p out with the collections, except for one. Each has n documents.
func applied(t *testing.T, p *plan.Plan, idle string, n int) *migrated {
	t.Helper()
	m := &migrated{t, new(messages), memory.Start(t), filepath.Join(t.TempDir(), "d.d"), make(map[string][]bson.Raw), make(map[string][]bson.Raw), make(map[string]string), Options{Write: true, Batch: 3}, time.Minute, func() error { return nil }, nil}
	for _, name := range []string{"a", "b", "c"} {
		c := plan.Collection{Name: name, Fields: []plan.Field{{Path: "v", Stored: kinds.Subtype3, Decision: plan.Convert("javaLegacy")}}}
		if name == "c" {
			c.Into = "c_new"
		}
		p.Collections = append(p.Collections, c)
	}
	state, err := plan.Create(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.WritePlan(p); err != nil {
		t.Fatal(err)
	}
	e, err := state.Edit(p)
	if err != nil {
		t.Fatal(err)
	}
	decided := make(map[string]*convert.State)
	for _, st := range e.New {
		decided[st.Name()] = m.convert(state.Files(st), st, st.Collection == idle, n)
	}
	if err := errors.Join(state.Adopt(p, e.Steps, decided), state.Close()); err != nil {
		t.Fatal(err)
	}
	return m
}

// convert makes the undo log of a step that is done, or has not begun, and its collection. It returns the state.
func (m *migrated) convert(f plan.Files, st plan.Step, idle bool, n int) *convert.State {
	m.Helper()
	s := &convert.State{Decisions: []decide.Decision{{From: st.Pairs[0].From}}}
	if !idle {
		s.Done, s.Changed, s.Created = true, 5, st.Into != ""
	}
	if name := st.Collection; st.Into == "" && !idle {
		m.before[name], m.after[name], s.UndoID, s.UndoSize = written(m.T, f.UndoLog, st.Task, "v", n)
		m.ids[name] = s.UndoID
	}
	m.s.Put(m.collection(st.Collection), m.after[st.Collection]...)
	return s
}

func (m *migrated) collection(name string) *mongo.Collection {
	return m.s.Client.Database("d").Collection(name)
}

// undo undoes the plan, and returns the state as it is then.
func (m *migrated) undo() (steps []report.UndoneStep, restored bool, err error) {
	m.Helper()
	m.state, err = plan.LockState(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	s := &migration.Session{Client: m.s.Client, Messages: m.messages, Recording: migration.Recording{BatchTimeout: m.limit, Halves: true}}
	steps, err = Plan(m.Context(), s, m.o, m.state, m.putBack)
	restored = m.state.Restored
	if err := m.state.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		m.Fatal(err)
	}
	return steps, restored, err
}

// same fails the test unless a collection has the documents.
func (m *migrated) same(name string, want map[string][]bson.Raw) {
	m.Helper()
	if got := m.s.Documents(m.collection(name)); !slices.EqualFunc(got, want[name], func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
		m.Errorf("%s: got %v\nwant %v", name, got, want[name])
	}
}

// insert inserts a document into the record.
func (m *migrated) insert(doc any) {
	m.Helper()
	if _, err := m.collection(record.Name).InsertOne(context.Background(), doc); err != nil {
		m.Fatal(err)
	}
}

// plans returns the plans in the record.
func (m *migrated) plans() []record.Plan {
	m.Helper()
	all, err := record.Plans(m.Context(), m.s.Client.Database("d"))
	if err != nil {
		m.Fatal(err)
	}
	return all
}

// names returns the collections of steps in their order.
func names(steps []report.UndoneStep) (all []string) {
	for _, s := range steps {
		all = append(all, s.Step.Collection)
	}
	return all
}

// An undo restores the collections in the opposite order of the work, and leaves the copy. A dry one changes nothing anywhere. One that
// is carried out again finds that nothing is left to do.
func TestPlan(t *testing.T) {
	m := apply(t)
	for _, write := range []bool{false, true, true} {
		m.o.Write = write
		steps, restored, err := m.undo()
		if err != nil || restored != write || !slices.Equal(names(steps), []string{"c", "b", "a"}) || len(m.warnings) > 0 {
			t.Fatalf("%+v, %v, %v, %q", steps, restored, err, m.warnings)
		}
		for _, s := range steps {
			want := int64(5)
			if s.Step.Collection == "c" {
				want = 0
			}
			if s.Begun != (want > 0) || s.Result.Entries != want || s.Result.Left != 0 || s.Pairs[0].From != "javaLegacy" {
				t.Errorf("%+v", s)
			}
		}
		now := m.after
		if write {
			now = m.before
		}
		m.same("a", now)
		m.same("b", now)
		if plans := m.plans(); (len(plans) > 0) != write {
			t.Errorf("%d plans in the record", len(plans))
		}
	}
}

// What other programs have changed is left, and the undo is not complete, until that is accepted.
func TestPlanLeft(t *testing.T) {
	m := apply(t)
	if _, err := m.collection("b").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: int32(3)}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: "other"}}}}); err != nil {
		t.Fatal(err)
	}
	for _, accepted := range []bool{false, true} {
		m.o.AllowChanged = accepted
		steps, restored, err := m.undo()
		if err != nil || restored != accepted || len(steps) != 3 || steps[1].Result.Left != 1 || steps[2].Result.Left != 0 {
			t.Errorf("%+v, %v, %v", steps, restored, err)
		}
		m.same("a", m.before)
	}
}

// A user who may not read the record learns from the files what would be restored.
func TestPlanWithoutRecord(t *testing.T) {
	m := apply(t)
	m.o.Write = false
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); of == record.Name {
			f.Code = 13
		}
		return f
	}
	steps, _, err := m.undo()
	if err != nil || len(steps) != 3 || steps[1].Result.Restored != 5 || steps[2].Result.Restored != 5 {
		t.Errorf("%+v, %v", steps, err)
	}
}

// New values that a log does not have may be of another conversion, of which the undo warns unless it is of the plan, too.
func TestPlanBesideOthers(t *testing.T) {
	for _, own := range []bool{true, false} {
		m := apply(t)
		ended := time.Now().Add(-time.Hour)
		for i, id := range []string{m.ids["b"], "other"} {
			if own && i == 1 {
				id = m.ids["a"]
			}
			m.insert(record.Run{ID: fmt.Sprintf("b/%d", i+1), Kind: record.Convert, Task: kinds.Task{Collection: "b", Pairs: []kinds.Pair{{From: "javaLegacy"}}}, Epoch: int64(i + 1), Conversion: fmt.Sprint(i), Started: ended, Updated: ended,
				Ended: &ended, Outcome: record.Done, UndoLog: "/logs/" + id, UndoID: id, Progress: record.Progress{Changed: 1}})
		}
		m.s.Put(m.collection("b"), append(slices.Clone(m.after["b"]), marshal(t, bson.D{{Key: "_id", Value: int32(100)}, {Key: "v", Value: kindstest.Value("standard")}}))...)
		steps, _, err := m.undo()
		if err != nil || steps[1].Result.Foreign != 1 || (len(m.warnings) > 0) == own {
			t.Errorf("%v: %+v, %v, %q", own, steps, err, m.warnings)
		}
	}
}

// A collection that was not begun has nothing to restore. An undo log that is lost during the undo is an error.
func TestPlanNotBegun(t *testing.T) {
	m := applied(t, &plan.Plan{Database: "d"}, "a", 5)
	steps, restored, err := m.undo()
	if err != nil || !restored || len(steps) != 3 || steps[2].Begun || !steps[1].Begun {
		t.Errorf("%+v, %v", steps, err)
	}

	m = apply(t)
	state, err := plan.ReadState(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	files := state.Files(state.Steps()[0]).UndoLog
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); name == "update" && of == "b" {
			_ = os.Remove(files)
		}
		return f
	}
	var failed *migration.CollectionError
	if _, restored, err := m.undo(); !errors.As(err, &failed) || failed.Collection != "a" || !strings.Contains(err.Error(), files) || restored {
		t.Error(err)
	}
	m.same("a", m.after)
	m.same("b", m.before)
}

// A log of which a process was killed while it made it restores nothing, if the conversion has not begun by the ledger, and is damaged otherwise.
func TestPlanOfUnmadeLog(t *testing.T) {
	for _, of := range []string{"idle", "begun"} {
		for _, size := range []int64{0, 5} {
			m := applied(t, &plan.Plan{Database: "d"}, map[string]string{"idle": "a"}[of], 5)
			state, err := plan.LockState(m.dir)
			if err != nil {
				t.Fatal(err)
			}
			st := state.Steps()[0]
			if of == "idle" {
				err = state.Of(st).BeginUndoLog()
			}
			path := state.Files(st).UndoLog
			if err := errors.Join(err, state.Close(), os.WriteFile(path, []byte("bsonids undo log")[:size], 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, restored, err := m.undo(); restored != (of == "idle") || (err == nil) != restored || err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %d bytes: %v, %v", of, size, restored, err)
			}
		}
	}
}

// The new values of a service are counted once, by the conversion that listed values. What conversions of the list have made, also of
// the list of another one of these, is of no service.
func TestListed(t *testing.T) {
	l := make(listed)
	for _, tt := range []struct {
		st   plan.Step
		of   convert.Undone
		want int64
	}{
		{plan.Step{Task: kinds.Task{Collection: "b"}, Pass: 3, Listed: true, Of: 1}, convert.Undone{Foreign: 20, Standing: 9}, 0},
		{plan.Step{Task: kinds.Task{Collection: "a", Filter: "{}"}, Pass: 1, Listed: true}, convert.Undone{Foreign: 20, Standing: 9}, 0},
		{plan.Step{Task: kinds.Task{Collection: "a"}, Pass: 2, Listed: true, Of: 1}, convert.Undone{Foreign: 13, Standing: 2}, 0},
		{plan.Step{Task: kinds.Task{Collection: "a"}, Pass: 1, Listed: true}, convert.Undone{Foreign: 11, Standing: 4}, 0},
		{plan.Step{Task: kinds.Task{Collection: "a"}}, convert.Undone{Foreign: 9, Standing: 5}, 3},
		{plan.Step{Task: kinds.Task{Collection: "b"}, Pass: 1}, convert.Undone{Foreign: 8, Standing: 5}, 0},
		{plan.Step{Task: kinds.Task{Collection: "b"}}, convert.Undone{Foreign: 8}, 8},
	} {
		if got := l.foreign(tt.st, tt.of); got != tt.want {
			t.Errorf("%+v: got %d, want %d", tt.st, got, tt.want)
		}
	}
}
