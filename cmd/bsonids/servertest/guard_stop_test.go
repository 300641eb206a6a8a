package servertest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// apply, undo and release are stopped before and after each of their changes, as by a kill: nothing that
// they do later reaches the server. The same command then does the rest, and undo and release always
// restore the settings.
func TestGuardStopped(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own).SetValidationLevel("moderate"))
	var stop, seen atomic.Int64 // stop before the change with this number if it is even, and after it if it is odd
	var dead atomic.Bool
	p := startProxy(t, host(t, g.s), func(r request, pass func() []byte) []byte {
		if dead.Load() && !r.greets() {
			return nil
		}
		name, _ := r.command.Lookup("collMod").StringValueOK()
		if !slices.Contains([]string{"insert", "update", "collMod", "findAndModify", "delete"}, r.name()) || name == "bsonids.absent" {
			return pass() // changes nothing; the last finds out whether the server knows the command
		}
		n := seen.Add(1) - 1
		at := stop.Load()
		if at < 0 || n < at/2 {
			return pass()
		}
		dead.Store(true)
		if at%2 == 1 {
			pass()
		}
		return nil
	})
	before, docs := g.settings(), all(t, g.coll)
	run := func(at int64, args ...string) result {
		t.Helper()
		stop.Store(at)
		seen.Store(0)
		dead.Store(false)
		args = append(args, "--write", "--retry-for", "0s")
		if args[0] != "release" {
			args = append(args, "--batch-timeout", "1s")
		}
		return command(t, p, args...)
	}
	whole := func(args ...string) int64 {
		t.Helper()
		run(-1, args...).want(t, failure.ExitOK)
		return seen.Load()
	}
	asBefore := func(what string, at int64) {
		t.Helper()
		if g.settings() != before || g.recorded() != 0 {
			t.Fatalf("%s after a stop at %d: %v, %d guards", what, at, g.settings(), g.recorded())
		}
	}
	release := []string{"release", "--db", g.db.Name(), "--guards", "c"}
	dir := g.plan("strict")
	nApply := whole("apply", dir)
	strict := g.settings()
	nRelease := whole(release...)
	asBefore("release", -1)
	nUndo := whole("undo", dir)
	equal(t, all(t, g.coll), docs)
	if nApply < 8 || nRelease < 3 || nUndo < 4 || strict[1] != "strict" {
		t.Fatalf("%d, %d and %d changes, %v", nApply, nRelease, nUndo, strict)
	}
	step := int64(1)
	if testing.Short() {
		step = 5
	}
	stops := 0
	for at := int64(0); at < 2*nApply; at += step {
		stops++
		dir := g.plan("strict")
		if r := run(at, "apply", dir); r.code == failure.ExitOK {
			t.Errorf("apply, stopped at %d: %s", at, r.stderr)
		}
		switch at % 3 {
		case 0: // go on
			whole("apply", dir)
			if g.settings() != strict || g.recorded() != 1 {
				t.Fatalf("applied after a stop at %d: %v", at, g.settings())
			}
			run(at%(2*nUndo), "undo", dir)
			whole("undo", dir)
		case 1: // let the guard go without the directory
			if g.recorded() > 0 {
				run(at%(2*nRelease), release...)
				if g.recorded() > 0 {
					whole(release...)
				}
			}
			asBefore("release", at)
			fallthrough
		default: // undo what was done, if anything was
			if r := run(-1, "undo", dir); r.code != failure.ExitOK {
				r.says(t, "no plan was applied in it")
			}
		}
		asBefore("undo", at)
		equal(t, all(t, g.coll), docs)
	}
	t.Logf("%d stops", stops)
}

// Several commands at once leave a guard that is recorded, or none.
func TestGuardAtOnce(t *testing.T) {
	g := startGuarded(t, options.CreateCollection().SetValidator(own))
	before := g.settings()
	dir := g.plan("moderate")
	for range 5 {
		var running sync.WaitGroup
		running.Go(func() { g.apply(dir, "--write") })
		for range 2 {
			running.Go(func() { g.release("--write") })
		}
		running.Wait()
		if s := g.settings(); (s == before) != (g.recorded() == 0) {
			t.Fatalf("%d guards are recorded, and the settings are %v", g.recorded(), s)
		}
	}
	g.release("--write") // if a guard is left, or a removal that another command disturbed
	g.apply(dir, "--write").want(t, failure.ExitOK)
	g.release("--write").want(t, failure.ExitOK)
	g.is(before, 0)
}

// A user without a privilege is told which one, before anything is converted. The validator can be printed
// without it.
func TestGuardDenied(t *testing.T) {
	g := startGuarded(t)
	dir, before, docs := g.plan("moderate"), g.settings(), all(t, g.coll)
	p := startProxy(t, host(t, g.s), func(r request, pass func() []byte) []byte {
		if r.name() == "collMod" {
			return r.fail(13, "not authorized on d to execute command { x: 1 }")
		}
		return pass()
	})
	command(t, p, "apply", dir).want(t, failure.ExitOK)
	command(t, p, "apply", dir, "--write").want(t, failure.ExitDenied).says(t, "needs collMod on the collection", "to undo: bsonids undo")
	if g.settings() != before {
		t.Error(g.settings())
	}
	equal(t, all(t, g.coll), docs)
	command(t, g.s, "undo", dir, "--write").want(t, failure.ExitOK)
	g.wantLevel("strict", 0)
}
