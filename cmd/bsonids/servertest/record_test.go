package servertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/uuidrep"
)

// opaque is a setting of n UUIDs in Java order of which no value shows that, before or after they are
// converted to C# order. Only the record and the files tell which values are converted.
func opaque(t testing.TB, n int) *scene {
	t.Helper()
	values := odd(n)
	c := pairs(t, n, func(i int) (old, converted bson.D) {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(values[i], uuidrep.JavaLegacy)}},
			bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(values[i], uuidrep.CSharpLegacy)}}
	})
	return c.in(c.another())
}

// another makes another plan of an opaque setting, and returns its directory.
func (c *scene) another() (dir string) {
	c.Helper()
	return prepared(c, c.s, "csharpLegacy", convertFields("javaLegacy", ""), trusted("a"))
}

// applying returns the arguments that apply the plan in dir.
func applying(dir string, extra ...string) []string {
	return slices.Concat([]string{"apply", dir, "--write"}, gentle, extra)
}

// apply is applying as a line for run.
const apply = "apply --write --batch 10 --workers 2"

// recorded returns the runs of the collection c, in the order in which they began.
func recorded(t *testing.T, db *mongo.Database) []record.Run {
	t.Helper()
	var runs []record.Run
	cur, err := db.Collection(record.Name).Find(t.Context(), bson.D{{Key: "collection", Value: "c"}})
	if err == nil {
		err = cur.All(t.Context(), &runs)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(runs, func(a, b record.Run) int { return int(a.Epoch - b.Epoch) })
	for i, r := range runs {
		if r.Epoch != int64(i+1) {
			t.Fatalf("epoch %d of the run %d", r.Epoch, i)
		}
	}
	return runs
}

// The record holds who converted what, when, how far it came and what happened to it later. scan
// does not treat it as user data.
func TestRecord(t *testing.T) {
	c := newScene(t, 20, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	c.ok("apply --write")
	runs := recorded(t, c.db)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	r := runs[0]
	host, _ := os.Hostname()
	if r.ID != "c/1" || r.Kind != record.Convert || r.Pairs[0].From != "javaLegacy" || r.Pairs[0].To != "csharpLegacy" || r.Outcome != record.Done || r.Ended == nil ||
		r.By.Host != host || r.By.PID != os.Getpid() || r.Ended.Before(r.Started) || time.Since(r.Started) > time.Hour || r.UndoSize == 0 ||
		r.State != c.file("c.state") || r.UndoLog != c.file("c.undo") ||
		r.Progress != (record.Progress{Documents: 20, Read: 20, Changed: 20, Values: 60}) || r.Undone != nil {
		t.Errorf("got %+v", r)
	}
	fields := scanned(t, c.s, "--all")
	for f := range fields {
		if strings.HasPrefix(f, record.Name) {
			t.Errorf("scan reports %s", f)
		}
	}
	if len(fields) == 0 {
		t.Error("nothing was scanned")
	}
	command(t, c.s, "plan", filepath.Join(t.TempDir(), "new"), "--db", c.db.Name(), "--collection", record.Name).want(t, failure.ExitUsage)
	command(t, c.s, "apply", prepared(t, c.s, "javaLegacy", convertFields("csharpLegacy", ""), copiedInto("c", record.Name))).want(t, failure.ExitUsage)
	c.ok("undo --write")
	runs = recorded(t, c.db)
	if len(runs) != 2 || runs[1].Kind != record.Undo || runs[1].Outcome != record.Done || runs[0].Undone == nil || !runs[0].Undone.Complete || runs[1].Conversion != runs[0].Conversion {
		t.Errorf("got %+v", runs)
	}
}

// Values without evidence are not converted twice, whichever directory is used, and not with a record under another name.
func TestTwice(t *testing.T) {
	c := opaque(t, 15)
	before := c.another()
	c.ok(apply)
	for _, dir := range []string{before, c.another()} { // made before, and after
		for _, extra := range []string{"", " --take-over"} {
			c.in(dir).run(failure.ExitUsage, apply+extra).says(t, "bsonids undo")
			c.converted()
		}
	}
	insert(t, c.db.Collection("migrations.old"), snapshot(t, c.db))
	drop(t, c.db.Collection(record.Name))
	c.in(c.another()).run(failure.ExitUsage, apply).says(t, "migrations.old is a record of conversions")
	c.converted()
}

// If several plans of the same values begin at the same time, with different directories, one of them converts.
func TestAtOnce(t *testing.T) {
	for range 3 {
		c := opaque(t, 60)
		const n = 3
		results := make(chan result, n)
		for i := range n {
			dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
			again(t, c.file(plan.PlanFile), dir)
			go func() { results <- command(t, c.s, applying(dir)...) }()
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
		c.converted()
	}
}

// beginsRun matches the command that puts a conversion into the record.
func beginsRun(r request) bool {
	if !asks("insert", record.Name)(r) || len(r.sequence) == 0 {
		return false
	}
	kind, _ := r.sequence[0].Lookup("kind").StringValueOK()
	return kind == record.Convert
}

// A run that is interrupted while it is put into the record has an end there, so that the next run
// need not wait for its writes.
func TestInterruptedBeginning(t *testing.T) {
	c := opaque(t, 12)
	ctx, interrupt := context.WithCancel(t.Context())
	p := justBefore(t, c.s, beginsRun, interrupt)
	var out, errs bytes.Buffer
	if code := cli.Run(ctx, applying(c.dir, "--uri", p.URI()), &out, &errs); code != failure.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if runs := recorded(t, c.db); len(runs) != 1 || runs[0].Ended == nil {
		t.Errorf("%+v", runs)
	}
}

// A copy of the directory that was made before the last run is refused, and is not changed.
func TestOlderLedger(t *testing.T) {
	for _, to := range targets {
		c := newScene(t, 30, uuidrep.JavaLegacy, to)
		c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, apply)
		older := c.in(copied(t, c.dir))
		ledger := older.file("c.state")
		before := logText(t, ledger)
		c.ok(apply)
		older.run(failure.ExitUsage, apply).says(t, "older copy")
		if now := logText(t, ledger); now != before {
			t.Errorf("%s became %s", before, now)
		}
		c.converted()
		c.run(failure.ExitOK, apply).prints(t, "done")
	}
}
