package convert

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// If an answer is lost, what the server did is found out, and counted once.
func TestUndoLostAnswer(t *testing.T) {
	for _, fault := range []memory.Fault{{Lost: true}, {Code: 91}, {Code: 91, Lost: true}} {
		u := converted(t, 6)
		u.o.Patience = patience.New(time.Hour, nil)
		u.onUpdate(func(n int) memory.Fault {
			if n == 1 {
				return fault
			}
			return memory.Fault{}
		})
		u.count(u.undo(), Undone{Entries: 6, Restored: 6})
		u.same(u.before)
	}
}

// An error of the server, or of the check before a batch, ends the undo with what was restored until then, and nothing more is sent.
func TestUndoFails(t *testing.T) {
	for _, failing := range []string{"find", "last find", "update", "check", "last check"} {
		u := converted(t, 6)
		u.o.Batch = 2
		after := u.s.Documents(u.coll)
		finds, updates, checks := 0, 0, 0
		u.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
			switch name {
			case "find":
				if finds++; finds == 2 && failing == "find" || finds == 4 && failing == "last find" { // the last one counts new values
					f.Code = 13
				}
			case "update":
				if updates++; updates == 2 && failing == "update" {
					f.Code = 13
				}
			}
			return f
		}
		u.o.BatchTimeout = time.Minute
		u.o.Check = func(ctx context.Context, _ int64) (time.Time, error) {
			if at, ok := ctx.Deadline(); ok && time.Until(at) > time.Minute {
				t.Error("a check has more time than its batch")
			}
			if checks++; checks == 2 && failing == "check" {
				return time.Time{}, errTest
			}
			return time.Now(), nil
		}
		got, err := Undo(t.Context(), u.coll, u.log, u.o, u.write)
		if failing == "last check" {
			if err != nil || checks != 3 {
				t.Errorf("%d checks, %v", checks, err)
			}
			continue
		}
		if failing == "last find" {
			if err == nil || got.Restored != 6 || got.Foreign != 0 {
				t.Errorf("%+v, %v", got, err)
			}
			continue
		}
		if err == nil || failing == "check" && !errors.Is(err, errTest) || got.Restored != 2 || got.Left > 0 || got.Skips != nil {
			t.Errorf("%s: %+v, %v", failing, got, err)
		}
		u.same(append(slices.Clone(u.before[:2]), after[2:]...))
	}
}

// An interrupt ends the undo before the next batch. A batch that has begun is finished.
func TestUndoInterrupted(t *testing.T) {
	for batches := range 2 {
		u := converted(t, 6)
		u.o.Batch = 2
		after := u.s.Documents(u.coll)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		u.o.Progress = func(int) { cancel() }
		if batches == 0 {
			cancel()
		}
		got, err := Undo(ctx, u.coll, u.log, u.o, u.write)
		if !errors.Is(err, context.Canceled) || got.Entries != int64(2*batches) || got.Restored != got.Entries {
			t.Errorf("%+v, %v", got, err)
		}
		u.same(append(slices.Clone(u.before[:2*batches]), after[2*batches:]...))
	}
}

// An undo that writes waits while it is paused. A dry one does not.
func TestUndoPaused(t *testing.T) {
	u := converted(t, 6)
	after := u.s.Documents(u.coll)
	pause := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(pause, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.o.Pace = patience.Steered(patience.Steering{Pause: pause, Rate: filepath.Join(t.TempDir(), "rate")}, func(string, ...any) {})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Undo(ctx, u.coll, u.log, u.o, u.write); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	u.same(after)
	u.write = false
	u.count(u.undo(), Undone{Entries: 6, Restored: 6})
}

// A batch that the server ends at its limit is halved if halves is set.
func TestUndoHalves(t *testing.T) {
	for _, halves := range []bool{true, false} {
		for _, most := range []int{3, 0} {
			u := converted(t, 8)
			u.o.Batch, u.o.Halves, u.o.BatchTimeout = 8, halves, 20*time.Second
			u.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
				if name == "update" {
					if all, err := command.Lookup("updates").Array().Values(); err != nil || len(all) > most {
						f.Code = 50
					}
				}
				return f
			}
			got, err := Undo(t.Context(), u.coll, u.log, u.o, u.write)
			var slow *documents.Error
			switch {
			case halves && most > 0:
				u.count(got, Undone{Entries: 8, Restored: 8})
				u.same(u.before)
			case halves && (!errors.As(err, &slow) || !strings.Contains(err.Error(), "20s")), !halves && (err == nil || errors.As(err, &slow)):
				t.Errorf("halves %v, %d: %v", halves, most, err)
			}
			if err != nil && got.Restored > 0 {
				t.Errorf("%+v", got)
			}
		}
	}
}

// A collection that was dropped, renamed or replaced meanwhile is an error, and not a collection without the documents.
func TestUndoOfLostCollection(t *testing.T) {
	for name, tt := range map[string]struct {
		lose func(u *undoing)
		want string
	}{
		"dropped":  {func(u *undoing) { u.s.Drop(u.coll) }, "d.c was dropped or renamed while"},
		"replaced": {func(u *undoing) { u.s.Drop(u.coll); u.s.Put(u.coll) }, "d.c is another collection now"},
		"renamed":  {func(u *undoing) { u.s.Rename(u.coll, "other") }, "d.c was renamed to other while"},
		"there":    {func(*undoing) {}, ""},
	} {
		for _, known := range []bool{true, false} {
			u := converted(t, 4)
			spec, err := server.Specification(t.Context(), u.coll)
			if err != nil || spec.UUID == nil {
				t.Fatal(err)
			}
			if known {
				u.o.UUID = spec.UUID
			}
			tt.lose(u)
			_, err = Undo(t.Context(), u.coll, u.log, u.o, u.write)
			var lost *LostError
			want := tt.want
			if !known && name == "renamed" {
				want = "d.c was dropped or renamed while"
			}
			if !known && name == "replaced" { // no UUID tells the two apart
				want = ""
			}
			if errors.As(err, &lost) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s, %v: %v, want %q", name, known, err, want)
			}
		}
	}
}

// A document that is not valid BSON is left with the reason. An undo log that becomes unreadable is an error.
func TestUndoOfDamage(t *testing.T) {
	u := converted(t, 3)
	docs := u.s.Documents(u.coll)
	bad := bytes.Clone(docs[1])
	i := bytes.Index(bad, []byte("list")) + len("list\x00")
	bad[i] = 1 // the length of the array
	u.s.Put(u.coll, docs[0], bad, docs[2])
	got, err := Undo(t.Context(), u.coll, u.log, u.o, u.write)
	if err == nil || got.Restored != 2 || got.Left != 3 || got.Unrestored != 1 || got.Changed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	u.same([]bson.Raw{u.before[0], bad, u.before[2]})

	u = converted(t, 3)
	u.change(1, bson.D{{Key: "a", Value: "x"}})
	u.o.Progress = func(int) { _ = u.log.Close() }
	if got, err := Undo(t.Context(), u.coll, u.log, u.o, u.write); err == nil || got.Restored != 3 || got.Left != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The first 10,000 values are listed, and all are counted.
func TestUndoLists(t *testing.T) {
	var res Undone
	for range 10_001 {
		res.skip(bson.RawValue{}, "x")
	}
	if len(res.Skips) != 10_000 {
		t.Errorf("%d are listed", len(res.Skips))
	}
}

// Foreign is what an undo counts beside the log.
func (u *undoing) Foreign() int64 {
	u.Helper()
	u.s.Put(u.coll, append(u.s.Documents(u.coll), marshal(u, bson.D{{Key: "_id", Value: int32(100)}, {Key: "a", Value: kindstest.Value("standard")}}))...)
	return u.undo().Foreign
}

// New values that no entry names are counted, dry as with a write, of the documents that the query selects.
func TestUndoForeign(t *testing.T) {
	for _, write := range []bool{false, true} {
		u := converted(t, 5)
		u.write = write
		if got := u.Foreign(); got != 1 {
			t.Errorf("write %v: %d", write, got)
		}
	}
	// Values of the log that are no longer there when they are counted.
	u := converted(t, 5)
	u.write = false
	finds := 0
	u.s.Before = func(name string, _ bson.Raw) memory.Fault {
		if name == "find" {
			if finds++; finds == 3 { // after the batches of the log
				u.s.Put(u.coll, u.before...)
			}
		}
		return memory.Fault{}
	}
	u.count(u.undo(), Undone{Entries: 5, Restored: 5})
	for _, tt := range []struct {
		want  int64
		query bson.D
	}{{1, nil}, {1, bson.D{{Key: "_id", Value: int32(100)}}}, {0, bson.D{{Key: "_id", Value: int32(1)}}}} {
		u := converted(t, 5)
		u.o.Query = tt.query
		if got := u.Foreign(); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.query, got, tt.want)
		}
	}
}
