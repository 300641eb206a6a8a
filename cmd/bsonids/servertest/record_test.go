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

// opaque is a setting of n UUIDs in Java order of which no value shows that, so that a person vouches for them.
func opaque(t testing.TB, n int) *scene {
	t.Helper()
	values := odd(n)
	c := pairs(t, n, func(i int) (old, converted bson.D) {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(values[i], uuidrep.JavaLegacy)}},
			bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(values[i], uuidrep.Standard)}}
	})
	return c.in(c.another())
}

// another makes another plan of an opaque setting, and returns its directory.
func (c *scene) another() (dir string) {
	c.Helper()
	return prepared(c, c.s, convertFields("javaLegacy"), trusted("a"))
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
	c := newScene(t, 20, uuidrep.JavaLegacy)
	c.ok("apply --write")
	runs := recorded(t, c.db)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	r := runs[0]
	host, _ := os.Hostname()
	if r.ID != "c/1" || r.Kind != record.Convert || r.Pairs[0].From != "javaLegacy" || r.Outcome != record.Done || r.Ended == nil ||
		r.By.Host != host || r.By.PID != os.Getpid() || r.Ended.Before(r.Started) || time.Since(r.Started) > time.Hour || r.Log.Size == 0 || c.file(r.By.Token+".undo") != c.log() ||
		r.Directory != c.dir ||
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
	command(t, c.s, "apply", prepared(t, c.s, copiedInto("c", record.Name))).want(t, failure.ExitUsage)
	c.ok("undo --write")
	runs = recorded(t, c.db)
	if len(runs) != 2 || runs[1].Kind != record.Undo || runs[1].Outcome != record.Done || runs[0].Undone == nil || !runs[0].Undone.Complete || runs[1].Conversion != runs[0].Conversion {
		t.Errorf("got %+v", runs)
	}
}

// No value is converted twice, whichever directory is used: a plan that was made before, or after, finds nothing to convert. A record
// under another name forbids a run.
func TestTwice(t *testing.T) {
	c := opaque(t, 15)
	before := c.another()
	c.ok(apply)
	for _, extra := range []string{"", " --take-over"} {
		c.in(before).ok(apply + extra)
		c.converted()
	}
	insert(t, c.coll, []any{bson.D{{Key: "_id", Value: "new"}, {Key: "a", Value: in(odd(1)[0], uuidrep.JavaLegacy)}}})
	before = c.another()
	docs := all(t, c.coll)
	insert(t, c.db.Collection("migrations.old"), snapshot(t, c.db))
	drop(t, c.db.Collection(record.Name))
	c.in(before).run(failure.ExitUsage, apply).says(t, "migrations.old is a record of conversions")
	equal(t, all(t, c.coll), docs)
}

// If several plans of the same values begin at the same time, with different directories, each value is converted once, and those
// that come too late say so.
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
		if done == 0 {
			t.Errorf("none of %d converted", n)
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

// snapshot returns the documents of the record.
func snapshot(t testing.TB, db *mongo.Database) (docs []any) {
	for _, d := range all(t, db.Collection(record.Name)) {
		docs = append(docs, d)
	}
	return docs
}

// If the record was dropped, or replaced by one from before, a migration goes on, and can be proven and undone: the values
// tell what is converted, and the directory has the undo log.
func TestRecordForgets(t *testing.T) {
	for name, older := range map[string]bool{"dropped": false, "older": true} {
		forget := func(c *scene, docs []any) {
			drop(c, c.db.Collection(record.Name))
			if older {
				insert(c, c.db.Collection(record.Name), docs)
			}
		}
		t.Run(name, func(t *testing.T) {
			c := newScene(t, 30, uuidrep.JavaLegacy)
			c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, apply+" --batch-timeout 1s")
			docs := snapshot(t, c.db)
			c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, apply+" --batch-timeout 1s")
			forget(c, docs)
			c.ok(apply + " --batch-timeout 1s")
			c.converted()
			forget(c, docs)
			c.ok(apply+" --batch-timeout 1s", "verify")
			c.run(failure.ExitFailed, "undo --write").says(t, c.dir, "--without-record")
			c.ok("undo --write --without-record --batch-timeout 1s")
			c.unchanged()
		})
	}
}

// A copy of which the record knows nothing is never written.
func TestRecordForgetsCopy(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy, intoNew("c"))
	c.ok("apply --write")
	drop(t, c.db.Collection(record.Name))
	c.run(failure.ExitUsage, "apply --write").says(t, `"c_standard" has documents already`)
	c.converted()
	drop(t, c.result)
	c.ok("apply --write", "verify")
	c.converted()
}

// A conversion that was undone before the plan was applied again is nothing to a run that goes on without the record.
func TestRecordForgetsUndone(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy)
	c.ok(apply+" --batch-timeout 1s", "undo --write --batch-timeout 1s")
	c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, apply+" --batch-timeout 1s")
	drop(t, c.db.Collection(record.Name))
	c.ok(apply + " --batch-timeout 1s")
	c.converted()
	c.ok("undo --write --without-record --batch-timeout 1s")
	c.unchanged()
}

// If the directory of a migration is lost that was killed, another one converts what is left. The old directory, if it comes
// back, restores what it has converted.
func TestDirectoryLost(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy)
	c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, apply+" --batch-timeout 1s")
	dir := filepath.Join(t.TempDir(), "new.d")
	command(t, c.s, "plan", dir, "--db", c.db.Name()).want(t, failure.ExitOK)
	other := c.in(dir)
	other.ok(apply)
	c.converted()
	c.ok("undo --write")
	other.ok("undo --write")
	c.unchanged()
}

// A directory that is a copy from before goes on as the latest one does, and its undo names the log that it lacks.
func TestDirectoryFromBefore(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy)
	setDecision(t, c.file("plan.yaml"), "id", "leave")
	planned := c.in(copied(t, c.dir))
	c.ok("apply --write --batch-timeout 5s")
	earlier := c.in(copied(t, c.dir))
	setDecision(t, c.file("plan.yaml"), "id", "convert from javaLegacy")
	c.ok("apply --write")
	c.converted()
	for _, of := range []*scene{planned, earlier} {
		for _, line := range []string{"undo", "undo --write"} {
			of.run(failure.ExitFailed, line).says(t, of.dir, "is missing")
			c.converted()
		}
	}
	// An edit of what was converted is found with the record, in every directory.
	earlier.run(failure.ExitUsage, "apply --write").says(t, "put this back")
	c.ok("apply --write", "undo --write")
	c.unchanged()
}
