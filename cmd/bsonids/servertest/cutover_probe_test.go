package servertest

import (
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// A cutover that is killed while it asks with a collection of its own whether the server keeps UUIDs. The next
// one leaves no other collections than the old and the new one.
func TestCutoverProbeKilled(t *testing.T) {
	for _, tt := range []struct {
		command string
		after   bool
	}{{"create", true}, {"renameCollection", true}, {"drop", false}} {
		t.Run(tt.command, func(t *testing.T) {
			c := startCut(t, 5, "a")
			killed, _ := c.killed(t, func(r request) bool {
				name, ok := r.command.Lookup(tt.command).StringValueOK()
				return ok && strings.Contains(name, "bsonids.probe.")
			}, tt.after, c.line("cutover", "--write")...)
			if !killed {
				t.Skip("this server reports no UUIDs of collections, or keeps them: nothing is asked")
			}
			if got := c.collections(); !strings.Contains(got, "bsonids.probe.") {
				t.Fatalf("it was killed at another moment: %s", got)
			}
			c.cutover(c.s, failure.ExitOK, "--write")
			if got := c.collections(); got != "a a_before_cutover" {
				t.Error(got)
			}
		})
	}
}
