package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
)

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
// code what it changed and how to go on. It does so without a limit.
func (m mixedShop) goesOn(t *testing.T, code int, limits []int, limited func(n int, args ...string) result) {
	t.Helper()
	between := 0
	for _, step := range []struct {
		verb string
		want map[string]map[string]bson.Raw
	}{{"apply", m.want}, {"undo", m.before}} {
		args := []string{step.verb, m.dir, "--write", "--batch", "5", "--retry-for", "0s", "--batch-timeout", "1s"}
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
		if between == 0 {
			t.Error("no limit was between the first and the last write")
		}
		command(t, m.s, args...).want(t, failure.ExitOK)
		whole(t, m.db, step.want)
		if step.verb == "apply" {
			command(t, m.s, "verify", m.dir).want(t, failure.ExitOK)
		}
	}
}

// A disk becomes full while a plan is applied, and while it is undone, at each of several moments.
func TestApplyOnFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "no limit on the size of files")
	}
	m := newMixedShop(t, mongotest.Start(t), 60)
	m.goesOn(t, failure.ExitFailed, []int{0, 2, 8, 12, 20}, func(blocks int, args ...string) result { return confined(t, m.s, blocks, args...) })
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
			r.says(t, "ask for a role with find, insert and update on it")
			whole(t, m.db, m.before)
		}
		return r
	})
}
