package servertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// opaque fills the collection c with n UUIDs in Java order of which no value shows that, before or after they are
// converted to C# order. It returns the documents that the conversion must produce.
func opaque(t testing.TB, coll *mongo.Collection, n int) (want map[string]bson.Raw) {
	t.Helper()
	want = make(map[string]bson.Raw)
	var docs []any
	for i, u := range odd(n) {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}})
		note(want, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(u, uuidrep.CSharpLegacy)}})
	}
	insert(t, coll, docs)
	return want
}

// inOrder makes the plan that converts the collection c of opaque, and returns its directory. Only the record and
// the files tell which values are converted.
func inOrder(t testing.TB, s *mongotest.Server) (dir string) {
	t.Helper()
	return prepared(t, s, "csharpLegacy", convertFields("javaLegacy", ""), trusted("a"))
}

// applying returns the arguments that apply the plan in dir.
func applying(dir string, extra ...string) []string {
	return slices.Concat([]string{"apply", dir, "--write"}, gentle, extra)
}

// recorded returns the runs of the collection c, in the order in which they began.
func recorded(t *testing.T, db *mongo.Database) []record.Run {
	t.Helper()
	cur, err := db.Collection(record.Name).Find(t.Context(), bson.D{{Key: "collection", Value: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	var all []record.Run
	if err := cur.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	runs := make([]record.Run, len(all))
	for _, r := range all {
		if r.Epoch < 1 || r.Epoch > int64(len(all)) || runs[r.Epoch-1].ID != "" {
			t.Fatalf("epoch %d of %d runs", r.Epoch, len(all))
		}
		runs[r.Epoch-1] = r
	}
	return runs
}

// The record holds who converted what, when, how far it came and what happened to it later. scan
// does not treat it as user data.
func TestRecord(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 20, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	dir := prepared(t, s, "csharpLegacy")
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	runs := recorded(t, db)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	r := runs[0]
	host, _ := os.Hostname()
	if r.ID != "c/1" || r.Kind != record.Convert || r.From != "javaLegacy" || r.To != "csharpLegacy" || r.Outcome != record.Done || r.Ended == nil ||
		r.By.Host != host || r.By.PID != os.Getpid() || r.Ended.Before(r.Started) || time.Since(r.Started) > time.Hour || r.UndoSize == 0 ||
		r.State != filepath.Join(dir, "c.javaLegacy.state") || r.UndoLog != filepath.Join(dir, "c.javaLegacy.undo") ||
		r.Progress != (record.Progress{Documents: 20, Read: 20, Changed: 20, Values: 60}) || r.Undone != nil {
		t.Errorf("got %+v", r)
	}
	if fields := scanned(t, s, "--all"); len(fields) == 0 {
		t.Error("nothing was scanned")
	} else {
		for f := range fields {
			if strings.HasPrefix(f, record.Name) {
				t.Errorf("scan reports %s", f)
			}
		}
	}
	command(t, s, "plan", filepath.Join(t.TempDir(), "new"), "--db", s.Database(), "--collection", record.Name).want(t, failure.ExitUsage)
	command(t, s, "apply", prepared(t, s, "javaLegacy", convertFields("csharpLegacy", ""), copiedInto("c", record.Name))).want(t, failure.ExitUsage)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	runs = recorded(t, db)
	if len(runs) != 2 || runs[1].Kind != record.Undo || runs[1].Outcome != record.Done || runs[0].Undone == nil || !runs[0].Undone.Complete || runs[1].Conversion != runs[0].Conversion {
		t.Errorf("got %+v", runs)
	}
}

// Values without evidence are not converted twice, whichever directory is used.
func TestTwice(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := opaque(t, db.Collection("c"), 12)
	dirs := []string{inOrder(t, s)}
	command(t, s, applying(inOrder(t, s))...).want(t, failure.ExitOK)
	for _, dir := range append(dirs, inOrder(t, s)) { // made before, and after
		for _, extra := range [][]string{nil, {"--take-over"}} {
			if r := command(t, s, applying(dir, extra...)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "bsonids undo") {
				t.Error(r.stderr)
			}
			equal(t, all(t, db.Collection("c")), want)
		}
	}
}

// If several plans of the same values begin at the same time, with different directories, one of them converts.
func TestAtOnce(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	for range 3 {
		if err := db.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := opaque(t, db.Collection("c"), 60)
		const n = 3
		results := make(chan result, n)
		first := inOrder(t, s)
		for i := range n {
			dir := filepath.Join(t.TempDir(), "of", fmt.Sprint(i))
			again(t, filepath.Join(first, plan.PlanFile), dir)
			go func() { results <- command(t, s, applying(dir)...) }()
		}
		done := 0
		for range n {
			switch r := <-results; r.code {
			case failure.ExitOK:
				done++
			case failure.ExitUsage:
			default:
				t.Errorf("exit code %d: %s", r.code, r.stderr)
			}
		}
		if done != 1 {
			t.Errorf("%d of %d converted", done, n)
		}
		equal(t, all(t, db.Collection("c")), want)
	}
}

// A record under another name is noticed.
func TestRecordElsewhere(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := opaque(t, db.Collection("c"), 15)
	command(t, s, applying(inOrder(t, s))...).want(t, failure.ExitOK)
	var docs []any
	for _, d := range all(t, db.Collection(record.Name)) {
		docs = append(docs, d)
	}
	insert(t, db.Collection("migrations.old"), docs)
	if err := db.Collection(record.Name).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, applying(inOrder(t, s))...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "migrations.old is a record of conversions") {
		t.Error(r.stderr)
	}
	equal(t, all(t, db.Collection("c")), want)
}

// A run that is interrupted while it is put into the record has an end there, so that the next run
// need not wait for its writes.
func TestInterruptedBeginning(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	opaque(t, db.Collection("c"), 12)
	dir := inOrder(t, s)
	ctx, interrupt := context.WithCancel(t.Context())
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == record.Name && len(r.sequence) > 0 {
			if kind, _ := r.sequence[0].Lookup("kind").StringValueOK(); kind == record.Convert {
				interrupt()
			}
		}
		return pass()
	})
	var out, errs bytes.Buffer
	if code := cli.Run(ctx, applying(dir, "--uri", p.URI()), &out, &errs); code != failure.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	runs := recorded(t, db)
	if len(runs) != 1 {
		t.Errorf("%d runs, want one", len(runs))
	}
	for _, r := range runs {
		if r.Ended == nil {
			t.Errorf("%v has no end", &r)
		}
	}
}

// A copy of the state file that was made before the last run is refused, and is not changed.
func TestOlderLedger(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		want := seed(t, coll, 30, uuidrep.JavaLegacy, to)
		dir := prepared(t, s, to.String())
		var updates atomic.Int32
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" && r.documents > 1 && updates.Add(1) == 2 {
				return nil
			}
			return pass()
		})
		command(t, p, applying(dir)...).want(t, failure.ExitUnreachable)
		older := copied(t, dir)
		ledger := filepath.Join(older, "c.javaLegacy.state")
		before := logText(t, ledger)
		command(t, s, applying(dir)...).want(t, failure.ExitOK)
		if r := command(t, s, applying(older)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "older copy") {
			t.Error(r.stderr)
		}
		if now := logText(t, ledger); now != before {
			t.Errorf("%s became %s", before, now)
		}
		equal(t, all(t, coll), want)
		if r := command(t, s, applying(dir)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "done") {
			t.Error(r.stdout)
		}
	}
}
