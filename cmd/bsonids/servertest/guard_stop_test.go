package servertest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// changes are the commands with which guard changes the collection and the record.
var changes = []string{"insert", "update", "collMod", "findAndModify", "delete"}

// isChange reports whether the command changes something. guard sends a collMod for a collection that
// does not exist, to find out whether the server knows the command.
func isChange(r request) bool {
	name, _ := r.command.Lookup("collMod").StringValueOK()
	return slices.Contains(changes, r.name()) && name != "bsonids.absent"
}

// guard and guard --remove are stopped before and after each of their changes, as by a kill: nothing
// that they do later reaches the server. The same command then does the rest, and --remove always
// restores the settings.
func TestGuardStopped(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own).SetValidationLevel("moderate"))
	var stop, seen atomic.Int64 // stop before the change with this number if it is even, and after it if it is odd
	var mu sync.Mutex
	var end context.CancelFunc
	p := startProxy(t, host(t, g.s), func(r request, pass func() []byte) []byte {
		if !isChange(r) {
			return pass()
		}
		n := seen.Add(1) - 1
		switch at := stop.Load(); {
		case at < 0 || n < at/2:
			return pass()
		case n == at/2 && at%2 == 1:
			pass()
		}
		mu.Lock()
		defer mu.Unlock()
		end()
		return nil
	})
	before := g.settings()
	run := func(at int64, args ...string) (code int, stderr string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mu.Lock()
		end = cancel
		mu.Unlock()
		stop.Store(at)
		seen.Store(0)
		args = append([]string{"guard", "--db", g.db.Name(), "--collection", "c", "--retry-for", "0s", "--uri", p.URI()}, args...)
		var out, errs bytes.Buffer
		return cli.Run(ctx, args, &out, &errs), errs.String()
	}
	set := []string{"--from", "javaLegacy", "--write", "--confirm-unordered"}
	remove := []string{"--remove", "--write"}
	whole := func(args []string) int64 {
		t.Helper()
		if code, errs := run(-1, args...); code != failure.ExitOK {
			t.Fatalf("exit code %d\n%s", code, errs)
		}
		return seen.Load()
	}
	nSet := whole(set)
	now := g.settings()
	nRemove := whole(remove)
	if nSet < 3 || nRemove < 3 || g.settings() != before {
		t.Fatalf("%d and %d changes, %v", nSet, nRemove, g.settings())
	}
	check := func(what string, args []string, at int64) {
		t.Helper()
		code, errs := run(at, args...)
		if code == failure.ExitOK {
			t.Errorf("%s, stopped at %d: exit code %d", what, at, code)
		}
		// The first change is the one of the marker of the record, after which nothing is to be undone.
		if at >= 1 && !strings.Contains(errs, "to undo: bsonids guard") {
			t.Errorf("%s, stopped at %d: no way back\n%s", what, at, errs)
		}
		if s := g.settings(); s != before && s != now {
			t.Errorf("%s, stopped at %d: %v", what, at, s)
		}
	}
	stops := 0
	for at := range 2 * nSet {
		check("set", set, at)
		whole(set)
		if g.settings() != now || g.recorded() != 1 {
			t.Fatalf("set again after a stop at %d: %v", at, g.settings())
		}
		whole(remove)
		check("set", set, at)
		// Stopped before anything is recorded, there is nothing to remove.
		if g.recorded() > 0 {
			whole(remove)
		}
		if g.settings() != before || g.recorded() != 0 {
			t.Fatalf("removed after a stop at %d: %v", at, g.settings())
		}
		stops += 2
	}
	for at := range 2 * nRemove {
		whole(set)
		check("remove", remove, at)
		if g.recorded() > 0 {
			whole(remove)
		}
		if g.settings() != before || g.recorded() != 0 {
			t.Fatalf("removed again after a stop at %d: %v", at, g.settings())
		}
		stops++
	}
	t.Logf("%d stops", stops)
}

// Several commands at once leave a guard that is recorded, or none.
func TestGuardAtOnce(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own))
	before := g.settings()
	for range 5 {
		var running sync.WaitGroup
		for i := range 4 {
			args := []string{"--write"}
			if i == 3 {
				args = []string{"--remove", "--write"}
			}
			running.Go(func() { g.run(args...) })
		}
		running.Wait()
		if s := g.settings(); (s == before) != (g.recorded() == 0) {
			t.Fatalf("%d guards are recorded, and the settings are %v", g.recorded(), s)
		}
	}
	g.run("--remove", "--write") // if a guard is left, or a removal that another command disturbed
	g.run("--write").want(t, failure.ExitOK)
	g.run("--remove", "--write").want(t, failure.ExitOK)
	if g.settings() != before {
		t.Errorf("%v", g.settings())
	}
}

// A user without a privilege is told which one.
func TestGuardDenied(t *testing.T) {
	g := startGuarded(t)
	var denied atomic.Pointer[string]
	p := startProxy(t, host(t, g.s), func(r request, pass func() []byte) []byte {
		if r.name() == *denied.Load() {
			return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(13)}, {Key: "codeName", Value: "Unauthorized"}, {Key: "errmsg", Value: "not authorized on d to execute command { x: 1 }"}})
		}
		return pass()
	})
	before := g.settings()
	for _, name := range []string{"collMod", "insert", "find", "listCollections"} {
		denied.Store(&name)
		r := command(t, p, "guard", "--db", g.db.Name(), "--collection", "c", "--from", "javaLegacy", "--write", "--confirm-unordered").want(t, failure.ExitDenied)
		if !strings.Contains(r.stderr, "needs collMod on the collection") || g.settings() != before {
			t.Errorf("%s: %s", name, r.stderr)
		}
		if g.recorded() > 0 { // before the change that was denied
			g.run("--remove", "--write").want(t, failure.ExitOK)
		}
	}
	// The validator can be printed without the privilege to set it.
	name := "collMod"
	denied.Store(&name)
	command(t, p, "guard", "--db", g.db.Name(), "--collection", "c", "--from", "javaLegacy").want(t, failure.ExitOK)
}
