package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
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
		dir = w.newPlan([]uuidrep.Representation{uuidrep.Standard, legacy[w.r.IntN(3)]}[w.r.IntN(2)], "")
	case 1:
		w.mistake("the same plan in another directory")
		b, err := os.ReadFile(filepath.Join(dir, plan.PlanFile))
		if dir = w.newDir(); err != nil {
			break // it is damaged
		}
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, plan.PlanFile), b, 0o600)); err != nil {
			w.t.Fatal(err)
		}
	case 2:
		w.mistake("a copy of the directory")
		was := dir
		dir = w.newDir()
		if err := os.CopyFS(dir, os.DirFS(was)); err != nil {
			w.t.Fatal(err)
		}
		w.damaged[dir] = w.damaged[was]
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
func (w *world) newPlan(to uuidrep.Representation, into string) (dir string) {
	dir = w.newDir()
	if r := w.command(w.t.Context(), w.s, []string{"plan", dir, "--db", w.db.Name(), "--to", to.String()}); r.code != failure.ExitOK {
		w.fail("plan: %d %s", r.code, r.stderr)
	}
	w.note("plan %s to %v", dir, to)
	w.change(dir, func(p *plan.Plan) {
		accepted(p)
		for i := range p.Collections {
			c := &p.Collections[i]
			if c.Name == w.coll.Name() {
				c.Into = into
			}
			for j := range c.Fields {
				f := &c.Fields[j]
				switch {
				case c.Name != w.coll.Name(): // is not tested
					f.Decision = plan.Leave
				case f.Decision != plan.Unknown:
				case f.Stored == kinds.Subtype3 && w.r.IntN(3) == 0 && to != w.shapes[0].order:
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
		for i := range p.Collections {
			for j := range p.Collections[i].Fields {
				if f := &p.Collections[i].Fields[j]; p.Collections[i].Name == w.coll.Name() && f.Plain() == field && f.Stored == kinds.Subtype3 {
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
	o.to, _ = uuidrep.Parse(p.To)
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
	o.done = w.done(dir)
	return o
}

// done returns the names of the steps of a directory that are done.
func (w *world) done(dir string) (names []string) {
	state, err := plan.ReadState(dir)
	if err != nil {
		return nil
	}
	for _, st := range state.Steps() {
		if s, err := migration.StepOf(state, st); err == nil && s.Status == report.DoneStep {
			names = append(names, stepName(s))
		}
	}
	return names
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
	if b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
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
