package servertest

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The log of a conversion that was undone restores nothing of a later one, which has a log of its own.
func TestUndoOfAnEarlierConversion(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		t.Run(to.String(), func(t *testing.T) {
			s := mongotest.Start(t)
			coll := connect(t, s).Collection("c")
			converted := seed(t, coll, 30, uuidrep.JavaLegacy, to)
			before := all(t, coll)
			dirs := map[string]string{"1": prepared(t, s, to.String()), "2": prepared(t, s, to.String())}
			apply := func(n string) {
				t.Helper()
				command(t, s, "apply", dirs[n], "--batch", "10", "--write").want(t, failure.ExitOK)
			}
			undo := func(n string, more ...string) result {
				return command(t, s, append([]string{"undo", dirs[n], "--batch", "10"}, more...)...)
			}
			apply("1")
			undo("1", "--write").want(t, failure.ExitOK)
			undo("1", "--write").want(t, failure.ExitOK) // nothing is left to do
			apply("2")
			for _, more := range [][]string{nil, {"--write"}} {
				if r := undo("1", more...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, dirs["2"]) {
					t.Error(r.stderr)
				}
				equal(t, all(t, coll), converted)
			}
			undo("2", "--write").want(t, failure.ExitOK)
			equal(t, all(t, coll), before)
			undo("1", "--write").want(t, failure.ExitOK)
		})
	}
}

// The undo of a plan whose copy is in place changes nothing, and names the command that puts the old collection
// back. If that was dropped, the rest is restored.
func TestUndoPlanAfterCutover(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("a"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	seed(t, db.Collection("b"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, "  - name: \"a\"\n", "  - name: \"a\"\n    into: \"a_standard\"\n")
	before := all(t, db.Collection("b"))
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	converted := all(t, db.Collection("b"))
	c := record.NewCutover([]record.Exchange{{Name: "a", New: "a_standard", Kept: "a_old"}}, "")
	if err := db.CreateCollection(t.Context(), "a_old"); err != nil {
		t.Fatal(err)
	}
	for state, way := range map[string]string{
		record.Switching: "bsonids cutover --db " + db.Name() + " a --roll-back --write",
		record.Switched:  "bsonids release --db " + db.Name() + " a --write",
		record.Released:  "first with bsonids undo --db " + db.Name() + " a --write",
	} {
		c.State = state
		if err := c.Save(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		for _, more := range [][]string{nil, {"--write"}} {
			if r := command(t, s, append([]string{"undo", dir}, more...)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, way) {
				t.Error(r.stderr)
			}
		}
		equal(t, all(t, db.Collection("b")), converted)
	}
	c.State = record.Released
	if err := c.Save(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := db.Collection("a_old").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, "undo", dir, "--write").want(t, failure.ExitOK); !strings.Contains(r.stderr, "was dropped") {
		t.Error(r.stderr)
	}
	whole(t, db, map[string]map[string]bson.Raw{"b": before})
}

// An earlier copy of a directory does not tell that its plan was applied. The record does.
func TestUndoPlanWithDirectoryBeforeItsFirstBatch(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 12)
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, mixed...)
	apply := []string{"apply", dir, "--batch", "10", "--write"}
	// A command that is stopped after its decisions leaves a directory with which nothing was begun.
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup(r.name()).StringValueOK(); name == record.Name && r.name() == "update" {
			return nil
		}
		return pass()
	})
	command(t, p, apply...).want(t, failure.ExitUnreachable)
	earlier := filepath.Join(t.TempDir(), "earlier")
	if err := os.CopyFS(earlier, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	command(t, s, append(apply, "--batch-timeout", "5s")...).want(t, failure.ExitOK)
	for _, more := range [][]string{nil, {"--write"}} {
		r := command(t, s, append([]string{"undo", earlier, "--batch", "10"}, more...)...).want(t, failure.ExitFailed)
		if !strings.Contains(r.stderr, earlier) {
			t.Error(r.stderr)
		}
		whole(t, db, want)
	}
}

// The undo of several passes of one plan, which is stopped between them, calls none of them another conversion.
func TestUndoOfPasses(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 200, uuidrep.JavaLegacy, v4)
	few := odd(4)
	fill(t, coll, 200, 4, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
	before := all(t, coll)
	file := planned(t, s)
	dir := filepath.Dir(file)
	setDecision(t, file, "a", "convert from javaLegacy")
	command(t, s, applying(dir)...).want(t, failure.ExitIncomplete)
	setDecision(t, file, "a", "convert from javaLegacy", "trust: true")
	command(t, s, applying(dir)...)
	var lists atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if of, _ := r.command.Lookup("update").StringValueOK(); of == "c" && isBatch(r) && lists.Add(1) > 1 {
			return nil
		}
		return pass()
	})
	stopped := command(t, p, "undo", dir, "--write", "--batch-timeout", "5s").want(t, failure.ExitUnreachable)
	dir, _ = moved(t, dir)
	rest := command(t, s, "undo", dir, "--write", "--batch-timeout", "5s").want(t, failure.ExitOK)
	for _, r := range []result{stopped, rest} {
		if strings.Contains(r.stderr, "another conversion") {
			t.Error(r.stderr)
		}
	}
	equal(t, all(t, coll), before)
}

// A second plan of a database is undone for itself: what the first one has converted stays.
func TestUndoOfASecondPlan(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	coll := db.Collection("z")
	seed(t, coll, 20, uuidrep.JavaLegacy, uuidrep.Standard)
	flags := []string{"--batch", "10", "--write", "--batch-timeout", "5s"}
	command(t, s, append([]string{"apply", filepath.Dir(planned(t, s))}, flags...)...).want(t, failure.ExitOK)
	// A service writes old values again, and another collection is new.
	for i := range 12 {
		insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(1000 + i)}, {Key: "id", Value: in(v4(i), uuidrep.JavaLegacy)}}})
	}
	now := all(t, coll)
	seed(t, db.Collection("b"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, db.Collection("b"))
	second := filepath.Dir(planned(t, s))
	var updates atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte { // the second plan does not come to z
		if r.name() == "update" && r.documents == 10 && updates.Add(1) > 1 {
			return nil
		}
		return pass()
	})
	command(t, p, append([]string{"apply", second, "--collections-at-once", "1"}, flags...)...).want(t, failure.ExitUnreachable)
	command(t, s, append([]string{"undo", second}, flags...)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("b")), before)
	equal(t, all(t, coll), now)
}
