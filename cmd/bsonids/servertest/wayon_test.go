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
	dir := t.TempDir()
	undo := filepath.Join(dir, "it's the undo log")
	args := []string{"convert", "--write", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--batch", "10", "--batch-timeout", "3s", "--state", filepath.Join(dir, "state"), "--undo-log", undo}
	r := command(t, p, append(args, "--field", "mistyped")...).want(t, failure.ExitUsage)
	if !strings.HasSuffix(r.stderr, "; this command changed nothing\n") {
		t.Error(r.stderr)
	}
	r = command(t, p, args...).want(t, failure.ExitUnreachable)
	for _, want := range []string{"changed: 60 values in 20 documents", "to continue: bsonids convert --write --db ", "to undo: bsonids undo '" + strings.ReplaceAll(undo, "'", `'\''`) + "' --write --uri " + p.URI()[:10]} {
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

// A copy that stops names the collection to drop, and the same command continues it.
func TestWayOnOfCopy(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
	var inserts atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "new one" && inserts.Add(1) >= 2 {
			return nil
		}
		return pass()
	})
	args := []string{"convert", "--write", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "new one", "--batch", "5", "--workers", "1",
		"--batch-timeout", "1s", // another run waits for the batch without an answer
		"--state", filepath.Join(t.TempDir(), "state")}
	r := command(t, p, args...).want(t, failure.ExitUnreachable)
	for _, want := range []string{"changed: only the new collection " + s.Database() + ".new one, not c", "to continue: bsonids convert --write", "to undo: drop the collection " + s.Database() + ".new one"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in %s", want, r.stderr)
		}
	}
	// A collection of somebody else is not named.
	if r := command(t, s, append(args[:len(args)-1:len(args)-1], filepath.Join(t.TempDir(), "state"))...).want(t, failure.ExitFailed); strings.Contains(r.stderr, "drop") ||
		!strings.Contains(r.stderr, "changed nothing") {
		t.Error(r.stderr)
	}
	command(t, s, args...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("new one")), want)
}
