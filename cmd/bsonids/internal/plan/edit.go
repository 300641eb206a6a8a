package plan

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Edit returns what becomes of the steps by the plan that a person has edited. The error is a [*FrozenError]
// if the edit is about values that are converted.
func (s *State) Edit(p *Plan) (e Edited, err error) {
	switch {
	case s.Undone != "" && !s.Restored:
		return e, fmt.Errorf("%s: the plan was undone on %s, and the undo has not ended: run bsonids undo %s --write first", s.dir, s.Undone, s.dir)
	case s.Undone != "", !s.Sealed():
		e.New = p.Steps()
	default:
		begun, idle := s.begun()
		if e, err = edit(s.Plan, p, begun, idle); err != nil {
			return e, err
		}
	}
	s.number(e.New, e.Steps)
	e.Steps = append(e.Steps, e.New...)
	return e, nil
}

// begun returns the sealed steps that may have converted values, and the others.
func (s *State) begun() (begun, idle []Step) {
	for _, st := range s.Made {
		if s.Of(st).Begun() {
			begun = append(begun, st)
			continue
		}
		idle = append(idle, st)
		// The copy is as the step before it has made it.
		i := slices.IndexFunc(s.Past, func(o Step) bool { return st.Again && o.alike(st) && o.Pass == st.Of })
		if i >= 0 {
			begun = append(begun, s.Past[i])
		}
	}
	return begun, idle
}

// Before returns the step that st goes on from.
func (s *State) Before(st Step) Step {
	for _, o := range slices.Concat(s.Made, s.Past) {
		if o.alike(st) && o.Pass == st.Of && !o.Listed {
			return o
		}
	}
	return Step{Task: st.Task, Pass: st.Of}
}

// Later returns the steps that convert what st has listed.
func (s *State) Later(st Step) (later []Step) {
	for _, o := range s.Made {
		if o.Listed && o.alike(st) && o.Of == st.Pass && !st.Listed {
			later = append(later, o)
		}
	}
	return later
}

// Is reports whether the plan is the one that is sealed, with the steps.
func (s *State) Is(p *Plan, steps []Step) bool {
	return s.Plan.Digest() == p.Digest() && slices.EqualFunc(s.Made, steps, Step.equal)
}

// number sets the pass of each of the steps, so that no other step has their files. others are the steps that
// remain.
func (s *State) number(steps, others []Step) {
	for i := range steps {
		st := &steps[i]
		st.Pass = 0
		for slices.ContainsFunc(slices.Concat(steps[:i], others, s.Made, s.Past), func(o Step) bool { return o.Name() == st.Name() }) {
			st.Pass++
		}
	}
}

// known returns an error if the directory has an undo log, or a list of values, of which the ledger does not know: it
// has a fact of a step before that has files. An empty one is what is left of a process that was killed while it
// found out whether it may write.
func (s *State) known(entries []fs.DirEntry) error {
	has := make(map[string]bool)
	for _, st := range s.All() {
		has[st.Name()] = s.Of(st).HasFiles()
	}
	for _, e := range entries {
		stem, undo := strings.CutSuffix(e.Name(), undoEnd)
		stem, list := strings.CutSuffix(stem, skipEnd)
		if !undo && !list || has[stem] || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && info.Size() == 0 {
			continue
		}
		return fmt.Errorf("%s is of a conversion that %s does not know: that is an older copy, or damaged, or missing; put the latest one back",
			filepath.Join(s.dir, e.Name()), filepath.Join(s.dir, LedgerFile))
	}
	return nil
}
