package servertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// start runs the command in its own process.
func start(t *testing.T, s target, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return startLogged(t, s, &out, args...), &out
}

// startLogged is start with a writer for the output and the log.
func startLogged(t *testing.T, s target, log io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "MONGODB_URI="+s.URI())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// untilDone runs the command repeatedly, and kills it at random moments, until it ends by itself.
// The moments become later and later: a conversion continues from where it was killed, but the
// proof at its end starts again with every run, and its duration depends on the server. After a
// hundred kills, or ten in a short run, the command is not killed again.
func untilDone(t *testing.T, s target, args ...string) (kills int) {
	t.Helper()
	most := 100
	if testing.Short() {
		most = 10
	}
	kills, err := untilEnd(t, s, most, args...)
	if err != nil {
		t.Fatal(err)
	}
	return kills
}

// untilEnd is untilDone for several goroutines of a test, with the maximum number of kills.
func untilEnd(t *testing.T, s target, most int, args ...string) (kills int, err error) {
	t.Helper()
	// The time that a process takes to start on this machine.
	begin := time.Now()
	cmd, out := start(t, s, "show", uuid.NewString())
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	begun := time.Since(begin)
	for ; kills < most; kills++ {
		cmd, out := start(t, s, args...)
		within := 300*time.Millisecond + time.Duration(kills)*20*time.Millisecond
		timer := time.AfterFunc(begun+rand.N(within), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			return kills, nil
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			return kills, fmt.Errorf("%w: %s", err, out)
		}
	}
	cmd, out = start(t, s, args...)
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return kills, fmt.Errorf("left alone after %d kills: %w: %s", kills, err, out)
	}
	return kills, nil
}

// Another program writes to the collection all the time, in the old representation and to other
// fields, and the conversion loses nothing that it wrote.
func TestKillWithWriter(t *testing.T) {
	s := mongotest.Start(t)
	n := some(t, s, 150)
	c := newScene(t, n, uuidrep.JavaLegacy)
	var server target = c.s
	if !s.Has(t, mongotest.AtomicUpdates) {
		// This server reads a document, changes it and writes it back without a lock, so that two
		// updates at the same time lose one of them. Here the proxy serializes them.
		var updates sync.Mutex
		server = startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" {
				updates.Lock()
				defer updates.Unlock()
			}
			return pass()
		})
	}
	coll := dial(t, server.URI()).Database(c.db.Name()).Collection("c")
	want := make(map[int]uuid.UUID)
	counts := make(map[int]int32)
	for _, doc := range c.want {
		_, data := doc.Lookup("id").Binary()
		want[int(doc.Lookup("_id").Int32())] = uuid.UUID(data)
	}
	write := func(i int) {
		u := uuid.New()
		_, err := coll.UpdateOne(context.Background(), bson.D{{Key: "_id", Value: int32(i)}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: in(u, uuidrep.JavaLegacy)}}}, {Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}})
		if err != nil {
			t.Error(err)
			return
		}
		want[i] = u
		counts[i]++
	}
	var stop atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for !stop.Load() {
			write(rand.IntN(n))
		}
	})
	most := 100
	if testing.Short() {
		most = 10
	}
	kills, err := untilEnd(t, server, most, c.args("apply --write --workers 2 --batch 5")...)
	stop.Store(true)
	writer.Wait()
	var exit *exec.ExitError // the last pass has found old values again
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != failure.ExitIncomplete) {
		t.Fatal(err)
	}
	t.Logf("killed %d times, %d documents written to", kills, len(counts))
	// The same command converts what was written in the old representation behind it.
	c.ok("apply --write --workers 2 --batch 5")
	got := all(t, coll)
	if len(got) != n {
		t.Errorf("%d documents, want %d", len(got), n)
	}
	for _, doc := range got {
		i := int(doc.Lookup("_id").Int32())
		if subtype, data := doc.Lookup("id").Binary(); subtype != bson.TypeBinaryUUID || uuid.UUID(data) != want[i] {
			t.Errorf("%d: subtype %d, %x, want %v", i, subtype, data, want[i])
		}
		if got := doc.Lookup("n").Int32(); got != counts[i] {
			t.Errorf("%d: counted to %d, want %d", i, got, counts[i])
		}
	}
}

// An interrupt ends the command in an orderly way, with the state saved: while it reads documents,
// and when it has read all and they wait to be written.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "Windows has no interrupt for one process")
	}
	for _, n := range []int{12, 100} {
		for name, changes := range ways {
			t.Run(fmt.Sprintf("%d documents, %s", n, name), func(t *testing.T) {
				c := newScene(t, n, uuidrep.JavaLegacy, changes...)
				setRate(t, c.dir, "10")
				cmd, out := start(t, c.s, c.args("apply --write --batch 5 --workers 1")...)
				for !c.begun() {
					runtime.Gosched()
				}
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
				var exit *exec.ExitError
				if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != failure.ExitInterrupted || !strings.Contains(out.String(), "to continue: bsonids apply") {
					t.Fatalf("%v: %s", err, out)
				}
				c.run(failure.ExitOK, "status").prints(t, "0 of 1 conversions done", "stopped: interrupt signal received")
				setRate(t, c.dir, "0")
				c.ok("apply --write --batch 5 --workers 1")
				c.run(failure.ExitOK, "status").prints(t, "1 of 1 conversions done")
				c.converted()
			})
		}
	}
}

// begun reports whether some documents are written.
func (c *scene) begun() bool {
	if c.result != nil && c.result != c.coll {
		return len(all(c, c.result)) > 0
	}
	logs, err := filepath.Glob(c.file("*.undo"))
	return err == nil && len(logs) > 0
}

var stateKills = flag.Int("state-kills", 20, "kill each verb that writes at least this many times when one of its files has changed; 4 at most in a short run")

// killedAtChange runs the command in its own process, and kills it when the files in dir have changed for
// the n-th time: undo logs and skip lists. It reports whether it did: the command may have ended before.
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

// Every verb that writes is killed when its undo log or its skip list has changed: first at the
// first change, then at the second change of the run that continues, and so on. It ends, and nothing is
// lost or converted twice.
func TestKillStates(t *testing.T) {
	const apply, undo = "apply --write --batch 5 --batch-timeout 1s", "undo --write --batch 5 --batch-timeout 1s"
	for name, tt := range map[string]struct {
		line  string
		ready func(c *scene) // before the kills; nil for nothing
	}{
		"apply": {apply, nil},
		"apply with filters": {apply, func(c *scene) {
			filtered(t, c.s, c.file("plan.yaml"), []string{`{"_id": {"$lt": 40}}`, `{"_id": {"$gte": 20}}`}, make([]string, 6))
		}},
		"apply into a collection": {apply, func(c *scene) { changePlan(c, c.dir, intoNew("c")) }},
		"apply of an edit": {apply, func(c *scene) { // a field was left, and is decided after the others were converted
			setDecision(c, c.file("plan.yaml"), "id", "leave")
			c.ok("apply --write --batch 5")
			setDecision(c, c.file("plan.yaml"), "id", "convert from javaLegacy")
		}},
		"undo of a plan": {undo, func(c *scene) { c.ok(apply) }},
	} {
		t.Run(name, func(t *testing.T) {
			kills, most := 0, *stateKills
			if testing.Short() {
				most = min(most, 4)
			}
			for rounds := 0; kills < most; rounds++ {
				c := newScene(t, 60, uuidrep.JavaLegacy)
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

// The counts of conversions that were killed are those that the record has of all their runs: a run that was killed may have
// changed more.
func TestKillPlanCounts(t *testing.T) {
	for name, w := range works {
		t.Run(name, func(t *testing.T) {
			s, db := started(t)
			for _, name := range []string{"a", "c"} {
				seed(t, db.Collection(name), 100, w.from)
			}
			args := []string{"apply", prepared(t, s, w.changes...), "--batch", "10", "--collections-at-once", "1", "--write"}
			killedAt(t, s, 3, args...)
			killedAt(t, s, 9, args...)
			for range 2 {
				var report struct {
					Steps []struct{ Values, Documents int }
				}
				decode(t, command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK).stdout, &report)
				for _, st := range report.Steps {
					if st.Documents < 60 || st.Documents > 100 || st.Values != 3*st.Documents {
						t.Errorf("%+v", report.Steps)
					}
				}
			}
		})
	}
}
