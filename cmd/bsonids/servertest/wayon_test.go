package servertest

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A command that fails says what it changed, and prints the commands to continue and to undo. A
// command that is refused says that it changed nothing.
func TestWayOn(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 40, uuidrep.JavaLegacy, uuidrep.Standard)
	var updates atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "update" && r.documents > 1 && updates.Add(1) >= 3 { // the driver tries a write again
			return nil
		}
		return pass()
	})
	dir := filepath.Join(t.TempDir(), "it's the plan")
	again(t, planned(t, s), dir)
	args := []string{"apply", dir, "--write", "--batch", "10", "--batch-timeout", "3s"}
	changePlan(t, dir, convertFields("csharpLegacy", ""))
	r := command(t, p, args...).want(t, failure.ExitUsage)
	if !strings.HasSuffix(r.stderr, "; this command changed nothing\n") {
		t.Error(r.stderr)
	}
	changePlan(t, dir, convertFields("javaLegacy", ""))
	r = command(t, p, args...).want(t, failure.ExitUnreachable)
	quoted := "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	for _, want := range []string{"changed: 60 values in 20 documents", "to continue: bsonids apply " + quoted + " --write --batch 10", "to undo: bsonids undo " + quoted + " --write --uri " + p.URI()[:10]} {
		if !strings.Contains(r.stderr, want) && !strings.Contains(strings.ReplaceAll(r.stderr, "'"+p.URI()+"'", p.URI()), want) {
			t.Errorf("no %q in %s", want, r.stderr)
		}
	}
	// A run that continues counts what all runs changed.
	updates.Store(1) // one more batch
	r = command(t, p, args...).want(t, failure.ExitUnreachable)
	if !strings.Contains(r.stderr, "changed: 30 values in 10 documents in this run, at least 30 documents in all runs") {
		t.Error(r.stderr)
	}
}

// A copy that stops says that its source was not changed, and the same command continues it.
func TestWayOnOfCopy(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
	var inserts atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "c_standard" && inserts.Add(1) >= 2 {
			return nil
		}
		return pass()
	})
	dir, other := prepared(t, s, "standard", intoNew("c")), prepared(t, s, "standard", intoNew("c"))
	args := []string{"apply", dir, "--write", "--batch", "5", "--batch-timeout", "1s"} // another run waits for the batch without an answer
	r := command(t, p, args...).want(t, failure.ExitUnreachable)
	for _, want := range []string{"changed: only the new collections c_standard, and not", "to continue: bsonids apply " + dir, "to undo: bsonids undo " + dir + " --write"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in %s", want, r.stderr)
		}
	}
	// A collection of somebody else is not named.
	if r := command(t, s, "apply", other, "--write").want(t, failure.ExitUsage); strings.Contains(r.stderr, "to undo") || !strings.Contains(r.stderr, "changed nothing") {
		t.Error(r.stderr)
	}
	command(t, s, args...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c_standard")), want)
}
