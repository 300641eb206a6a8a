//go:build unix

package servertest

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// A process is stopped after it has checked the record and before it writes. Another process takes
// over, finishes and is undone. When the first process continues, it writes nothing more.
func TestTakeOverStopped(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := opaque(t, db.Collection("c"), 60)
	before := all(t, db.Collection("c"))
	dir := inOrder(t, s)
	// The answer to the check of the record is held until the process is stopped. The process finds
	// it when it continues, and would then write.
	asked, stopped := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	looks := 0
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		name, _ := r.command.Lookup("find").StringValueOK()
		filter, _ := r.command.Lookup("filter", "_id").StringValueOK()
		if name != record.Name || !strings.HasPrefix(filter, "c/") {
			return pass()
		}
		answer := pass()
		mu.Lock()
		looks++
		hold := looks == 3
		mu.Unlock()
		if hold {
			close(asked)
			<-stopped
		}
		return answer
	})
	cmd, out := start(t, p, applying(dir, "--workers", "1", "--batch-timeout", "2s")...)
	<-asked
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	close(stopped)
	other := copied(t, dir)
	command(t, s, applying(other, "--take-over")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), want)
	command(t, s, "undo", other, "--write", "--batch", "10").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), before)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the stopped run says that it is done: %s", out)
	}
	equal(t, all(t, db.Collection("c")), before)
}
