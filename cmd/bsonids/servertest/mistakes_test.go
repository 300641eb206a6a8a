package servertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	mistakes     = flag.Int("mistakes", 0, "how many collections TestMistakes makes mistakes with; 100 if 0, and 40 in a short run")
	mistakesSeed = flag.Uint64("seed", 19, "seed of TestMistakes")
	oneMistake   = flag.Int("mistake", -1, "make only the mistakes with this collection")
)

// TestMistakes makes random mistakes with small collections, and compares every value with what it
// should be. A value is as it was, or right, or it is in a wrong order: then it fits --from by
// variant and version, in a field without proof of its order, or the user vouched for it. The
// number of the values that fit must be what chance explains. A conversion that says that it is done
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
		w.step()
		if w.t.Failed() {
			return
		}
	}
	// The way back: every undo log that is whole, the last one first.
	logs, err := filepath.Glob(filepath.Join(w.dir, "*.undo"))
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(logs)
	for _, log := range slices.Backward(logs) {
		if !w.damaged[log] {
			w.observe([]ran{w.run(ran{undo: log}, w.undoArgs(log))})
		}
	}
}

// convert runs a conversion with a fault.
func (w *world) convert(o wish, f *fault) ran {
	for _, field := range o.trust {
		w.vouched[field] = true
	}
	w.sum.mu.Lock()
	w.sum.conversions++
	w.sum.mu.Unlock()
	return w.runWith(ran{wish: o}, o.args(w), f)
}

func (w *world) run(c ran, args []string) ran { return w.runWith(c, args, nil) }

func (w *world) runWith(c ran, args []string, f *fault) ran {
	if c.undo != "-" {
		args = append(args, "--retry-for", []string{"0s", "0s", "0s", "1s"}[w.r.IntN(4)])
	}
	switch {
	case f == nil:
		c.result = w.command(w.t.Context(), w.s, args)
	case f.process:
		c.result, c.killed = w.process(args, f), true
	default:
		c.result, c.killed = f.command(w, c.wish, args)
	}
	name := args[0]
	if c.killed {
		w.sum.count(w.sum.results, name+": killed")
	} else {
		w.sum.count(w.sum.results, fmt.Sprintf("%s: exit code %d", name, c.code))
	}
	w.note("%s %q: %d %s %s", f, args, c.code, c.stderr, c.stdout)
	w.checkCode(c, f)
	return c
}

// checkCode checks that a command without a fault does not fail. It may fail if a file is damaged, if
// the new collection has documents of another run, or if a slow server misses --batch-timeout.
func (w *world) checkCode(c ran, f *fault) {
	if c.killed || f != nil && (f.cut || f.cancel > 0) {
		return
	}
	switch c.code {
	case failure.ExitOK, failure.ExitUsage, failure.ExitIncomplete, failure.ExitUnreachable:
	case failure.ExitFailed:
		if c.into == "" && len(w.damaged) == 0 {
			w.fail("exit code %d without a fault", c.code)
		}
	default:
		w.fail("exit code %d", c.code)
	}
}

func (w *world) command(ctx context.Context, s target, args []string) result {
	var out, errs bytes.Buffer
	if args[0] == "convert" || args[0] == "undo" {
		args = append(args, "--retry-for", "0s") // a cut connection stays cut
	}
	code := cli.Run(ctx, append(args, "--uri", s.URI()), &out, &errs)
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
	step := make([]ran, n)
	wishes := make([]wish, n)
	for i := range wishes {
		wishes[i] = w.wish()
		if w.r.IntN(2) == 0 {
			wishes[i].files = w.newFiles()
		}
		for _, field := range wishes[i].trust {
			w.vouched[field] = true
		}
	}
	args := make([][]string, n)
	for i, o := range wishes {
		args[i] = o.args(w)
		step[i].wish = o
	}
	if logs := w.logs(); len(logs) > 0 && w.r.IntN(3) == 0 {
		log := logs[w.r.IntN(len(logs))]
		step[0], args[0] = ran{undo: log}, w.undoArgs(log)
	}
	var group sync.WaitGroup
	for i := range args {
		args[i] = append(args[i], "--retry-for", "0s")
	}
	for i := range step {
		group.Go(func() { step[i].result = w.command(w.t.Context(), w.s, args[i]) })
	}
	group.Wait()
	for i, c := range step {
		w.note("at once: %q: %d %s %s", args[i], c.code, c.stderr, c.stdout)
		w.sum.count(w.sum.results, fmt.Sprintf("%s, at once: exit code %d", args[i][0], c.code))
		if c.undo == "" {
			w.sum.mu.Lock()
			w.sum.conversions++
			w.sum.mu.Unlock()
		}
		if c.code != failure.ExitFailed { // another run may have taken over
			w.checkCode(c, nil)
		}
	}
	w.observe(step)
}

func (w *world) logs() []string {
	logs, err := filepath.Glob(filepath.Join(w.dir, "*.undo"))
	if err != nil {
		w.t.Fatal(err)
	}
	return logs
}

func (w *world) undo() {
	logs := w.logs()
	if len(logs) == 0 {
		return
	}
	w.mistake("undo in between")
	log := logs[w.r.IntN(len(logs))]
	w.observe([]ran{w.runWith(ran{undo: log}, w.undoArgs(log), w.fault())})
}

// retry converts what a list names.
func (w *world) retry() {
	lists, err := filepath.Glob(filepath.Join(w.dir, "*.skipped"))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(lists) == 0 {
		return
	}
	o := w.plan
	o.retry, o.into = lists[w.r.IntN(len(lists))], ""
	o.from = legacy[w.r.IntN(3)]
	if o.from == o.to {
		o.to = uuidrep.Standard
	}
	w.mistake("--retry in a random order")
	files := w.newFiles()
	o.files = &fileSet{"", files.undo, files.skip}
	if w.r.IntN(3) == 0 {
		o.trust = []string{w.shapes[w.r.IntN(len(w.shapes))].name}
	}
	w.observe([]ran{w.convert(o, w.fault())})
}

// verify checks that a proof is not given for something that does not hold.
func (w *world) verify() {
	o := w.wish()
	args := []string{"verify", "--db", w.s.Database(), "--collection", w.coll.Name(), "--from", o.from.String(), "--to", o.to.String(), "--output", "json"}
	for _, f := range o.fields {
		args = append(args, "--field", f)
	}
	log := o.files.undo != "" && exists(o.files.undo) && w.r.IntN(2) == 0
	if log {
		args = append(args, "--undo-log", o.files.undo)
	}
	c := w.run(ran{wish: o, undo: "-"}, args)
	if c.code != failure.ExitOK {
		return
	}
	o.part = "" // the log names the part
	for _, v := range w.values {
		s, _ := o.from.Subtype()
		u, ok := v.now.read(o.from)
		switch {
		case !ok || !o.covers(w, v) || asStored(u, o.to) == v.now:
		case o.to == uuidrep.Standard && v.now.subtype == s && !(log && strings.Contains(c.stdout, "/2")):
			w.fail("verify calls it proven, and %s of document %v is not converted", v.path, w.ids[v.doc])
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
