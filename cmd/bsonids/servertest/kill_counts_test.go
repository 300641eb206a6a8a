package servertest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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

// The counts of a conversion that was killed are those of all its runs.
func TestKillCounts(t *testing.T) {
	for name, extra := range map[string][]string{
		"to standard":  {"--to", "standard", "--undo-log", "undo"},
		"same subtype": {"--to", "csharpLegacy", "--undo-log", "undo"},
		"copy":         {"--to", "standard", "--into", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			dir := t.TempDir()
			const n = 100
			seed(t, db.Collection("c"), n, uuidrep.JavaLegacy, uuidrep.Standard)
			for i, e := range extra {
				if e == "undo" {
					extra[i] = filepath.Join(dir, "undo")
				}
			}
			args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--batch", "10",
				"--state", filepath.Join(dir, "state")}, extra...)
			killedAt(t, s, 3, args...)
			killedAt(t, s, 4, args...)
			type counts struct{ DocumentsChanged, DocumentsCopied, ValuesChanged, DocumentsChangedEarlier, DocumentsCopiedEarlier, ValuesChangedEarlier int }
			var earlier int
			for _, again := range []bool{false, true} {
				r := command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK)
				var report struct{ Result counts }
				if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
					t.Fatal(err)
				}
				c := report.Result
				earlier = c.DocumentsChangedEarlier + c.DocumentsCopiedEarlier
				if earlier == 0 || again != (earlier == n) {
					t.Errorf("again %v: %d documents by earlier runs", again, earlier)
				}
				if got := c.DocumentsChanged + c.DocumentsCopied + earlier; got != n || c.ValuesChanged+c.ValuesChangedEarlier != 3*n {
					t.Errorf("again %v: %+v; want %d documents and %d values in all runs", again, c, n, 3*n)
				}
			}
			if r := command(t, s, args...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "300 values in 100 documents in all runs") {
				t.Error(r.stdout)
			}
		})
	}
}

// The counts of a plan are those of all its runs, too.
func TestKillPlanCounts(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	for _, name := range []string{"a", "b"} {
		seed(t, db.Collection(name), 100, uuidrep.JavaLegacy, uuidrep.Standard)
	}
	args := []string{"apply", filepath.Dir(planned(t, s)), "--batch", "10", "--collections-at-once", "1", "--write"}
	killedAt(t, s, 13, args...)
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
}
