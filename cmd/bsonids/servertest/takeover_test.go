package servertest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// copied copies the directory of a migration, as a user does to continue on another machine.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// hold starts a conversion through a proxy that delays its nth batch, and, once silent is set, its signs of
// life. release lets them pass, and ended receives the result of the conversion.
func hold(t *testing.T, s *mongotest.Server, n int, silent *atomic.Bool, args []string) (release func(), ended <-chan result) {
	t.Helper()
	reached, free := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		name, _ := r.command.Lookup("update").StringValueOK()
		if name == record.Name && silent.Load() {
			<-free
		}
		if name != "c" || r.documents < 2 {
			return pass()
		}
		mu.Lock()
		n--
		hold := n == 0
		mu.Unlock()
		if hold {
			close(reached)
			<-free
		}
		return pass()
	})
	done := make(chan result, 1)
	go func() { done <- command(t, p, args...) }()
	select {
	case <-reached:
	case r := <-done:
		t.Fatalf("ended with %d: %s", r.code, r.stderr)
	}
	return sync.OnceFunc(func() { close(free) }), done
}

// A run is taken over while its batch is in flight. The new run has a copy of its files: it is refused while
// the old one shows signs of life, and waits for them otherwise. It converts everything. The late batch of
// the old run changes nothing.
func TestTakeOverInFlight(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := opaque(t, db.Collection("c"), 40)
	before := all(t, db.Collection("c"))
	dir := inOrder(t, s)
	begun := copied(t, dir)
	var silent atomic.Bool
	release, ended := hold(t, s, 2, &silent, applying(dir, "--workers", "1", "--batch-timeout", "60s"))
	defer release()
	other := copied(t, dir)
	if r := command(t, s, applying(other, "--take-over")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "may be a copy: waiting for 6s") || !strings.Contains(r.stderr, "end that run first") {
		t.Error(r.stderr)
	}
	silent.Store(true)
	// It is refused without --take-over, without the files, and with files that lack the batch in
	// flight.
	if r := command(t, s, applying(other)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "--take-over") {
		t.Error(r.stderr)
	}
	for _, args := range [][]string{applying(begun), applying(begun, "--take-over")} {
		if r := command(t, s, args...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, "older copy") {
			t.Error(r.stderr)
		}
	}
	short := copied(t, other)
	b, err := os.ReadFile(filepath.Join(short, "c.javaLegacy.undo"))
	if err != nil {
		t.Fatal(err)
	}
	b = b[:len(b)-lastRecord(b)]
	if err := os.WriteFile(filepath.Join(short, "c.javaLegacy.undo"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, applying(short, "--take-over", "--batch-timeout", "1s")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "only the latest") {
		t.Error(r.stderr)
	}
	r := command(t, s, applying(other, "--take-over")...).want(t, failure.ExitOK)
	if !strings.Contains(r.stderr, "may be a copy") || strings.Count(r.stderr, "waiting") != 1 {
		t.Errorf("a continuation of the same conversion waits for its batches: %s", r.stderr)
	}
	equal(t, all(t, db.Collection("c")), want)
	release()
	if r := <-ended; r.code == failure.ExitOK {
		t.Errorf("the old run says that it is done: %s", r.stdout)
	}
	equal(t, all(t, db.Collection("c")), want)
	command(t, s, "undo", other, "--write", "--batch", "10").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), before)
}

// After undo, a copy of the directory from before refuses, also if only its ledger is from before. The directory
// itself converts again, with new files.
func TestUndoThenTheSame(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := opaque(t, db.Collection("c"), 20)
	before := all(t, db.Collection("c"))
	dir := inOrder(t, s)
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	unmarked := copied(t, dir)
	command(t, s, "undo", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), before)
	mixed := copied(t, dir)
	if err := os.WriteFile(filepath.Join(mixed, "ledger"), []byte(text(t, filepath.Join(unmarked, "ledger"))), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{"a copy from before": unmarked, "the ledger from before": mixed} {
		if r := command(t, s, applying(of)...); r.code == failure.ExitOK || !strings.Contains(r.stderr, "undo") {
			t.Errorf("%s: %d %s", name, r.code, r.stderr)
		}
		equal(t, all(t, db.Collection("c")), before)
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "undo", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), want)
}

// Another program inserts an element before those that are put back, after undo has read the
// document. Their values are restored at the new positions.
func TestUndoMoved(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		t.Run(to, func(t *testing.T) {
			s := mongotest.Start(t)
			coll := connect(t, s).Collection("c")
			c := conversion(t, "javaLegacy", to)
			old := kindstest.Value("javaLegacy")
			docs := []any{bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{bson.D{{Key: "id", Value: old}}, bson.D{{Key: "id", Value: old}, {Key: "n", Value: 1}}}}, {Key: "a", Value: old}}}
			insert(t, coll, docs)
			f := newFiles(t, c)
			f.with(t, func(state *convert.StateFile, u *convert.UndoLog) {
				if _, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Write: true, Workers: 1, State: state, Undo: u}); err != nil {
					t.Fatal(err)
				}
			})
			first := bson.D{{Key: "id", Value: "text"}}
			u, err := convert.ReadUndoLogAlone(f.undo)
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			var once sync.Once
			move := func() {
				got, err := coll.FindOne(context.Background(), bson.D{}).Raw()
				if err != nil {
					t.Error(err)
					return
				}
				l := bson.A{first}
				elements, err := got.Lookup("l").Array().Values()
				if err != nil {
					t.Error(err)
				}
				for _, e := range elements {
					l = append(l, e)
				}
				if _, err := coll.UpdateOne(context.Background(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "l", Value: l}}}}); err != nil {
					t.Error(err)
				}
			}
			p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
				if r.name() == "update" {
					once.Do(move)
				}
				return pass()
			})
			client, err := mongo.Connect(options.Client().ApplyURI(p.URI()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Disconnect(context.Background()) }()
			res, err := convert.Undo(t.Context(), client.Database(s.Database()).Collection("c"), u, convert.UndoOptions{Write: true, Batch: 10})
			if err != nil || res.Restored != 1 || res.Changed != 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			want := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{first, bson.D{{Key: "id", Value: old}}, bson.D{{Key: "id", Value: old}, {Key: "n", Value: 1}}}}, {Key: "a", Value: old}})
			got, err := coll.FindOne(t.Context(), bson.D{}).Raw()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %v, want %v, %v", got, want, err)
			}
		})
	}
}

// While undo has not put back every value, some values of a field are in one order and some in the
// other. No conversion with new files starts, and undo can be run again.
func TestUndoOfAllButOne(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	want := opaque(t, coll, 20)
	before := all(t, coll)
	dir := inOrder(t, s)
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	set := func(v any) {
		if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 7}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: v}}}}); err != nil {
			t.Fatal(err)
		}
	}
	set("text")
	undo := []string{"undo", dir, "--write", "--batch", "10"}
	command(t, s, undo...).want(t, failure.ExitIncomplete)
	if r := command(t, s, applying(inOrder(t, s))...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "was not finished") || !strings.Contains(r.stderr, "bsonids undo") {
		t.Error(r.stderr)
	}
	set(want[`{"$numberInt":"7"}`].Lookup("a"))
	command(t, s, undo...).want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
	command(t, s, applying(inOrder(t, s))...).want(t, failure.ExitOK)
	equal(t, all(t, coll), want)
}
