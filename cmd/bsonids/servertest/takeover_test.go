package servertest

import (
	"os"
	"path/filepath"
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

// A run is taken over while its batch is in flight. The new run is refused while the old one shows signs of life, unless it takes over, and
// does not wait for its batch: a converted value is known by itself. It converts everything. The late batch of the old run changes
// nothing. An undo waits for it, and needs both logs.
func TestTakeOverInFlight(t *testing.T) {
	c := opaque(t, 40)
	other := c.in(copied(t, c.dir))
	var silent atomic.Bool
	release, ended := hold(t, c.s, 2, &silent, applying(c.dir, "--workers", "1", "--batch-timeout", "60s"))
	defer release()
	other.run(failure.ExitUsage, apply).says(t, "--take-over")
	other.run(failure.ExitOK, apply+" --take-over").lacks(t, "waiting")
	c.converted()
	silent.Store(true)
	release()
	if r := <-ended; r.code == failure.ExitOK {
		t.Errorf("the old run says that it is done: %s", r.stdout)
	}
	c.converted()
	other.run(failure.ExitFailed, "undo --write").says(t, "is missing")
	logs, err := filepath.Glob(c.file("*.undo"))
	check(t, err)
	for _, log := range logs {
		put(t, filepath.Join(other.dir, filepath.Base(log)), text(t, log))
	}
	other.ok("undo --write")
	c.unchanged()
}

// After undo, the plan can be applied again, also with a copy of the directory from before.
func TestUndoThenTheSame(t *testing.T) {
	c := opaque(t, 20)
	c.ok(apply)
	unmarked := c.in(copied(t, c.dir))
	c.ok("undo --write")
	c.unchanged()
	unmarked.ok(apply)
	c.converted()
	unmarked.ok("undo --write")
	c.unchanged()
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
