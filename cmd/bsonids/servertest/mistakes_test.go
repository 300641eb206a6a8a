package servertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	mistakes     = flag.Int("mistakes", 0, "how many collections TestMistakes makes mistakes with; 100 if 0, and 40 in a short run")
	mistakesSeed = flag.Uint64("seed", 19, "seed of TestMistakes")
	oneMistake   = flag.Int("mistake", -1, "make only the mistakes with this collection")
)

// TestMistakes makes random mistakes with small collections, and compares every value with what it
// should be. A value is as it was, or right, or it is in a wrong order: then it fits the order of the
// decision by variant and version, in a field without proof of its order, or the user trusted the field. The
// number of the values that fit must be what chance explains. A plan that is applied, as apply says,
// has converted every value or listed it, and an undo that says so has put back every value.
func TestMistakes(t *testing.T) {
	n := *mistakes
	if n == 0 {
		if n = 100; testing.Short() {
			n = 40
		}
	}
	sum := &tested{kinds: make(tallies), results: make(tallies), values: make(tallies)}
	todo := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		s := mongotest.Start(t)
		db := connect(t, s)
		workers.Go(func() {
			for i := range todo {
				t.Run(fmt.Sprint(i), func(t *testing.T) { newWorld(t, s, db, *mistakesSeed, uint64(i), sum).live() })
			}
		})
	}
	for i := range n {
		if *oneMistake < 0 || i == *oneMistake {
			todo <- i
		}
	}
	close(todo)
	workers.Wait()
	from, to := sum.interval()
	t.Logf("%d collections, seed %d: %d conversions began, %d finished\nmistakes:%v\ncommands:%v\nvalues:%v", n, *mistakesSeed, sum.conversions, sum.finished, sum.kinds, sum.results, sum.values)
	t.Logf("values in another order without proof of it, in finished conversions: %.0f converted; expected %.1f, 99.9 %% interval %.1f to %.1f", sum.wrong, sum.expected, from, to)
	if sum.wrong < from || sum.wrong > to {
		t.Error("the number is outside the interval")
	}
}

// live makes the mistakes.
func (w *world) live() {
	for range 2 + w.r.IntN(4) {
		if w.step(); w.t.Failed() {
			return
		}
	}
	// The way back: every directory that is whole, the last one first.
	for _, dir := range slices.Backward(w.dirs) {
		if !w.damaged[dir] {
			w.observe([]ran{w.run(ran{undo: dir}, w.undoArgs(dir), nil)})
		}
	}
}

// apply applies a plan with a fault.
func (w *world) apply(o wish) {
	w.begins(o)
	c := w.run(ran{wish: o}, w.args(o), w.fault())
	w.observe([]ran{c})
	if c.code == failure.ExitUsage && !c.killed && o.was != "" { // the user puts the edit back
		put(w.t, filepath.Join(o.dir, plan.PlanFile), o.was)
	}
}

// begins notes that a plan is applied.
func (w *world) begins(o wish) {
	for _, field := range o.trust {
		w.vouched[field] = true
	}
	w.sum.mu.Lock()
	w.sum.conversions++
	w.sum.mu.Unlock()
}

// run runs a command with a fault, or without one.
func (w *world) run(c ran, args []string, f *fault) ran {
	if c.undo != "-" {
		args = append(args, "--retry-for", []string{"0s", "0s", "0s", "1s"}[w.r.IntN(4)])
	}
	switch {
	case f == nil:
		c.result = w.command(w.t.Context(), w.s, args)
	case f.process:
		c.result, c.killed = w.process(args, f), true
	default:
		c.result, c.killed = f.command(w, args[1], args)
	}
	how := fmt.Sprint("exit code ", c.code)
	if c.killed {
		how = "killed"
	}
	w.sum.count(w.sum.results, args[0]+": "+how)
	w.note("%+v %q: %d %s %s", f, args, c.code, c.stderr, c.stdout)
	w.checkCode(c, f)
	return c
}

// checkCode checks that a command without a fault does not fail. It may fail if a file is damaged, or if
// the new collection has documents of another run.
func (w *world) checkCode(c ran, f *fault) {
	if c.killed || f != nil && (f.cut || f.cancel > 0) {
		return
	}
	switch c.code {
	case failure.ExitOK, failure.ExitUsage, failure.ExitIncomplete, failure.ExitUnreachable:
	case failure.ExitFailed:
		if c.into == "" && len(w.damaged) == 0 && !strings.Contains(c.stderr, "is missing: it is that of") { // another copy of the directory has it
			w.fail("exit code %d without a fault", c.code)
		}
	default:
		w.fail("exit code %d", c.code)
	}
}

func (w *world) command(ctx context.Context, s target, args []string) result {
	var out, errs bytes.Buffer
	code := cli.Run(ctx, slices.Concat(args, []string{"--retry-for", "0s", "--uri", s.URI()}), &out, &errs) // a cut connection stays cut
	return result{code, out.String(), errs.String()}
}

// process runs the command in its own process and kills it.
func (w *world) process(args []string, f *fault) result {
	cmd, out := start(w.t, w.s, args...)
	timer := time.AfterFunc(f.after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), "", out.String()}
}

// atOnce starts several commands at the same time.
func (w *world) atOnce() {
	n := 2 + w.r.IntN(2)
	w.mistake("twice at once")
	step, args := make([]ran, n), make([][]string, n)
	for i := range step {
		step[i].wish = w.wish()
	}
	for i := range step {
		step[i].wish = w.wishOf(step[i].dir) // as the last of them has edited it
		w.begins(step[i].wish)
		args[i] = w.args(step[i].wish)
	}
	if w.r.IntN(3) == 0 {
		dir := w.dirs[w.r.IntN(len(w.dirs))]
		step[0], args[0] = ran{undo: dir}, w.undoArgs(dir)
	}
	var group sync.WaitGroup
	for i := range step {
		group.Go(func() { step[i].result = w.command(w.t.Context(), w.s, args[i]) })
	}
	group.Wait()
	for i, c := range step {
		w.note("at once: %q: %d %s %s", args[i], c.code, c.stderr, c.stdout)
		w.sum.count(w.sum.results, fmt.Sprintf("%s, at once: exit code %d", args[i][0], c.code))
		if c.code != failure.ExitFailed { // another run may have taken over
			w.checkCode(c, nil)
		}
	}
	w.observe(step)
}

func (w *world) undo() {
	w.mistake("undo in between")
	dir := w.dirs[w.r.IntN(len(w.dirs))]
	w.observe([]ran{w.run(ran{undo: dir}, w.undoArgs(dir), w.fault())})
}

// trustLater adds trust to a field of a plan that was applied, perhaps.
func (w *world) trustLater() {
	field, dir := w.shapes[w.r.IntN(len(w.shapes))].name, w.dirs[w.r.IntN(len(w.dirs))]
	w.mistake("trust added later")
	w.change(dir, trusted(field, strings.Replace(field, ".", "[].", 1)))
	w.apply(w.wishOf(dir))
}

// verify checks that a proof is not given for something that does not hold.
func (w *world) verify() {
	dir := w.dirs[w.r.IntN(len(w.dirs))]
	state, err := plan.Look(dir)
	c := w.run(ran{undo: "-"}, []string{"verify", dir, "--output", "json"}, nil)
	if c.code != failure.ExitOK || err != nil {
		return
	}
	listed := w.listed(dir)
	for _, st := range state.Steps() {
		for _, p := range st.Pairs {
			from, err := uuidrep.Parse(p.From)
			if err != nil || st.Collection != w.coll.Name() || st.Into != "" {
				continue
			}
			for _, v := range w.values {
				u, ok := v.now.read(from)
				if ok && slices.Contains(p.Fields, v.field) && asStored(u, uuidrep.Standard) != v.now && len(v.before) == 0 && !listed[w.line(v)] && !w.damaged[dir] {
					w.fail("verify calls it proven, and %s of document %v is not converted and not listed", v.path, w.ids[v.doc])
				}
			}
		}
	}
}
