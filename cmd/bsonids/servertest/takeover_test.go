package servertest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// copied copies the directory of a migration, as a user does to continue on another machine.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// hold starts a conversion through a proxy that delays its nth batch, and, once silent is set, its signs of
// life. release lets them pass, and ended receives the result of the conversion.
func hold(t *testing.T, s *mongotest.Server, n int64, silent *atomic.Bool, args []string) (release func(), ended <-chan result) {
	t.Helper()
	reached, free := make(chan struct{}), make(chan struct{})
	var batches atomic.Int64
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch {
		case asks("update", record.Name)(r) && silent.Load():
			<-free
		case writesTo("c")(r) && batches.Add(1) == n:
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
	c := opaque(t, 40)
	begun := c.in(copied(t, c.dir))
	var silent atomic.Bool
	release, ended := hold(t, c.s, 2, &silent, applying(c.dir, "--workers", "1", "--batch-timeout", "60s"))
	defer release()
	other := c.in(copied(t, c.dir))
	other.run(failure.ExitUsage, apply+" --take-over").says(t, "may be a copy: waiting for 6s", "end that run first")
	silent.Store(true)
	// It is refused without --take-over, without the files, and with files that lack the batch in
	// flight.
	other.run(failure.ExitUsage, apply).says(t, "--take-over")
	begun.run(failure.ExitFailed, apply).says(t, "older copy")
	begun.run(failure.ExitFailed, apply+" --take-over").says(t, "older copy")
	short := c.in(copied(t, other.dir))
	log := text(t, short.file("c.undo"))
	put(t, short.file("c.undo"), log[:len(log)-lastRecord([]byte(log))])
	short.run(failure.ExitUsage, apply+" --take-over --batch-timeout 1s").says(t, "use the latest ones")
	// A continuation of the same conversion does not wait for its batches.
	if r := other.run(failure.ExitOK, apply+" --take-over").says(t, "may be a copy"); strings.Count(r.stderr, "waiting") != 1 {
		t.Error(r.stderr)
	}
	c.converted()
	release()
	if r := <-ended; r.code == failure.ExitOK {
		t.Errorf("the old run says that it is done: %s", r.stdout)
	}
	c.converted()
	other.ok("undo --write")
	c.unchanged()
}

// After undo, a copy of the directory from before refuses, also if only its ledger is from before. The directory
// itself converts again, with new files.
func TestUndoThenTheSame(t *testing.T) {
	c := opaque(t, 20)
	c.ok(apply)
	unmarked := c.in(copied(t, c.dir))
	c.ok("undo --write")
	c.unchanged()
	mixed := c.in(copied(t, c.dir)) // with the ledger from before
	put(t, mixed.file("ledger"), text(t, unmarked.file("ledger")))
	for _, of := range []*scene{unmarked, mixed} {
		if r := command(t, c.s, applying(of.dir)...).says(t, "undo"); r.code == failure.ExitOK {
			t.Error(r.stderr)
		}
		c.unchanged()
	}
	c.run(failure.ExitIncomplete, "verify")
	c.ok("undo --write", apply)
	c.converted()
}

// While undo has not put back every value, undo can be run again. After that, a conversion with new files begins.
func TestUndoOfAllButOne(t *testing.T) {
	c := opaque(t, 20)
	c.ok(apply)
	set(t, c.coll, 7, "a", "text")
	c.run(failure.ExitIncomplete, "undo --write")
	set(t, c.coll, 7, "a", c.want[`{"$numberInt":"7"}`].Lookup("a"))
	c.ok("undo --write")
	c.unchanged()
	c.in(c.another()).ok(apply)
	c.converted()
}
