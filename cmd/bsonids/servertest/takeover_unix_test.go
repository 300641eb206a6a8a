//go:build unix

package servertest

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// A process is stopped after it has checked the record and before it writes. Another process takes
// over, finishes and is undone. When the first process continues, it writes nothing more.
func TestTakeOverStopped(t *testing.T) {
	c := opaque(t, 60)
	// The answer to the check of the record is held until the process is stopped. The process finds
	// it when it continues, and would then write.
	asked, stopped := make(chan struct{}), make(chan struct{})
	var looks atomic.Int32
	p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		filter, _ := r.command.Lookup("filter", "_id", "$in", "0").StringValueOK()
		answer := pass()
		if asks("find", record.Name)(r) && strings.HasPrefix(filter, "c/") && looks.Add(1) == 1 {
			close(asked)
			<-stopped
		}
		return answer
	})
	cmd, out := start(t, p, applying(c.dir, "--workers", "1", "--batch-timeout", "2s")...)
	<-asked
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	close(stopped)
	other := c.in(copied(t, c.dir))
	other.ok(apply + " --take-over")
	c.converted()
	other.ok("undo --write")
	c.unchanged()
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the stopped run says that it is done: %s", out)
	}
	c.unchanged()
}
