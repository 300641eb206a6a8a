package record

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// started begins a run, which shows no sign of life, and returns it with its database.
func started(t *testing.T) (*Lock, *memory.Server, *mongo.Database) {
	t.Helper()
	s := memory.Start(t)
	db := s.Client.Database("d")
	l, err := Begin(t.Context(), db, Request{Run: Run{Kind: Convert, Task: run(1, "a").Task, Conversion: "a", BatchTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	l.stop()
	l.live.Wait()
	return l, s, db
}

func recorded(t *testing.T, l *Lock) *Run {
	t.Helper()
	runs, err := find[*Run](t.Context(), l.coll, bson.D{{Key: "kind", Value: Convert}})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	return runs[0]
}

// A run that was killed after its first write, before it has shown a sign of life, has converted values: the record has
// what its undo log had before the write.
func TestKilledEarly(t *testing.T) {
	l, _, _ := started(t)
	l.SetLog(func() (int64, uint32) { return 100, 7 })
	if r := recorded(t, l); r.Log != (Log{}) || r.Stands() {
		t.Errorf("before the first write: %+v", r)
	}
	if _, err := l.Check(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if r := recorded(t, l); r.Log != (Log{100, 7}) || !r.Stands() {
		t.Errorf("%+v", r)
	}
}

// No batch is sent that the record does not cover: Check returns only when the record has the log up to what the batch needs,
// and the limit of the batch counts from before that was sent. One intent covers all batches that were logged before it.
func TestIntents(t *testing.T) {
	l, s, _ := started(t)
	var size, updates, has atomic.Int64
	l.SetLog(func() (int64, uint32) { return size.Load(), 1 })
	s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if log, ok := command.Lookup("updates", "0", "u", "$set", "log", "size").AsInt64OK(); ok && name == "update" {
			updates.Add(1)
			has.Store(log) // it is there when the answer is
		}
		return f
	}
	var workers sync.WaitGroup
	const batches = 200
	for range 8 {
		workers.Go(func() {
			for range batches / 8 {
				need := size.Add(10)
				before := time.Now()
				sent, err := l.Check(context.Background(), need)
				if err != nil || has.Load() < need {
					t.Errorf("a batch that needs %d bytes begins when the record has %d: %v", need, has.Load(), err)
				}
				if sent.Before(before.Add(-intentFor)) || sent.After(time.Now()) {
					t.Errorf("the limit counts from %v, %v after the check", sent, sent.Sub(before))
				}
			}
		})
	}
	workers.Wait()
	if n := updates.Load(); n == 0 || n > batches {
		t.Errorf("%d updates for %d batches", n, batches)
	}
	size.Add(1000) // four batches that are logged at once
	before := updates.Load()
	for need := range int64(4) {
		if _, err := l.Check(t.Context(), size.Load()-need); err != nil {
			t.Fatal(err)
		}
	}
	if n := updates.Load() - before; n != 1 {
		t.Errorf("%d intents for batches that are logged at once", n)
	}
	if r := recorded(t, l); r.Log.Size != size.Load() {
		t.Errorf("%+v, want %d", r.Log, size.Load())
	}
}

// An update of the document without an answer, which reaches the server after a later one, changes nothing: the record would
// else have a smaller size of the log than was written.
func TestLateIntent(t *testing.T) {
	l, s, _ := started(t)
	var size int64
	l.SetLog(func() (int64, uint32) { return size, uint32(size) })
	var late bson.Raw
	s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if name == "update" && late == nil {
			late = bytes.Clone(command)
			f.Code = 50
		}
		return f
	}
	size = 100
	if _, err := l.Check(t.Context(), size); err == nil || late == nil {
		t.Fatal(late, err)
	}
	size = 200
	if _, err := l.Check(t.Context(), size); err != nil {
		t.Fatal(err)
	}
	u := late.Lookup("updates", "0").Document()
	if _, err := l.coll.UpdateOne(t.Context(), u.Lookup("q").Document(), u.Lookup("u").Document()); err != nil {
		t.Fatal(err)
	}
	if r := recorded(t, l); r.Log != (Log{200, 200}) {
		t.Errorf("%+v", r.Log)
	}
	if err := l.End(nil, time.Time{}); err != nil {
		t.Error(err)
	}
}

// A run that ends waits for the answer to a sign of life.
func TestSignAnswered(t *testing.T) {
	l, s, _ := started(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Before = func(name string, _ bson.Raw) memory.Fault {
		if name == "update" {
			cancel()
		}
		return memory.Fault{}
	}
	if err := l.sign(ctx); err != nil || ctx.Err() == nil {
		t.Error(err, ctx.Err())
	}
	if err := l.End(nil, time.Time{}); err != nil {
		t.Error(err)
	}
}

// A run that was taken over sends no batch on account of a new intent, and none of an old one after a while.
func TestTakenOverBetween(t *testing.T) {
	l, _, db := started(t)
	l.SetLog(func() (int64, uint32) { return 10, 1 })
	if _, err := l.Check(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	other := run(2, "b", over(1))
	if _, err := collection(db).InsertOne(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := l.CheckNow(t.Context()); !errors.Is(err, ErrTakenOver) {
		t.Errorf("at once: %v", err)
	}
	l.intent.sent = l.intent.sent.Add(-intentFor)
	if _, err := l.Check(t.Context(), 10); !errors.Is(err, ErrTakenOver) {
		t.Errorf("after %v: %v", intentFor, err)
	}
	if _, err := l.Check(t.Context(), 11); !errors.Is(err, ErrTakenOver) {
		t.Errorf("of more: %v", err)
	}
}

// A run whose document was deleted sends no batch on account of a new intent, also if its log has not changed, as that of an undo, and
// if another run has the same number since. It changes nothing in the document of that run.
func TestDeleted(t *testing.T) {
	for name, again := range map[string]bool{"dropped": false, "begun anew": true} {
		l, s, db := started(t)
		if _, err := l.Check(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.Drop(l.coll)
		if again {
			if _, err := collection(db).InsertOne(t.Context(), run(1, "b", func(r *Run) { r.By.Token = "another" })); err != nil {
				t.Fatal(err)
			}
		}
		was := s.Documents(l.coll)
		l.intent.sent = l.intent.sent.Add(-intentFor)
		for what, err := range map[string]error{"at once": l.CheckNow(t.Context()), "before a batch": second(l.Check(t.Context(), 0)), "of life": l.Beat(t.Context()), "at the end": l.End(nil, time.Time{})} {
			if !errors.Is(err, ErrTakenOver) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if is := s.Documents(l.coll); len(is) != len(was) || again && !bytes.Equal(is[0], was[0]) {
			t.Errorf("%s: %v", name, is)
		}
	}
}

func second(_ time.Time, err error) error { return err }

// A run that is taken over may send batches until the document of the new run is in the record, however long the server takes for
// that: the limit of the last one counts from then.
func TestTakesOverSlowly(t *testing.T) {
	_, s, db := started(t)
	const limit = 400 * time.Millisecond
	if _, err := collection(db).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "c/1"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "batchTimeout", Value: limit}}}}); err != nil {
		t.Fatal(err)
	}
	var there time.Time
	s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if kind, _ := command.Lookup("documents", "0", "kind").StringValueOK(); kind == Undo {
			time.Sleep(limit)
			there = time.Now()
		}
		return f
	}
	l, err := Begin(t.Context(), db, Request{Run: Run{Kind: Undo, Task: run(1, "a").Task, Conversion: "a", BatchTimeout: time.Minute}, TakeOver: true, Notice: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(there); there.IsZero() || waited < limit {
		t.Errorf("begins %v after its document is there", waited)
	}
	s.Before = nil
	if err := l.End(nil, time.Time{}); err != nil {
		t.Error(err)
	}
}
