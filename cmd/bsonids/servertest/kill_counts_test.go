package servertest

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// killedAt runs the command in its own process, and kills it when the server has carried out the n-th
// batch of writes, before the answer.
func killedAt(t *testing.T, s *mongotest.Server, n int64, args ...string) {
	t.Helper()
	var batches atomic.Int64
	kill := make(chan struct{})
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if (r.name() == "update" || r.name() == "insert") && r.documents == 10 && batches.Add(1) == n {
			close(kill)
			<-t.Context().Done()
		}
		return answer
	})
	cmd, out := start(t, p, args...)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-kill:
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
	case err := <-ended:
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
}

// The counts of conversions that were killed are those of all their runs.
func TestKillPlanCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		to      string
		changes []func(*plan.Plan)
	}{"to standard": {"standard", nil}, "same subtype": {"csharpLegacy", nil}, "copies": {"standard", []func(*plan.Plan){intoNew("a", "b")}}} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			for _, name := range []string{"a", "b"} {
				seed(t, db.Collection(name), 100, uuidrep.JavaLegacy, uuidrep.Standard)
			}
			args := []string{"apply", prepared(t, s, tt.to, tt.changes...), "--batch", "10", "--collections-at-once", "1", "--write"}
			killedAt(t, s, 3, args...)
			killedAt(t, s, 9, args...)
			for range 2 {
				r := command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK)
				var report struct {
					Steps []struct{ Values, Documents int }
				}
				if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
					t.Fatal(err)
				}
				for _, st := range report.Steps {
					if st.Documents != 100 || st.Values != 300 {
						t.Errorf("%+v", report.Steps)
					}
				}
			}
		})
	}
}
