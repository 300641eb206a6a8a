package servertest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// edit replaces text in a file.
func edit(t testing.TB, path string, pairs ...string) {
	t.Helper()
	is := text(t, path)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(is, pairs[i]) {
			t.Fatalf("%s has no %q:\n%s", path, pairs[i], is)
		}
		is = strings.ReplaceAll(is, pairs[i], pairs[i+1])
	}
	put(t, path, is)
}

// left is the decision to leave the checksums of the shop.
var left = []string{"decision: unknown", "decision: leave"}

// mixed edits the plan of the shop like left, and so that only customers is copied: the other collections are changed
// in place, and a person accepts that the references to customers are half converted until the cutover.
var mixed = append([]string{"    into: \"orders_standard\"\n", "", "    into: \"invoices_standard\"\n", "",
	"    fields: [\"_id\", \"customer\"]\n", "    fields: [\"_id\", \"customer\"]\n    accepted: TRUE\n"}, left...)

// whole compares all collections of the database with want.
func whole(t testing.TB, db *mongo.Database, want map[string]map[string]bson.Raw) {
	t.Helper()
	for name, docs := range want {
		if t.Failed() {
			return
		}
		equal(t, all(t, db.Collection(name)), docs)
		if t.Failed() {
			t.Errorf("in the collection %s", name)
		}
	}
}

// mixedShop is a shop with its plan, which was edited like mixed.
type mixedShop struct {
	s            *mongotest.Server
	db           *mongo.Database
	file, dir    string                         // of the plan
	before, want map[string]map[string]bson.Raw // the collections before and after the conversion
}

func newMixedShop(t testing.TB, s *mongotest.Server, n int) mixedShop {
	t.Helper()
	m := mixedShop{s: s, db: connect(t, s), before: make(map[string]map[string]bson.Raw)}
	m.want = shop(t, m.db, n)
	for name := range m.want {
		if name != "customers_standard" {
			m.before[name] = all(t, m.db.Collection(name))
		}
	}
	m.file = planned(t, s)
	m.dir = filepath.Dir(m.file)
	edit(t, m.file, mixed...)
	return m
}

// A shop is planned, reviewed, converted, proven and restored.
func TestApply(t *testing.T) {
	s := mongotest.Start(t)
	m := newMixedShop(t, s, 30)
	command(t, s, "apply", filepath.Dir(planned(t, s)), "--write").want(t, failure.ExitUsage).says(t, `"files": the decision about "md5" (subtype 3) is unknown`)
	apply, undo := []string{"apply", m.dir, "--batch", "10"}, []string{"undo", m.dir, "--batch", "10"}
	command(t, s, append(apply, "--output", "json")...).want(t, failure.ExitOK)
	command(t, s, apply...).want(t, failure.ExitOK).prints(t, "dry run")
	whole(t, m.db, m.before)
	if all, err := filepath.Glob(filepath.Join(m.dir, "*.*")); err != nil || len(all) != 2 { // the plan, and its lock
		t.Errorf("a dry run has made files: %q, %v", all, err)
	}
	command(t, s, append(apply, "--write")...).want(t, failure.ExitOK)
	whole(t, m.db, m.want)
	// The same command again changes nothing.
	if r := command(t, s, append(apply, "--write")...).want(t, failure.ExitOK); strings.Count(r.stdout, "done") != 4 {
		t.Error(r.stdout)
	}
	whole(t, m.db, m.want)
	for _, output := range []string{"table", "json"} {
		command(t, s, "verify", m.dir, "--output", output).want(t, failure.ExitOK)
	}

	command(t, s, append(undo, "--output", "json")...).want(t, failure.ExitOK)
	whole(t, m.db, m.want)
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK).prints(t, "drop customers_standard")
	whole(t, m.db, m.before)
	command(t, s, "verify", m.dir).want(t, failure.ExitIncomplete)
	// The plan can be applied again, into a new copy, with new files.
	command(t, s, append(apply, "--write")...).want(t, failure.ExitUsage).says(t, `"customers_standard" has documents already`)
	whole(t, m.db, m.before)
	edit(t, m.file, `into: "customers_standard"`, `into: "other"`)
	command(t, s, append(apply, "--write", "--output", "json")...).want(t, failure.ExitOK)
	m.want["other"] = m.want["customers_standard"]
	whole(t, m.db, m.want)
	command(t, s, "verify", m.dir).want(t, failure.ExitOK)
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK)
	whole(t, m.db, m.before)
	// And so can a new one.
	file := planned(t, s)
	edit(t, file, mixed...)
	command(t, s, "apply", filepath.Dir(file), "--batch", "10", "--write", "--output", "json").want(t, failure.ExitOK)
	m.want["customers_standard_2"] = m.want["customers_standard"]
	whole(t, m.db, m.want)
}

var planKills = flag.Int("plan-kills", 0, "kill bsonids apply and undo at least this many times")

// A plan whose application, or whose undo, is killed at random moments and started again has the
// same result as one that is not, whatever forms its values have.
func TestKillPlan(t *testing.T) {
	kills := 0
	for round := 0; round < 2 || kills < *planKills && !t.Failed(); round++ {
		s := mongotest.Start(t)
		var m mixedShop
		if round%2 == 0 {
			m = newMixedShop(t, s, some(t, s, 40))
		} else {
			m = newClub(t, s, 40)
			clubDecided(t, m.file)
		}
		flags := []string{m.dir, "--write", "--batch", "5", "--batch-timeout", "1s"}
		applied := untilDone(t, s, append([]string{"apply", "--workers", "2"}, flags...)...)
		whole(t, m.db, m.want)
		command(t, s, "verify", m.dir).want(t, failure.ExitOK)
		undone := untilDone(t, s, append([]string{"undo"}, flags...)...)
		whole(t, m.db, m.before)
		kills += applied + undone
		t.Logf("round %d: killed %d times while it converted, and %d times while it restored", round, applied, undone)
	}
}

// confined runs the command in its own process, in which no file can have more than blocks blocks,
// as on a full disk.
func confined(t *testing.T, s target, blocks int, args ...string) result {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -f %d; trap "" XFSZ; exec "$@"`, blocks), "sh", exe}, args...)...)
	sh.Env = append(os.Environ(), asCommand+"=1", "MONGODB_URI="+s.URI())
	var out, errs bytes.Buffer
	sh.Stdout, sh.Stderr = &out, &errs
	err = sh.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{sh.ProcessState.ExitCode(), out.String(), errs.String()}
}

// goesOn applies the plan and undoes it. Each command is stopped by several limits first, and says with the exit
// code what it changed and how to go on. It does so without a limit. The result is how many were stopped between writes.
func (m mixedShop) goesOn(t *testing.T, code int, limits []int, limited func(n int, args ...string) result) (between int) {
	t.Helper()
	for _, step := range []struct {
		verb string
		want map[string]map[string]bson.Raw
	}{{"apply", m.want}, {"undo", m.before}} {
		args := []string{step.verb, m.dir, "--write", "--batch", "5", "--retry-for", "0s", "--batch-timeout", "3s"}
		for _, n := range limits {
			r := limited(n, args...)
			if r.code == failure.ExitOK {
				break
			}
			changed := strings.Contains(r.stderr, "changed: ")
			if changed {
				between++
			}
			nothing := strings.HasSuffix(strings.TrimSpace(r.stderr), "this command changed nothing")
			if r.code != code || !nothing && !(changed && strings.Contains(r.stderr, "to continue: ")) {
				t.Errorf("%s, limit %d: exit code %d, want %d: %s%s", step.verb, n, r.code, code, r.stdout, r.problems())
			}
		}
		command(t, m.s, args...).want(t, failure.ExitOK)
		whole(t, m.db, step.want)
		if step.verb == "apply" {
			command(t, m.s, "verify", m.dir).want(t, failure.ExitOK)
		}
	}
	return between
}

// A disk becomes full while a plan is applied, and while it is undone, at each of several moments.
func TestApplyOnFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "no limit on the size of files")
	}
	m := newMixedShop(t, mongotest.Start(t), 60)
	if m.goesOn(t, failure.ExitFailed, []int{0, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36}, func(blocks int, args ...string) result { return confined(t, m.s, blocks, args...) }) == 0 {
		t.Error("no disk was full between the first and the last write")
	}
}

// The privilege to write the record is lacking when a plan is applied and undone, or it is taken away
// meanwhile.
func TestApplyWithoutRecord(t *testing.T) {
	m := newMixedShop(t, mongotest.Start(t), 20)
	var left atomic.Int32 // how many commands that may still write the record
	p := startProxy(t, host(t, m.s), func(r request, pass func() []byte) []byte {
		name, _ := r.command.Lookup(r.name()).StringValueOK()
		if name == "bsonids.migrations" && (r.name() == "insert" || r.name() == "update") && left.Add(-1) < 0 {
			return r.fail(13, "not authorized to "+r.name())
		}
		return pass()
	})
	m.goesOn(t, failure.ExitDenied, []int{0, 1, 2, 3, 4, 6, 8, 12}, func(n int, args ...string) result {
		left.Store(int32(n))
		r := command(t, p, args...)
		if r.code != failure.ExitOK {
			r.says(t, "the user lacks a privilege")
		}
		if n == 0 && args[0] == "apply" {
			r.says(t, "conversions are recorded in bsonids.migrations", "find, insert and update on bsonids.migrations")
			whole(t, m.db, m.before)
		}
		return r
	})
}
