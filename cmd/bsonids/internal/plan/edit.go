package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// Edit returns what becomes of the steps by the plan that a person has edited. The error is a [*FrozenError]
// if the edit is about values that are converted.
func (s *State) Edit(p *Plan) (e Edited, err error) {
	switch {
	case s.Undone != "" && !s.Restored:
		return e, fmt.Errorf("%s: the plan was undone on %s, and the undo has not ended: run bsonids undo %s --write first", s.dir, s.Undone, s.dir)
	case s.Undone != "", !s.Sealed():
		e.New = p.Steps()
	case s.Plan.Part != p.Part:
		return e, &FrozenError{[]string{fmt.Sprintf("the part was %s and is %s", cmp.Or(s.Plan.Part, "all documents"), cmp.Or(p.Part, "all documents"))}}
	default:
		begun, idle, err := s.begun()
		if err != nil {
			return e, err
		}
		if e, err = edit(s.Plan, p, begun, idle); err != nil {
			return e, err
		}
	}
	s.number(e.New, e.Steps)
	e.Steps = append(e.Steps, e.New...)
	return e, nil
}

// begun returns the sealed steps that may have converted values, and the others.
func (s *State) begun() (begun, idle []Step, err error) {
	for _, st := range s.Made {
		is, err := hasBegun(st.Files(s.dir), st)
		switch {
		case err != nil:
			return nil, nil, &LostError{err}
		case is:
			begun = append(begun, st)
		default:
			idle = append(idle, st)
			// The copy is as the step before it has made it.
			i := slices.IndexFunc(s.Past, func(o Step) bool { return st.Again && o.alike(st) && o.Pass == st.Of })
			if i >= 0 {
				begun = append(begun, s.Past[i])
			}
		}
	}
	return begun, idle, nil
}

// Before returns the step that st goes on from.
func (s *State) Before(st Step) Step {
	for _, o := range slices.Concat(s.Made, s.Past) {
		if o.alike(st) && o.Pass == st.Of && !o.Listed {
			return o
		}
	}
	return Step{Collection: st.Collection, Filter: st.Filter, Into: st.Into, Part: st.Part, Pairs: st.Pairs, Pass: st.Of}
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

// LostError is the error of the state file of a step that is missing, damaged, or of another conversion.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return e.Err.Error() + ": what the conversion has done is unknown without it; put the file back"
}

// Unwrap returns what is wrong.
func (e *LostError) Unwrap() error { return e.Err }

// hasBegun reports whether a step, which is zero if it is not known, may have converted values. Its state file
// may have lost its last record.
func hasBegun(f Files, st Step) (bool, error) {
	l, err := ledger.ReadFile(f.State)
	switch {
	case errors.Is(err, fs.ErrNotExist) && st.Collection == "":
	case err != nil:
		return false, fmt.Errorf("%s: %w", f.State, files.Nameless(err))
	case len(l.Facts()) > 0:
		s, err := convert.ReadState(f.State)
		id := s.Identity
		if err == nil && st.Collection != "" && !st.Identity(id.Database).Equal(id) {
			err = fmt.Errorf("%s: it belongs to another conversion: %s", f.State, id)
		}
		if list := filepath.Base(s.SkipList); err == nil && s.SkipList != "" && list != filepath.Base(f.SkipList) {
			err = fmt.Errorf("%s: it belongs to the conversion with the list %s", f.State, list)
		}
		if err != nil || s.Begun() || s.Done {
			return true, err
		}
	}
	if info, err := os.Stat(f.SkipList); err == nil && info.Size() > 0 {
		return true, nil
	}
	if f.UndoLog == "" {
		return false, nil
	}
	log, err := convert.ReadUndoLog(f.UndoLog)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, nil // whatever is in it
	}
	defer func() { _ = log.Close() }()
	_, err = log.Next()
	return !errors.Is(err, io.EOF), nil
}

// together reports whether the undo log is of the conversion of the state file, or is not there.
func (f Files) together() bool {
	log, err := convert.ReadUndoLog(f.UndoLog)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = log.Close() }()
	s, err := convert.ReadState(f.State)
	return err == nil && s.Identity.Equal(log.Identity)
}

// number sets the pass of each of the steps, so that no other step has their files. others are the steps that
// remain.
func (s *State) number(steps, others []Step) {
	for i := range steps {
		st := &steps[i]
		st.Pass = 0
		for slices.ContainsFunc(slices.Concat(steps[:i], others, s.Made, s.Past), func(o Step) bool { return o.stem() == st.stem() }) {
			st.Pass++
		}
	}
}

// strangers returns the files in the directory that are of no step, and of steps that have not begun: a
// process was killed before it sealed them. The error names one of a step that has begun: the ledger does not
// know what was converted.
func (s *State) strangers() (idle []Files, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, st := range slices.Concat(s.Made, s.Past) {
		known[st.stem()] = true
	}
	for _, e := range entries {
		stem, ok := stemOf(e.Name())
		if !ok || known[stem] || !e.Type().IsRegular() {
			continue
		}
		known[stem] = true
		f := stemFiles(filepath.Join(s.dir, stem))
		begun, err := hasBegun(f, Step{})
		switch {
		case errors.Is(err, ledger.ErrFormat): // a file of a person
		case err != nil || begun:
			return nil, errors.Join(fmt.Errorf("%s is of a conversion that %s does not know: that is an older copy, or damaged, or missing; put the latest one back",
				filepath.Join(s.dir, e.Name()), filepath.Join(s.dir, LedgerFile)), err)
		default:
			idle = append(idle, f)
		}
	}
	return idle, nil
}

// Clean removes the files of steps that are of no use: they have not begun, and are not sealed. An undo log that is
// not of the conversion of its state file is of someone else, and stays.
func (s *State) Clean() error {
	idle, err := s.strangers()
	for _, f := range idle {
		if !f.together() {
			continue
		}
		for _, name := range f.names() {
			if e := os.Remove(name); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}
