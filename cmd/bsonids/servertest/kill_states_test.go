package servertest

import (
	"flag"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fsnotify/fsnotify"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var stateKills = flag.Int("state-kills", 20, "kill each verb that writes at least this many times when one of its files has changed; 4 at most in a short run")

// killedAtChange runs the command in its own process, and kills it when the files in dir have changed for
// the n-th time: ledgers, undo logs and skip lists. It reports whether it did: the command may have ended before.
func killedAtChange(t *testing.T, s target, dir string, n int, args ...string) bool {
	t.Helper()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = watcher.Add(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := start(t, s, args...)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return false
		case err := <-watcher.Errors:
			t.Fatal(err)
		case event := <-watcher.Events:
			if !event.Has(fsnotify.Create) && !event.Has(fsnotify.Write) {
				continue
			}
			if n--; n == 0 {
				_ = cmd.Process.Kill()
				<-ended
				return true
			}
		}
	}
}

// Every verb that writes is killed when its ledger, its undo log or its skip list has changed: first at the
// first change, then at the second change of the run that continues, and so on. It ends, and nothing is
// lost or converted twice.
func TestKillStates(t *testing.T) {
	const apply, undo = "apply --write --batch 5 --batch-timeout 1s", "undo --write --batch 5 --batch-timeout 1s"
	for name, tt := range map[string]struct {
		to    uuidrep.Representation
		line  string
		ready func(c *scene) // before the kills; nil for nothing
	}{
		"apply": {uuidrep.Standard, apply, nil},
		"apply with filters": {uuidrep.CSharpLegacy, apply, func(c *scene) {
			filtered(t, c.s, c.file("plan.yaml"), []string{`{"_id": {"$lt": 40}}`, `{"_id": {"$gte": 20}}`}, make([]string, 6))
		}},
		"apply that follows": {uuidrep.Standard, apply + " --follow --until-caught-up", func(c *scene) {
			c.s.Require(c, mongotest.ChangeStreams)
			changePlan(c, c.dir, intoNew("c"))
		}},
		"apply within a subtype":  {uuidrep.CSharpLegacy, apply, nil},
		"undo within a subtype":   {uuidrep.CSharpLegacy, undo, func(c *scene) { c.ok(apply) }},
		"apply into a collection": {uuidrep.Standard, apply, func(c *scene) { changePlan(c, c.dir, intoNew("c")) }},
		"apply of an edit": {uuidrep.Standard, apply, func(c *scene) { // a field was left, and is decided after the others were converted
			setDecision(c, c.file("plan.yaml"), "id", "leave")
			c.ok("apply --write --batch 5")
			setDecision(c, c.file("plan.yaml"), "id", "convert from javaLegacy")
		}},
		"undo of a plan": {uuidrep.Standard, undo, func(c *scene) { c.ok(apply) }},
	} {
		t.Run(name, func(t *testing.T) {
			kills, most := 0, *stateKills
			if testing.Short() {
				most = min(most, 4)
			}
			for rounds := 0; kills < most; rounds++ {
				c := newScene(t, 60, uuidrep.JavaLegacy, tt.to)
				if tt.ready != nil {
					tt.ready(c)
				}
				n := 1
				for ; killedAtChange(t, c.s, c.dir, n, c.args(tt.line)...); n++ {
					kills++
				}
				if c.result = c.db.Collection("c_standard"); len(all(t, c.result)) == 0 {
					c.result = c.coll
				}
				if tt.line == undo {
					c.unchanged()
				} else {
					c.converted()
				}
				if t.Failed() || n == 1 {
					t.Fatalf("round %d: killed %d times", rounds, n-1)
				}
			}
			t.Logf("%s: killed %d times", name, kills)
		})
	}
}

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
	for name, w := range works {
		t.Run(name, func(t *testing.T) {
			s, db := started(t)
			for _, name := range []string{"a", "c"} {
				seed(t, db.Collection(name), 100, w.from, w.to)
			}
			args := []string{"apply", prepared(t, s, w.to.String(), w.changes...), "--batch", "10", "--collections-at-once", "1", "--write"}
			killedAt(t, s, 3, args...)
			killedAt(t, s, 9, args...)
			for range 2 {
				var report struct {
					Steps []struct{ Values, Documents int }
				}
				decode(t, command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK).stdout, &report)
				for _, st := range report.Steps {
					if st.Documents != 100 || st.Values != 300 {
						t.Errorf("%+v", report.Steps)
					}
				}
			}
		})
	}
}
