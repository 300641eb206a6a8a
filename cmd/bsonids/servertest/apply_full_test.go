package servertest

import (
	"bytes"
	"errors"
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

// beforehand returns the collections of a shop as they are, without the copy that a conversion makes.
func beforehand(t testing.TB, db *mongo.Database, want map[string]map[string]bson.Raw) map[string]map[string]bson.Raw {
	t.Helper()
	out := make(map[string]map[string]bson.Raw)
	for name := range want {
		if name != "customers_standard" {
			out[name] = all(t, db.Collection(name))
		}
	}
	return out
}

// goesOn checks the last lines of a command that failed: what it changed, and how to continue.
func goesOn(t *testing.T, what string, r result, code int) {
	t.Helper()
	nothing := strings.HasSuffix(strings.TrimSpace(r.stderr), "this command changed nothing")
	if r.code != code || !nothing && (!strings.Contains(r.stderr, "changed: ") || !strings.Contains(r.stderr, "to continue: ")) {
		t.Errorf("%s: exit code %d, want %d: %s%s", what, r.code, code, r.stdout, r.problems())
	}
}

// A disk becomes full while a plan is applied, and while it is undone, at each of several moments.
// The command says what it changed and how to go on, and does so when there is space.
func TestApplyOnFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "no limit on the size of files")
	}
	s, db := started(t)
	want := shop(t, db, 60)
	before := beforehand(t, db, want)
	file := planned(t, s)
	edit(t, file, mixed...)
	dir := filepath.Dir(file)
	flags := []string{dir, "--write", "--batch", "5", "--retry-for", "0s", "--batch-timeout", "1s"}
	apply, undo := append([]string{"apply"}, flags...), append([]string{"undo"}, flags...)
	said := 0
	for _, blocks := range []int{0, 2, 8, 12, 20} {
		r := confined(t, s, blocks, apply...)
		if r.code == failure.ExitOK {
			break
		}
		goesOn(t, fmt.Sprintf("apply, %d blocks", blocks), r, failure.ExitFailed)
		if strings.Contains(r.stderr, "changed: ") {
			said++
		}
	}
	if said == 0 {
		t.Error("no disk was full between the first and the last write")
	}
	command(t, s, apply...).want(t, failure.ExitOK)
	whole(t, db, want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	for _, blocks := range []int{0, 8} {
		r := confined(t, s, blocks, undo...)
		if r.code == failure.ExitOK {
			break
		}
		goesOn(t, fmt.Sprintf("undo, %d blocks", blocks), r, failure.ExitFailed)
	}
	command(t, s, undo...).want(t, failure.ExitOK)
	whole(t, db, before)
}

// The privilege to write the record is lacking when a plan is applied and undone, or it is taken away
// meanwhile. The command says what it changed and how to go on, and does so with the privilege.
func TestApplyWithoutRecord(t *testing.T) {
	s, db := started(t)
	want := shop(t, db, 20)
	before := beforehand(t, db, want)
	var left atomic.Int32 // how many commands that may still write the record
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		name, _ := r.command.Lookup(r.name()).StringValueOK()
		if name == "bsonids.migrations" && (r.name() == "insert" || r.name() == "update") && left.Add(-1) < 0 {
			return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(13)}, {Key: "codeName", Value: "Unauthorized"}, {Key: "errmsg", Value: "not authorized to " + r.name()}})
		}
		return pass()
	})
	file := planned(t, s)
	edit(t, file, mixed...)
	dir := filepath.Dir(file)
	flags := []string{dir, "--write", "--batch", "5", "--batch-timeout", "1s"}
	for _, name := range []string{"apply", "undo"} {
		for _, n := range []int32{0, 1, 2, 4, 8} {
			left.Store(n)
			r := command(t, p, append([]string{name}, flags...)...)
			if r.code == failure.ExitOK {
				break
			}
			goesOn(t, fmt.Sprintf("%s, %d writes", name, n), r, failure.ExitDenied)
			if !strings.Contains(r.stderr, "the user lacks a privilege") {
				t.Errorf("%s, %d writes: %s", name, n, r.stderr)
			}
			if n == 0 && name == "apply" {
				whole(t, db, before)
				if !strings.Contains(r.stderr, "ask for a role with find, insert and update on it") {
					t.Error(r.stderr)
				}
			}
		}
		command(t, s, append([]string{name}, flags...)...).want(t, failure.ExitOK)
		if name == "apply" {
			whole(t, db, want)
		} else {
			whole(t, db, before)
		}
	}
}
