package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// messages keeps the warnings.
type messages struct {
	mu       sync.Mutex
	warnings []string
}

func (m *messages) Warn(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}
func (m *messages) Progress(int64, string, string) terminal.Progress { return terminal.NoProgress{} }
func (m *messages) About(string)                                     {}
func (m *messages) Child(string) session.Messages                    { return m }

// migrated is the directory of a plan that was applied: the collections a and b of the database d are converted from
// javaLegacy by two runs each, and c has the copy c_new.
type migrated struct {
	*testing.T
	*messages
	s             *memory.Server
	dir           string
	plan          *plan.Plan
	before, after map[string][]bson.Raw
	logs          map[string][]string // the paths of the undo logs
	o             UndoOptions
	a             ApplyOptions
	checksums     bool          // of status
	limit         time.Duration // of a batch
	putBack       func() error
}

var marshal = kindstest.Marshal

// applied has collections with n documents.
func applied(t *testing.T, n int) *migrated {
	t.Helper()
	m := &migrated{T: t, messages: new(messages), s: memory.Start(t), dir: filepath.Join(t.TempDir(), "d.d"), plan: &plan.Plan{Database: "d", Migration: "0123456789abcdef"},
		before: make(map[string][]bson.Raw), after: make(map[string][]bson.Raw), logs: make(map[string][]string), o: UndoOptions{Write: true, Batch: 3}, limit: time.Minute, putBack: func() error { return nil }}
	for _, name := range []string{"a", "b", "c"} {
		c := plan.Collection{Name: name, Fields: []plan.Field{{Path: "v", Stored: kinds.Subtype3, Decision: plan.Convert("javaLegacy")}}}
		if name == "c" {
			c.Into = "c_new"
		}
		m.plan.Collections = append(m.plan.Collections, c)
	}
	state, err := plan.Create(m.dir)
	if err == nil {
		err = errors.Join(state.WritePlan(m.plan), state.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range m.plan.Steps() {
		if st.Into != "" {
			m.run(st.Task, 1, undolog.Extent{})
			continue
		}
		m.s.Put(m.collection(st.Collection))
		m.converted(st.Task, 1, 0, n/2)
		m.converted(st.Task, 2, n/2, n)
	}
	return m
}

func (m *migrated) collection(name string) *mongo.Collection {
	return m.s.Client.Database("d").Collection(name)
}

// converted is a run that has converted documents, with its log.
func (m *migrated) converted(of kinds.Task, epoch int64, from, to int) {
	m.Helper()
	c := kindstest.Conversion(m, rule.NewConversion, "javaLegacy")
	name := of.Collection
	l := undolog.New(m.dir, undolog.Header{Run: fmt.Sprint(name, epoch), Started: time.UnixMilli(epoch), Database: "d", Task: of, Limit: time.Millisecond})
	for i := from; i < to; i++ {
		doc := marshal(m, bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: kindstest.Stored([16]byte{1, byte(i), 6: 0x40, 8: 0x80}, "javaLegacy")}})
		p, err := c.Edits(doc)
		if err != nil {
			m.Fatal(err)
		}
		out, _, _, err := c.Rewrite(doc)
		if err := errors.Join(err, l.Append([]undolog.Entry{{ID: p.ID, Changes: p.Changes}})); err != nil {
			m.Fatal(err)
		}
		m.before[name], m.after[name] = append(m.before[name], doc), append(m.after[name], out)
	}
	m.logs[name] = append(m.logs[name], l.Path())
	m.run(of, epoch, l.Extent())
	if err := l.Close(); err != nil {
		m.Fatal(err)
	}
	m.s.Put(m.collection(name), m.after[name]...)
}

// run inserts a run that is done into the record.
func (m *migrated) run(of kinds.Task, epoch int64, log undolog.Extent) record.Run {
	m.Helper()
	ended := time.Now().Add(-time.Hour).Add(time.Duration(epoch) * time.Second).UTC()
	r := record.Run{ID: fmt.Sprintf("%s/%d", of.Collection, epoch), Kind: record.Convert, Task: of, Epoch: epoch, Conversion: m.plan.Conversion(of), Migration: m.plan.Migration, Started: ended, Updated: ended, Ended: &ended,
		Outcome: record.Done, Directory: m.dir, By: record.Who{Token: fmt.Sprint(of.Collection, epoch)}, Log: record.Log{Size: log.Size, Sum: int64(log.Sum)}, Progress: record.Progress{Changed: 5}}
	m.insert(r)
	return r
}

// insert inserts a document into the record.
func (m *migrated) insert(doc any) {
	m.Helper()
	if _, err := m.collection(record.Name).InsertOne(context.Background(), doc); err != nil {
		m.Fatal(err)
	}
}

// runs returns the runs in the record.
func (m *migrated) runs() []*record.Run {
	m.Helper()
	all, err := record.Runs(m.Context(), m.s.Client.Database("d"))
	if err != nil {
		m.Fatal(err)
	}
	return all
}

// undo undoes the migration.
func (m *migrated) undo() (steps []UndoneStep, err error) { return m.undoWith(m.Context()) }

func (m *migrated) undoWith(ctx context.Context) (steps []UndoneStep, err error) {
	m.Helper()
	state, err := plan.Lock(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	steps, err = Undo(ctx, m.session(), m.o, state, m.putBack)
	if err := state.Close(); err != nil {
		m.Fatal(err)
	}
	return steps, err
}

// same fails the test unless both collections have the documents.
func (m *migrated) same(want map[string][]bson.Raw) {
	m.Helper()
	for name, docs := range want {
		got := m.s.Documents(m.collection(name))
		if len(got) != len(docs) {
			m.Errorf("%s: got %d documents, want %d", name, len(got), len(docs))
			continue
		}
		for i, doc := range docs {
			if !bytes.Equal(got[i], doc) {
				m.Errorf("%s: got %v\nwant %v", name, got[i], doc)
				break
			}
		}
	}
}

// complete reports whether the record, and all logs, call the migration undone.
func (m *migrated) complete() bool {
	m.Helper()
	for _, r := range m.runs() {
		if r.Kind == record.Convert && (r.Undone == nil || !r.Undone.Complete) {
			return false
		}
	}
	logs, _, err := undolog.In(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	defer undolog.Logs(logs).Close()
	return !slices.ContainsFunc(logs, func(u *undolog.Reader) bool { return u.Undone == nil })
}

// names returns the collections of steps in their order.
func names(steps []UndoneStep) (all []string) {
	for _, s := range steps {
		all = append(all, s.Step.Collection)
	}
	return all
}

func isUsage(err error) bool {
	var failed *failure.Error
	return errors.As(err, &failed) && failed.Kind == failure.Usage
}

// An undo restores the collections in the opposite order of the work, from the logs of all runs, and leaves the copy. A dry one changes
// nothing anywhere. One that is carried out again finds that nothing is left to do, and touches nothing that was converted since.
func TestUndo(t *testing.T) {
	m := applied(t, 6)
	recorded := len(m.runs())
	for _, write := range []bool{false, true} {
		m.o.Write = write
		steps, err := m.undo()
		if err != nil || !slices.Equal(names(steps), []string{"b", "a", "c"}) || len(m.warnings) > 0 || m.complete() != write {
			t.Fatalf("%+v, %v, %q, complete %v", steps, err, m.warnings, m.complete())
		}
		for _, s := range steps[:2] {
			if !s.Begun || s.Result.Entries != 6 || s.Result.Restored != 6 || s.Result.Left != 0 || s.Pairs[0].From != "javaLegacy" {
				t.Errorf("%+v", s)
			}
		}
		if write {
			m.same(m.before)
		} else if m.same(m.after); len(m.runs()) != recorded {
			t.Error("a dry undo is recorded")
		}
	}
	runs := m.runs()
	if last := runs[recorded]; last.Kind != record.Undo || last.Outcome != record.Done || last.Ended == nil || last.Progress.Changed != 6 || last.Conversion != m.plan.Conversion(m.plan.Steps()[1].Task) {
		t.Errorf("%+v", last)
	}
	m.s.Put(m.collection("a"), m.after["a"]...)
	if steps, err := m.undo(); err != nil || len(steps) != 3 || steps[0].Begun || steps[2].Status != WasUndone {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same(map[string][]bson.Raw{"a": m.after["a"], "b": m.before["b"]})
	m.before = maps.Clone(m.before)
	m.converted(m.plan.Steps()[0].Task, 9, 6, 8) // a later run, whose log alone counts
	if steps, err := m.undo(); err != nil || steps[0].Result.Entries != 2 {
		t.Errorf("%+v, %v", steps, err)
	}
}

// What other programs have changed is left, and the undo is not complete, until that is accepted.
func TestUndoLeft(t *testing.T) {
	m := applied(t, 6)
	if _, err := m.collection("b").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: int32(3)}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: "other"}}}}); err != nil {
		t.Fatal(err)
	}
	for _, accepted := range []bool{false, true} {
		m.o.AllowChanged = accepted
		steps, err := m.undo()
		if err != nil || m.complete() != accepted || steps[0].Result.Left != 1 || steps[0].Result.Accepted != accepted {
			t.Errorf("%+v, %v", steps, err)
		}
		m.same(map[string][]bson.Raw{"a": m.before["a"]})
	}
}

// New values that the logs do not have may be of another migration, of which the undo warns unless that was undone.
func TestUndoBesideOthers(t *testing.T) {
	for _, undone := range []bool{false, true} {
		m := applied(t, 6)
		r := m.run(m.plan.Steps()[1].Task, 3, undolog.Extent{})
		r.ID, r.Epoch, r.Migration, r.Conversion, r.Directory, r.By.Token = "b/4", 4, "other", "other/b", "/other", "other"
		if undone {
			r.Undone = &record.Undone{Complete: true}
		}
		m.insert(r)
		m.s.Put(m.collection("b"), append(slices.Clone(m.after["b"]), marshal(t, bson.D{{Key: "_id", Value: int32(100)}, {Key: "v", Value: kindstest.Value("standard")}}))...)
		steps, err := m.undo()
		if err != nil || steps[0].Result.Foreign != 1 || (len(m.warnings) > 0) == undone {
			t.Errorf("undone %v: %+v, %v, %q", undone, steps, err, m.warnings)
		}
	}
}
