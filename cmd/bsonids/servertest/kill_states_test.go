package servertest

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

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
	type verb struct {
		to    uuidrep.Representation
		args  func(s *mongotest.Server, dir string) []string
		ready func(t *testing.T, s *mongotest.Server, dir string) // before the kills
		check func(t *testing.T, db *mongo.Database, before, want map[string]bson.Raw)
	}
	planOf := func(s *mongotest.Server, dir string) string {
		dir = filepath.Join(dir, "shop.d")
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			again(t, planned(t, s), dir)
		}
		return dir
	}
	applying := func(verb string) func(*mongotest.Server, string) []string {
		return func(s *mongotest.Server, dir string) []string {
			return []string{verb, planOf(s, dir), "--write", "--batch", "5", "--batch-timeout", "1s"}
		}
	}
	after := func(first func(*mongotest.Server, string) []string) func(*testing.T, *mongotest.Server, string) {
		return func(t *testing.T, s *mongotest.Server, dir string) {
			command(t, s, first(s, dir)...).want(t, failure.ExitOK)
		}
	}
	within := func(t *testing.T, s *mongotest.Server, dir string) {
		again(t, planned(t, s, "--to", "csharpLegacy"), filepath.Join(dir, "shop.d"))
	}
	converted := func(t *testing.T, db *mongo.Database, _, want map[string]bson.Raw) {
		equal(t, all(t, db.Collection("c")), want)
	}
	restored := func(t *testing.T, db *mongo.Database, before, _ map[string]bson.Raw) {
		equal(t, all(t, db.Collection("c")), before)
	}
	// One field was left, and is decided after the others were converted.
	edited := func(t *testing.T, s *mongotest.Server, dir string) {
		dir = planOf(s, dir)
		file := filepath.Join(dir, "plan.yaml")
		setDecision(t, file, "id", "leave")
		command(t, s, "apply", dir, "--write", "--batch", "5").want(t, failure.ExitOK)
		setDecision(t, file, "id", "convert from javaLegacy")
	}
	for name, v := range map[string]verb{
		"apply": {uuidrep.Standard, applying("apply"), func(_ *testing.T, s *mongotest.Server, dir string) { planOf(s, dir) }, converted},
		"apply with filters": {uuidrep.CSharpLegacy, applying("apply"), func(t *testing.T, s *mongotest.Server, dir string) {
			file := planned(t, s, "--to", "csharpLegacy")
			filtered(t, s, file, []string{`{"_id": {"$lt": 40}}`, `{"_id": {"$gte": 20}}`}, make([]string, 6))
			again(t, file, filepath.Join(dir, "shop.d"))
		}, converted},
		"apply that follows": {uuidrep.Standard, func(s *mongotest.Server, dir string) []string {
			return append(applying("apply")(s, dir), "--follow", "--until-caught-up")
		}, func(t *testing.T, s *mongotest.Server, dir string) {
			changePlan(t, planOf(s, dir), copiedInto("c", "new"))
		}, func(t *testing.T, db *mongo.Database, before, want map[string]bson.Raw) {
			equal(t, all(t, db.Collection("new")), want)
			equal(t, all(t, db.Collection("c")), before)
		}},
		"apply within a subtype": {uuidrep.CSharpLegacy, applying("apply"), within, converted},
		"undo within a subtype": {uuidrep.CSharpLegacy, applying("undo"), func(t *testing.T, s *mongotest.Server, dir string) {
			within(t, s, dir)
			command(t, s, applying("apply")(s, dir)...).want(t, failure.ExitOK)
		}, restored},
		"apply into a collection": {uuidrep.Standard, applying("apply"), func(t *testing.T, s *mongotest.Server, dir string) {
			copyAlso(t, filepath.Join(planOf(s, dir), "plan.yaml"), "c")
		}, func(t *testing.T, db *mongo.Database, before, want map[string]bson.Raw) {
			equal(t, all(t, db.Collection("c_standard")), want)
			equal(t, all(t, db.Collection("c")), before)
		}},
		"apply of an edit": {uuidrep.Standard, applying("apply"), edited, converted},
		"undo of a plan":   {uuidrep.Standard, applying("undo"), after(applying("apply")), restored},
	} {
		t.Run(name, func(t *testing.T) {
			kills, most := 0, *stateKills
			if testing.Short() {
				most = min(most, 4)
			}
			for rounds := 0; kills < most; rounds++ {
				s := mongotest.Start(t)
				if name == "apply that follows" {
					s.Require(t, mongotest.ChangeStreams)
				}
				db := connect(t, s)
				want := seed(t, db.Collection("c"), 60, uuidrep.JavaLegacy, v.to)
				before := all(t, db.Collection("c"))
				dir := t.TempDir()
				v.ready(t, s, dir)
				n := 1
				for ; killedAtChange(t, s, dir, n, v.args(s, dir)...); n++ {
					kills++
				}
				v.check(t, db, before, want)
				if t.Failed() || n == 1 {
					t.Fatalf("round %d: killed %d times", rounds, n-1)
				}
			}
			t.Logf("%s: killed %d times", name, kills)
		})
	}
}
