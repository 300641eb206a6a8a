package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
)

// world is a source, its copy and its change stream, without a server. A document is a number by
// its _id.
type world struct {
	t       *testing.T
	events  []changes.Event
	source  map[int32]int
	copy    map[int32]int
	log     []string
	saved   StreamPosition // the last saved position
	fail    map[string][]error
	name    string
	beats   int
	pending map[int32]bool // documents that cannot be copied
}

func newWorld(t *testing.T) *world {
	return &world{t: t, source: map[int32]int{}, copy: map[int32]int{}, fail: map[string][]error{}, name: "c", pending: map[int32]bool{}}
}

func (w *world) event(typ, coll string, id any) *changes.Event {
	n := uint32(len(w.events) + 1)
	e := changes.Event{Token: token(w.t, n), Type: typ, Time: bson.Timestamp{T: n}}
	e.NS.DB, e.NS.Coll = "db", coll
	if id != nil {
		e.Key = marshal(w.t, bson.D{{Key: "shard", Value: 1}, {Key: "_id", Value: id}})
	}
	w.events = append(w.events, e)
	return &w.events[n-1]
}

func (w *world) set(id int32, v int) {
	w.source[id] = v
	w.event("update", w.name, id)
}

func (w *world) delete(id int32) {
	delete(w.source, id)
	w.event("delete", w.name, id)
}

func (w *world) rename(to string) {
	e := w.event("rename", w.name, nil)
	e.To.DB, e.To.Coll = "db", to
	w.name = to
}

func token(t *testing.T, n uint32) bson.Raw {
	return marshal(t, bson.D{{Key: "_data", Value: int64(n)}})
}

// err returns the next error that a step was told to return.
func (w *world) err(step string) error {
	if len(w.fail[step]) == 0 {
		return nil
	}
	err := w.fail[step][0]
	w.fail[step] = w.fail[step][1:]
	return err
}

type fakeStream struct {
	w           *world
	at          int
	collections []string
}

func (s *fakeStream) Close() {}

func (s *fakeStream) Next(ctx context.Context) (changes.Batch, error) {
	if err := errors.Join(ctx.Err(), s.w.err("next")); err != nil {
		return changes.Batch{}, err
	}
	var out []changes.Event
	for len(out) < 2 && s.at < len(s.w.events) {
		e := s.w.events[s.at]
		s.at++
		if slices.Contains(s.collections, e.NS.Coll) || e.Type == "rename" || e.Type == "invalidate" {
			out = append(out, e)
		}
	}
	b, err := changes.Sort(out, s.collections)
	if b.Events < len(out) { // the rest is read again
		s.at = int(out[b.Events-1].Time.T)
	} else if b.End == nil {
		b.At = token(s.w.t, uint32(s.at))
	}
	return b, err
}

// follower returns a follower of the world that ends when it has caught up.
func (w *world) follower() *follower {
	at := w.saved
	ticks := int64(0)
	clock := func() time.Time { ticks++; return time.Unix(ticks, 0) }
	f := &follower{at: &at, clock: clock}
	f.open = func(context.Context) (stream, error) {
		w.log = append(w.log, "open")
		if err := w.err("open"); err != nil {
			return nil, err
		}
		n, _ := bson.Raw(f.at.Token).Lookup("_data").Int64OK()
		return &fakeStream{w, int(n), []string{f.at.Source, "record"}}, nil
	}
	f.save = func() error {
		if err := w.err("save"); err != nil {
			return err
		}
		w.saved = *f.at
		w.saved.Pending = slices.Clone(f.at.Pending)
		return nil
	}
	f.begin = func(context.Context) error {
		if f.at.Token != nil {
			return nil
		}
		w.log = append(w.log, "begin")
		f.at.Token, f.at.Source = token(w.t, uint32(len(w.events))), w.name
		return f.save()
	}
	f.compare = func(context.Context) error {
		w.log = append(w.log, "compare")
		w.copy = map[int32]int{}
		for id, v := range w.source {
			w.copy[id] = v
		}
		return w.err("compare")
	}
	f.some = func(_ context.Context, ids, copies []bson.RawValue, _ bson.Timestamp) (stuck []mirror.Finding, err error) {
		if err := w.err("apply"); err != nil {
			return nil, err
		}
		for _, id := range slices.Concat(ids, copies) {
			n := id.Int32()
			if w.pending[n] {
				stuck = append(stuck, mirror.Finding{ID: id})
				if n%2 == 1 {
					stuck[len(stuck)-1].From = id
				}
			} else if v, ok := w.source[n]; ok {
				w.copy[n] = v
			} else {
				delete(w.copy, n)
			}
		}
		return stuck, nil
	}
	f.renamed = func(_ context.Context, to string) error {
		w.log = append(w.log, "renamed "+to)
		return nil
	}
	f.now = func(context.Context) (bson.Timestamp, error) { return bson.Timestamp{T: uint32(len(w.events))}, nil }
	f.beat = func(context.Context) error {
		w.beats++
		w.event("update", "record", "x")
		return nil
	}
	f.caughtUp = func(context.Context) (bool, error) {
		f.at.Compared = true
		return true, f.save()
	}
	f.compared = func() { w.log = append(w.log, "compared") }
	f.report = func(int) {}
	f.restart = func(error) { w.log = append(w.log, "restart") }
	return f
}

// run follows the source to the end.
func (w *world) run() {
	w.t.Helper()
	if err := w.follower().run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) equal() {
	w.t.Helper()
	if fmt.Sprint(w.copy) != fmt.Sprint(w.source) {
		w.t.Errorf("the copy is %v, want %v", w.copy, w.source)
	}
}

// The copy has every change when follow returns, also of a source that was renamed, and after
// errors at any step. Other collections and renames do not matter.
func TestFollower(t *testing.T) {
	w := newWorld(t)
	w.source[1], w.source[2] = 1, 1
	w.run()
	w.equal()
	for i := range int32(7) {
		w.set(i, 2)
	}
	w.delete(2)
	w.event("insert", "other", int32(1))
	e := w.event("rename", "other", nil)
	e.To.DB, e.To.Coll = "db", "another"
	w.set(9, 1)
	w.rename("c2")
	w.set(1, 3)
	w.delete(3)
	w.rename("c3")
	w.set(4, 4)
	w.run()
	w.equal()
	if got := strings.Join(w.log, ", "); got != "begin, compare, compared, open, compared, open, renamed c2, open, renamed c3, open" {
		t.Error(got)
	}
	for _, step := range []string{"open", "next", "apply", "save"} {
		for n := range 4 {
			w.set(int32(n), n+10)
			w.delete(int32(n + 1))
			w.set(20, n)
			w.fail[step] = append(make([]error, n), errors.New("x"))
			for i := 0; w.follower().run(t.Context()) != nil; i++ {
				if i > 5 {
					t.Fatal(step)
				}
			}
			w.fail[step] = nil
			w.run()
			w.equal()
		}
	}
}

// The position is saved after the changes before it were applied.
func TestFollowerSavesLast(t *testing.T) {
	w := newWorld(t)
	w.run()
	before := w.saved
	w.set(1, 1)
	w.fail["apply"] = []error{errors.New("x")}
	if err := w.follower().run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if !bytesEqual(w.saved.Token, before.Token) {
		t.Error("the position was saved before the change was applied")
	}
}

func bytesEqual(a, b []byte) bool { return string(a) == string(b) }

// If the token has expired, the next stream begins before the next comparison.
func TestFollowerExpired(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.set(1, 1)
	w.log = nil
	lost := mongo.CommandError{Code: 286}
	w.fail["open"] = []error{lost}
	w.fail["next"] = []error{lost}
	w.run()
	w.equal()
	if got := strings.Join(w.log, ", "); got != "compared, open, restart, begin, compare, compared, open, restart, begin, compare, compared, open" {
		t.Error(got)
	}
}

// A dropped source ends the follower, and changes nothing in the copy.
func TestFollowerDropped(t *testing.T) {
	for name, drop := range map[string]func(*world){
		"drop":         func(w *world) { w.event("drop", "c", nil) },
		"dropDatabase": func(w *world) { w.event("dropDatabase", "c", nil) },
		"invalidate":   func(w *world) { w.event("invalidate", "", nil) },
		"replaced": func(w *world) {
			e := w.event("rename", "other", nil)
			e.To.DB, e.To.Coll = "db", "c"
		},
		"to another database": func(w *world) {
			e := w.event("rename", "c", nil)
			e.To.DB, e.To.Coll = "db2", "c"
		},
		"not found": func(w *world) { // until the stream has passed the time
			w.event("update", "c", int32(1))
			w.fail["apply"] = slices.Repeat([]error{errGone}, 100)
		},
	} {
		w := newWorld(t)
		w.source[1] = 1
		w.run()
		drop(w)
		f := w.follower()
		f.now = func(context.Context) (bson.Timestamp, error) { return bson.Timestamp{T: 1000}, nil }
		if name == "not found" { // now, and after each beat
			f.now = w.follower().now
		}
		if err := f.run(t.Context()); !errors.Is(err, ErrSourceDropped) {
			t.Errorf("%s: %v", name, err)
		}
		w.equal()
	}
}

// A source that is not found is waited for until the stream tells that it was renamed. Nothing is
// lost.
func TestFollowerRenamedBefore(t *testing.T) {
	w := newWorld(t)
	w.run()
	for i := range int32(5) {
		w.set(i, 1)
	}
	w.rename("c2")
	w.fail["apply"] = []error{errGone, errGone, nil}
	w.run()
	w.equal()
}

// A document that cannot be copied is tried again with the next changes, also after the end of the
// process.
func TestFollowerPending(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.copy[2] = 1
	w.pending[1], w.pending[2] = true, true
	w.set(1, 1)
	w.delete(2)
	w.set(3, 1)
	w.run()
	if len(w.saved.Pending) != 2 || w.saved.validate() != nil {
		t.Fatalf("%+v", w.saved.Pending)
	}
	clear(w.pending)
	w.set(4, 1)
	w.run()
	w.equal()
	if len(w.saved.Pending) != 0 {
		t.Errorf("%+v", w.saved.Pending)
	}
}

// The follower ends when the stream has passed a time, and not before. If nothing changes, its own
// writes show it.
func TestFollowerGoal(t *testing.T) {
	w := newWorld(t)
	w.run()
	for i := range int32(6) {
		w.set(i, 1)
	}
	f := w.follower()
	beats := w.beats
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.equal()
	if w.beats == beats {
		t.Error("the time was passed without an event")
	}
	ctx, stop := context.WithCancel(t.Context())
	f = w.follower()
	f.now = func(context.Context) (bson.Timestamp, error) { return bson.Timestamp{T: 1 << 30}, nil }
	f.beat = func(context.Context) error { stop(); return nil }
	if err := f.run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
