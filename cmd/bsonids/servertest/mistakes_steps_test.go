package servertest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// step is one thing that the user does.
func (w *world) step() {
	switch k := w.r.IntN(20); {
	case k < 10:
		w.apply(w.wish())
	case k < 12:
		w.atOnce()
	case k < 14:
		w.damage()
	case k < 16:
		w.undo()
	case k < 18:
		w.trustLater()
	default:
		w.verify()
	}
}

// mistake counts a mistake.
func (w *world) mistake(name string) string {
	w.sum.count(w.sum.kinds, name)
	return name
}

// wish is the next plan that the user applies: the one with which the user goes on, or another one.
func (w *world) wish() wish {
	dir := w.plan
	if w.r.IntN(3) == 0 {
		dir = w.dirs[w.r.IntN(len(w.dirs))]
	}
	switch w.r.IntN(9) {
	case 0:
		w.mistake("another plan")
		dir = w.newPlan("")
	case 1:
		w.mistake("the same plan in another directory")
		file := filepath.Join(dir, plan.PlanFile)
		dir = w.newDir()
		if _, err := os.Stat(file); err == nil { // it may be damaged
			again(w.t, file, dir)
		}
	case 2:
		w.mistake("a copy of the directory")
		other := copied(w.t, dir)
		w.dirs, w.damaged[other] = append(w.dirs, other), w.damaged[dir]
		dir = other
	}
	was, _ := os.ReadFile(filepath.Join(dir, plan.PlanFile))
	w.edit(dir)
	o := w.wishOf(dir)
	o.was = string(was)
	return o
}

func (w *world) newDir() string {
	dir := filepath.Join(w.dir, fmt.Sprint(len(w.dirs)))
	w.dirs = append(w.dirs, dir)
	return dir
}

// newPlan makes the plan of the database, and decides most of what it leaves open. It returns the directory.
func (w *world) newPlan(into string) (dir string) {
	dir = w.newDir()
	if r := w.command(w.t.Context(), w.s, []string{"plan", dir, "--db", w.db.Name()}); r.code != failure.ExitOK {
		w.fail("plan: %d %s", r.code, r.stderr)
	}
	w.note("plan %s", dir)
	w.change(dir, func(p *plan.Plan) {
		accepted(p)
		copiedInto(w.coll.Name(), into)(p)
		for _, c := range p.Collections {
			for i := range c.Fields {
				f := &c.Fields[i]
				switch {
				case c.Name != w.coll.Name(): // is not tested
					f.Decision = plan.Leave
				case f.Decision != plan.Unknown:
				case f.Stored == kinds.Subtype3 && w.r.IntN(3) == 0:
					f.Decision, f.Trust = plan.Convert(w.shapes[0].order.String()), w.r.IntN(2) == 0
				case w.r.IntN(8) > 0:
					f.Decision = plan.Leave
				}
			}
		}
	})
	return dir
}

// change changes the plan in a directory. One that is damaged is left.
func (w *world) change(dir string, change func(*plan.Plan)) {
	if _, err := plan.ReadFile(dir); err == nil {
		changePlan(w.t, dir, change)
	}
}

// edit changes the decisions of a plan, or does not.
func (w *world) edit(dir string) {
	var edit func(f *plan.Field)
	switch w.r.IntN(9) {
	case 0:
		order := legacy[w.r.IntN(3)].String()
		w.mistake("a decision in a random order")
		edit = func(f *plan.Field) { f.Decision = plan.Convert(order) }
	case 1:
		w.mistake("a field is left")
		edit = func(f *plan.Field) { f.Decision, f.Trust = plan.Leave, false }
	case 2:
		w.mistake("trust")
		edit = func(f *plan.Field) { f.Trust = true }
	case 3:
		w.mistake("a wrong field")
		edit = func(f *plan.Field) { f.Path = "x" }
	default:
		return
	}
	field := w.shapes[w.r.IntN(len(w.shapes))].name
	w.change(dir, func(p *plan.Plan) {
		for _, c := range p.Collections {
			for i := range c.Fields {
				if f := &c.Fields[i]; c.Name == w.coll.Name() && f.Plain() == field && f.Stored == kinds.Subtype3 {
					edit(f)
				}
			}
		}
	})
}

// wishOf reads the plan in a directory.
func (w *world) wishOf(dir string) wish {
	o := wish{dir: dir, from: make(map[string][]uuidrep.Representation)}
	if w.r.IntN(10) == 0 {
		o.extra = []string{"--take-over"}
		w.mistake("--take-over")
	}
	p, err := plan.ReadFile(dir)
	if err != nil {
		return o
	}
	for _, c := range p.Collections {
		if c.Name != w.coll.Name() {
			continue
		}
		o.into = c.Into
		for _, f := range c.Fields {
			if kind, ok := f.Decision.From(); ok {
				if from, err := uuidrep.Parse(kind); err == nil {
					o.from[f.Plain()] = append(o.from[f.Plain()], from)
				}
				if f.Trust {
					o.trust = append(o.trust, f.Plain())
				}
			}
		}
	}
	return o
}

func (w *world) args(o wish) []string {
	return append([]string{"apply", o.dir, "--write", "--output", "json", "--batch", fmt.Sprint(1 + w.r.IntN(15)), "--workers", fmt.Sprint(1 + w.r.IntN(2)),
		"--batch-timeout", "1s"}, o.extra...)
}

func (w *world) undoArgs(dir string) []string {
	return []string{"undo", dir, "--write", "--batch", "10", "--batch-timeout", "1s", "--output", "json"}
}

// damage changes a file as a disk or a user does.
func (w *world) damage() {
	dir := w.dirs[w.r.IntN(len(w.dirs))]
	files := w.files(dir, "*")
	if len(files) == 0 {
		return
	}
	path := files[w.r.IntN(len(files))]
	other := filepath.Join(w.dirs[w.r.IntN(len(w.dirs))], filepath.Base(path))
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	of, err := os.ReadFile(other)
	if err != nil || other == path {
		of = nil
	}
	name, b := damaged(w.r, b, w.old[path], of)
	w.old[path] = b
	w.note("%s %s", w.mistake(name), path)
	w.damaged[dir] = true
	w.write(path, b)
}

// write writes a file, or removes it if b is nil.
func (w *world) write(path string, b []byte) {
	err := os.Remove(path)
	if b != nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		w.t.Error(err)
	}
}

func damaged(r *rand.Rand, b, old, other []byte) (name string, to []byte) {
	b = slices.Clone(b)
	lines := slices.Collect(bytes.Lines(b))
	switch k := r.IntN(8); {
	case k == 7 && len(other) > 0:
		return "file of another directory", other
	case k == 0 || len(b) == 0:
		return "file deleted", nil
	case k == 1:
		return "file cut", b[:r.IntN(len(b))]
	case k == 2 && len(old) > 0:
		return "older file", old
	case k == 3:
		i := r.IntN(len(lines))
		return "line deleted", bytes.Join(slices.Delete(lines, i, i+1), nil)
	case k == 4:
		i := r.IntN(len(lines))
		return "line doubled", bytes.Join(slices.Insert(lines, i, lines[i]), nil)
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return "bit flipped", b
	}
}

// fault is what happens to a command while it runs.
type fault struct {
	cut     bool // the server is lost at the command number at
	kill    bool // the process is killed at that moment
	answer  bool // the server carries the command out before
	cancel  int  // the user interrupts at this command; 0 if not
	at      int
	process bool // a real process is killed after some time
	after   time.Duration
}

// fault invents a fault, or none.
func (w *world) fault() *fault {
	at := 1 + w.r.IntN(3)*w.r.IntN(24)
	switch k := w.r.IntN(100); {
	case k < 20:
		w.mistake("killed")
		return &fault{cut: true, kill: true, answer: k%2 == 0, at: at}
	case k < 28:
		w.mistake("server lost")
		return &fault{cut: true, answer: k%2 == 0, at: at}
	case k < 34:
		w.mistake("interrupted")
		return &fault{cancel: at}
	case k < 37 && runtime.GOOS != "windows":
		w.mistake("killed, a process")
		return &fault{process: true, after: time.Duration(50+w.r.IntN(300)) * time.Millisecond}
	}
	return nil
}

// command runs the command through a proxy that makes the fault. A command that is killed leaves
// its files as they were at that moment.
func (f *fault) command(w *world, dir string, args []string) (result, bool) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var mu sync.Mutex
	n, cut := 0, false
	held := make(map[string][]byte)
	p := startProxy(w.t, host(w.t, w.s), func(r request, pass func() []byte) []byte {
		mu.Lock()
		counts := slices.Contains([]string{"find", "insert", "update", "delete", "getMore", "aggregate", "create"}, r.name())
		if cut {
			mu.Unlock()
			return nil
		}
		if counts {
			n++
		}
		if counts && f.cancel == n {
			cancel()
		}
		if !counts || !f.cut || n != f.at {
			mu.Unlock()
			return pass()
		}
		cut = true
		for _, path := range w.files(dir, "*") {
			if b, err := os.ReadFile(path); err == nil && held[path] == nil {
				held[path] = append([]byte{}, b...) // an empty file is held, too
			}
		}
		mu.Unlock()
		if f.answer {
			pass()
		}
		return nil
	})
	res := w.command(ctx, uriTarget(p.URI()+"&serverSelectionTimeoutMS=300"), args)
	mu.Lock() // a request may still be on its way
	killed := f.kill && cut
	mu.Unlock()
	if !killed {
		return res, false
	}
	for _, path := range w.files(dir, "*") {
		w.write(path, held[path])
	}
	return res, true
}
