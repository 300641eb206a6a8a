package undo

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// New values that the log does not have are counted, and the logs of other conversions that may have made them are named, unless they
// belong to the same plan or were undone.
func TestLogBesideOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *record.Run)
		own    []string
		want   int
	}{
		"nothing new": {func(*record.Run) {}, nil, 0},
		"another":     {func(*record.Run) {}, nil, 1},
		"of the plan": {func(*record.Run) {}, []string{"other"}, 0},
		"undone":      {func(r *record.Run) { r.Undone = &record.Undone{Complete: true} }, nil, 0},
	} {
		u := converted(t)
		u.insert(u.run())
		r := u.run()
		r.ID, r.Epoch, r.Conversion, r.UndoID, r.UndoLog = "c/2", 2, "second", "other", "/other/log"
		tt.change(&r)
		u.insert(r)
		foreign := int64(0)
		if name != "nothing new" {
			u.s.Put(u.coll, append(u.s.Documents(u.coll), marshal(t, bson.D{{Key: "_id", Value: int32(100)}, {Key: "a", Value: kindstest.Value("standard")}}))...)
			foreign = 1
		}
		u.o.own = tt.own
		got, err := u.undo()
		if err != nil || got.Result.Foreign != foreign || len(u.warnings) != tt.want || tt.want > 0 && !strings.Contains(u.warnings[0], "/other/log") {
			t.Errorf("%s: %+v, %v, %q", name, got.Result, err, u.warnings)
		}
	}
}

// Documents that a collection of the same name lacks are not deleted ones: what became of them is unknown.
func TestLogOfReplaced(t *testing.T) {
	for _, uuid := range []*bson.Binary{nil, {Subtype: 4, Data: bytes.Repeat([]byte{1}, 16)}} {
		u := converted(t)
		r := u.run()
		r.UUID = uuid
		u.insert(r)
		u.s.Put(u.coll, u.after[1:]...)
		got, err := u.undo()
		if (err != nil) != (uuid != nil) || got.Result.Gone != 1 || got.Result.Restored != 4 || err != nil && !strings.Contains(err.Error(), "another collection") {
			t.Errorf("%v: %+v, %v", uuid, got.Result, err)
		}
		if want := map[bool]string{true: "begun", false: "done"}[uuid != nil]; u.mark() != want {
			t.Errorf("mark %q, want %q", u.mark(), want)
		}
		u = converted(t) // with all of its documents, whatever the collection is
		r = u.run()
		r.UUID = uuid
		u.insert(r)
		if got, err := u.undo(); err != nil || got.Result.Restored != 5 {
			t.Errorf("%v: %+v, %v", uuid, got.Result, err)
		}
	}
}

// After an error of the server, the run is recorded as stopped, and the conversion as one whose undo has begun.
func TestLogFails(t *testing.T) {
	u := converted(t)
	u.insert(u.run())
	updates := 0
	u.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup("update").StringValueOK(); of == "c" {
			if updates++; updates == 2 {
				f.Code = 2
			}
		}
		return f
	}
	r, err := u.undo()
	runs := u.runs()
	if err == nil || !r.Begun || r.Result.Restored != 3 || u.mark() != "begun" || u.ended != 1 {
		t.Errorf("%+v, %v, mark %q", r, err, u.mark())
	}
	if last := runs[1]; last.Outcome != record.Stopped || last.Ended == nil || last.Reason == "" || last.Progress.Changed != 3 || runs[0].Undone == nil || runs[0].Undone.Complete {
		t.Errorf("%+v", last)
	}
	u.same(append(slices.Clone(u.before[:3]), u.after[3:]...))
	if r, err := u.undo(); err != nil || r.Result.Restored != 2 || r.Result.Already != 3 || u.mark() != "done" {
		t.Errorf("%+v, %v", r, err)
	}
	u.same(u.before)
}

// An error while the record of the undo is written ends it before a value is restored, and the run does not stay open.
func TestLogNotRecorded(t *testing.T) {
	for _, failing := range []int{1, 2} { // the insertion of the run, and the mark of the conversion's runs
		u := converted(t)
		u.insert(u.run())
		n := 0
		u.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			switch of, _ := command.Lookup(name).StringValueOK(); {
			case of != record.Name:
			case name == "insert":
				if docs, err := command.Lookup("documents").Array().Values(); err == nil && docs[0].Document().Lookup("kind").Type != 0 && failing == 1 {
					f.Code = 2
				}
			case name == "update" && failing == 2:
				if n++; n == 1 {
					f.Code = 2
				}
			}
			return f
		}
		if r, err := u.undo(); err == nil || r.Begun {
			t.Errorf("%d: %+v, %v", failing, r, err)
		}
		u.same(u.after)
		if u.mark() != "" {
			t.Errorf("%d: the ledger or the record has the mark %q", failing, u.mark())
		}
		if runs := u.runs(); len(runs) == 2 && runs[1].Ended == nil {
			t.Errorf("%d: %+v stays open", failing, runs[1])
		}
	}
}

// An undo that is interrupted can be run again.
func TestLogInterrupted(t *testing.T) {
	u := converted(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup("update").StringValueOK(); of == "c" {
			cancel()
		}
		return f
	}
	s := &migration.Session{Client: u.s.Client, Messages: u.messages, Recording: migration.Recording{BatchTimeout: time.Minute, Halves: true}}
	if r, err := restore(ctx, s, u.o, u.what, u.state, u.path); !errors.Is(err, context.Canceled) || r.Result.Restored != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if runs := u.runs(); len(runs) != 1 || runs[0].Outcome != record.Stopped {
		t.Errorf("%+v", runs)
	}
	if _, err := u.undo(); err != nil {
		t.Error(err)
	}
	u.same(u.before)
}

// An undo from which another run takes over writes no further batch.
func TestLogTakenOver(t *testing.T) {
	u := converted(t)
	u.insert(u.run())
	batches := 0
	u.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup("update").StringValueOK(); of == "c" {
			if batches++; batches == 1 {
				r := u.run()
				r.ID, r.Epoch, r.Kind, r.TakesOver = "c/3", 3, record.Undo, []int64{2}
				u.insert(r)
			}
		}
		return f
	}
	if r, err := u.undo(); !errors.Is(err, record.ErrTakenOver) || r.Result.Restored != 3 || batches != 1 {
		t.Errorf("%d batches, %+v, %v", batches, r, err)
	}
	u.same(append(slices.Clone(u.before[:3]), u.after[3:]...))
}
