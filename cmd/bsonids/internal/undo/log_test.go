package undo

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// messages keeps the warnings, and counts what the progress shows.
type messages struct {
	warnings    []string
	about       string
	read, ended int
	totals      []int64
}

func (m *messages) Warn(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}
func (m *messages) Progress(total int64, _, _ string) progress.Progress {
	m.totals = append(m.totals, total)
	return m
}
func (m *messages) Add(n int)                       { m.read += n }
func (m *messages) Done()                           { m.ended++ }
func (m *messages) About(namespace string)          { m.about = namespace }
func (m *messages) Child(string) migration.Messages { return m }

// undoing is a collection d.c that was converted from javaLegacy, with the undo log at path.
type undoing struct {
	*testing.T
	*messages
	s             *memory.Server
	coll          *mongo.Collection
	before, after []bson.Raw
	state         *convert.State
	what          migration.Described
	path, id      string
	size          int64
	o             Options
}

func converted(t *testing.T) *undoing {
	t.Helper()
	u := &undoing{T: t, messages: new(messages), s: memory.Start(t), path: filepath.Join(t.TempDir(), "undo"), o: Options{Write: true, Batch: 3}}
	u.coll = u.s.Client.Database("d").Collection("c")
	u.what = migration.Described{Selection: convert.Selection{Conversion: kindstest.Conversion(t, rule.NewConversion, "javaLegacy")},
		Database: "d", Task: kinds.Task{Collection: "c", Pairs: []kinds.Pair{{From: "javaLegacy"}}}}
	u.before, u.after, u.id, u.size = written(t, u.path, u.what.Task, "a", 5)
	u.state = &convert.State{Conversion: "first", Done: true, UndoID: u.id, UndoSize: u.size}
	f, err := ledger.OpenFile(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	u.state.SaveTo(f, "c/")
	u.s.Put(u.coll, u.after...)
	return u
}

// written makes the undo log of a conversion of n documents with a value in a field, and returns these before and after it, the log's
// id and its size.
func written(t *testing.T, path string, of kinds.Task, field string, n int) (before, after []bson.Raw, id string, size int64) {
	t.Helper()
	pair := of.Pairs[0]
	c := kindstest.Conversion(t, rule.NewConversion, pair.From)
	l, err := convert.OpenUndoLog(path, convert.Header{ID: ledger.NewID(), Database: "d", Task: of}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		doc := marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: field, Value: kindstest.Stored([16]byte{1, byte(i), 6: 0x40, 8: 0x80}, pair.From)}})
		p, err := c.Plan(doc)
		if err != nil {
			t.Fatal(err)
		}
		out, _, _, err := c.Rewrite(doc)
		if err := errors.Join(err, l.Append([]convert.Planned{{Plan: p}}, func(convert.Planned) bool { return false })); err != nil {
			t.Fatal(err)
		}
		before, after = append(before, doc), append(after, out)
	}
	id, size = l.ID, l.Size()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return before, after, id, size
}

// undo undoes the log.
func (u *undoing) undo() (report.UndoneStep, error) {
	s := &migration.Session{Client: u.s.Client, Messages: u.messages, Recording: migration.Recording{Lock: "here", BatchTimeout: time.Minute, Halves: true}}
	return restore(u.Context(), s, u.o, u.what, u.state, u.path)
}

// same fails the test unless the documents are want.
func (u *undoing) same(want []bson.Raw) {
	u.Helper()
	if got := u.s.Documents(u.coll); !slices.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
		u.Errorf("got %v\nwant %v", got, want)
	}
}

// insert inserts a document into the record.
func (u *undoing) insert(doc any) {
	u.Helper()
	if _, err := u.coll.Database().Collection(record.Name).InsertOne(u.Context(), doc); err != nil {
		u.Fatal(err)
	}
}

// run is a conversion with the log, which has ended.
func (u *undoing) run() record.Run {
	now := time.Now().Add(-time.Hour)
	return record.Run{ID: "c/1", Kind: record.Convert, Task: kinds.Task{Collection: "c", Pairs: []kinds.Pair{{From: "javaLegacy"}}}, Epoch: 1, Conversion: "first", Started: now, Updated: now, Ended: &now, Outcome: record.Done,
		UndoLog: u.path, UndoID: u.id, UndoSize: u.size, Progress: record.Progress{Changed: 5}}
}

// runs returns the runs in the record.
func (u *undoing) runs() []*record.Run {
	u.Helper()
	all, err := record.Runs(u.Context(), u.coll.Database())
	if err != nil {
		u.Fatal(err)
	}
	return all
}

// mark returns how far the undo is: "" by the ledger if it has not begun, and else begun or done by the record.
func (u *undoing) mark() string {
	u.Helper()
	if u.state.Undone == "" {
		return ""
	}
	runs := u.runs()
	done := runs[len(runs)-1].Outcome == record.Done
	for _, r := range runs {
		if r.Undone != nil {
			done = r.Undone.Complete
		}
	}
	return map[bool]string{false: "begun", true: "done"}[done]
}

// An undo that writes restores all, is a run of the conversion in the record, and marks the ledger. A dry one changes nothing anywhere.
func TestLog(t *testing.T) {
	for _, known := range []bool{true, false} {
		u := converted(t)
		if known {
			u.insert(u.run())
		}
		all := len(u.runs())
		u.o.Write = false
		r, err := u.undo()
		if err != nil || !r.Begun || r.Result.Restored != 5 || u.about != "d.c" || len(u.runs()) != all || u.mark() != "" || u.read != 5 || u.ended != 1 {
			t.Errorf("dry: %+v, %v, %+v, mark %q", r, err, u.messages, u.mark())
		}
		u.same(u.after)
		u.o.Write = true
		if r, err = u.undo(); err != nil || !r.Begun || r.Result.Restored != 5 || r.Result.Accepted || u.mark() != "done" || u.state.Undone == "" || u.ended != 2 {
			t.Errorf("%+v, %v, mark %q", r, err, u.mark())
		}
		u.same(u.before)
		runs := u.runs()
		last := runs[len(runs)-1]
		if len(runs) != all+1 || last.Kind != record.Undo || last.Conversion != "first" || last.UndoID != u.id || last.UndoLog != u.path || last.Outcome != record.Done || last.Ended == nil ||
			!slices.EqualFunc(last.Pairs, []kinds.Pair{{From: "javaLegacy"}}, kinds.Pair.Equal) || last.Progress.Changed != 5 || last.UUID == nil || last.Lock != "here" {
			t.Errorf("%+v", last)
		}
		if known && (runs[0].Undone == nil || !runs[0].Undone.Complete || runs[0].Undone.By != last.ID) {
			t.Errorf("%+v", runs[0].Undone)
		}
		if len(u.warnings) > 0 || !slices.Equal(u.totals, []int64{-1, -1}) { // the number of entries is not known
			t.Error(u.warnings, u.totals)
		}
	}
}

// No error of the record is lost, whichever of the reads and writes it is of.
func TestLogRecordFails(t *testing.T) {
	for name, tt := range map[string]struct {
		write    bool
		foreign  bool
		read     int // the read of runs that fails
		complete bool
		begun    bool
	}{
		"is the log whole": {false, false, 1, false, false}, "is it the last one": {false, false, 2, false, false}, "which conversion is it": {true, false, 3, false, false},
		"which ones are beside it": {false, true, 3, false, true}, "is it undone": {true, false, 0, true, true},
	} {
		u := converted(t)
		u.insert(u.run())
		if tt.foreign {
			u.s.Put(u.coll, append(u.s.Documents(u.coll), marshal(t, bson.D{{Key: "_id", Value: int32(100)}, {Key: "a", Value: kindstest.Value("standard")}}))...)
		}
		u.o.Write = tt.write
		reads := 0
		u.s.Before = func(command string, of bson.Raw) (f memory.Fault) {
			if ns, _ := of.Lookup(command).StringValueOK(); ns != record.Name {
				return f
			}
			switch command {
			case "find":
				if of.Lookup("filter", "collection").Type != 0 && of.Lookup("filter", "kind").Type == 0 || of.Lookup("filter", "kind", "$in").Type != 0 {
					if reads++; reads == tt.read {
						f.Code = 2
					}
				}
			case "update":
				if done, _ := of.Lookup("updates", "0", "u", "$set", "undone", "complete").BooleanOK(); done && tt.complete {
					f.Code = 2
				}
			}
			return f
		}
		if r, err := u.undo(); err == nil || r.Begun != tt.begun {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// What is not restored leaves the undo open, unless it is accepted.
func TestLogOfChanged(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		u := converted(t)
		u.insert(u.run())
		other := marshal(t, bson.D{{Key: "_id", Value: int32(0)}, {Key: "a", Value: "x"}})
		u.s.Put(u.coll, append([]bson.Raw{other}, u.after[1:]...)...)
		u.o.AllowChanged = accepted
		mark := map[bool]string{false: "begun", true: "done"}[accepted]
		r, err := u.undo()
		runs := u.runs()
		if err != nil || r.Result.Restored != 4 || r.Result.Left != 1 || r.Result.Accepted != accepted || u.mark() != mark || runs[0].Undone == nil || runs[0].Undone.Complete != accepted ||
			runs[1].Progress.Changed != 4 || runs[1].Progress.Skipped != 1 {
			t.Errorf("%+v, %v, mark %q, %+v, %+v", r, err, u.mark(), runs[0].Undone, runs[1].Progress)
		}
		u.same(append([]bson.Raw{other}, u.before[1:]...))
	}
}

// Whatever forbids an undo is found before anything is changed.
func TestLogRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(u *undoing)
		want    string
		dry     bool // it forbids a dry one, too
	}{
		"no collection": {func(u *undoing) { u.s.Drop(u.coll) }, "does not exist", true},
		"a log that is cut off": {func(u *undoing) {
			r := u.run()
			r.UndoSize++
			u.insert(r)
		}, "values would stay converted", true},
		"a later conversion": {func(u *undoing) {
			u.insert(u.run())
			r := u.run()
			r.ID, r.Epoch, r.Kind = "c/2", 2, record.Undo
			u.insert(r)
			r.ID, r.Epoch, r.Kind, r.Conversion, r.UndoID, r.Directory = "c/3", 3, record.Convert, "second", "other", "/other"
			u.insert(r)
		}, "/other; undo that one first", true},
		"a cutover": {func(u *undoing) {
			u.insert(bson.D{{Key: "_id", Value: "x/cutover"}, {Key: "kind", Value: "cutover"}, {Key: "state", Value: record.Fencing}, {Key: "exchanges", Value: bson.A{bson.D{{Key: "name", Value: "c"}, {Key: "new", Value: "n"}}}}})
		}, "cutover", false},
		"another run": {func(u *undoing) {
			r := u.run()
			r.Updated, r.Ended, r.Outcome, r.Conversion, r.UndoID = time.Now().Add(time.Hour), nil, "", "second", "other"
			u.insert(r)
		}, "has not ended", false},
		"a record that cannot be read": {func(u *undoing) {
			u.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
				if of, _ := command.Lookup("find").StringValueOK(); of == record.Name {
					f.Code = 2
				}
				return f
			}
		}, "refused by the test", true},
		"a collection that cannot be looked for": {func(u *undoing) {
			u.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
				if name == "listCollections" {
					f.Code = 2
				}
				return f
			}
		}, "refused by the test", true},
	} {
		for _, write := range []bool{true, false} {
			u := converted(t)
			tt.prepare(u)
			docs := u.s.Documents(u.coll)
			u.o.Write = write
			r, err := u.undo()
			if !write && !tt.dry {
				if err != nil || !r.Begun {
					t.Errorf("%s, dry: %+v, %v", name, r, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || r.Begun || r.Result.Restored > 0 || u.mark() != "" {
				t.Errorf("%s, write %v: %+v, %v, mark %q", name, write, r, err, u.mark())
			}
			u.same(docs)
		}
	}
}

// A user who may not read the record can try an undo.
func TestLogWithoutRecord(t *testing.T) {
	u := converted(t)
	u.o.Write = false
	u.s.Put(u.coll, append(u.s.Documents(u.coll), marshal(t, bson.D{{Key: "_id", Value: int32(100)}, {Key: "a", Value: kindstest.Value("standard")}}))...)
	u.s.Before = func(_ string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup("find").StringValueOK(); of == record.Name {
			f.Code = 13
		}
		return f
	}
	if r, err := u.undo(); err != nil || r.Result.Restored != 5 || r.Result.Foreign != 1 || len(u.warnings) > 0 {
		t.Errorf("%+v, %v, %q", r, err, u.warnings)
	}
	u.o.Write = true
	var failed *failure.Error
	if _, err := u.undo(); !errors.As(err, &failed) || failed.Kind != failure.Denied || !strings.Contains(err.Error(), record.Name) {
		t.Error(err)
	}
}

var marshal = kindstest.Marshal
