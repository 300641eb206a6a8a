package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// State is a plan that is applied, in the directory of a migration. Each of its steps has files of its
// own there.
type State struct {
	facts
	// Plan is the sealed copy: what the steps were made of. It is the plan that a person edits if nothing is
	// sealed.
	Plan *Plan

	dir    string
	of     map[string]*convert.State // by the names of the steps
	ledger *ledger.File              // nil if the state is only read
	// migration is the random id of the ledger; empty if there is none.
	migration string
}

// Converted is a converted dump.
type Converted struct {
	Out   string           `json:"out"` // absolute, or "-" for standard output
	Ended string           `json:"ended"`
	Steps []report.Changed `json:"steps"` // as those of the plan
}

// The beginnings of the names of facts: those of the plan, and those of its conversions, whose names follow.
const (
	ofPlan       = "plan/"
	ofConversion = "conversion/"
)

// under returns the beginning of the names of the facts of a step.
func (s Step) under() string { return ofConversion + s.Name() + "/" }

// facts are the facts of a plan. They are zero if nothing is sealed.
type facts struct {
	Digest string `json:"digest"`
	Text   string `json:"plan"`           // YAML without comments
	Made   []Step `json:"steps"`          // those that are sealed
	Past   []Step `json:"past,omitempty"` // of earlier copies of the plan: only their files are left
	// Undone is when bsonids undo began to restore the values. It is empty if it did not. Restored is set when
	// it has ended.
	Undone   string `json:"undone,omitempty"`
	Restored bool   `json:"restored,omitempty"`
	// Converted is the last dump that was converted; nil if there is none, or for a database of a server.
	Converted *Converted `json:"converted,omitempty"`
}

// ErrNoState is wrapped by the error of a directory in which no plan is applied.
var ErrNoState = errors.New("no plan was applied in it")

// Create makes the directory of a migration and locks it. It returns an error if there is something else at
// dir than an empty directory, or the one of a call that was killed before it had a plan. The caller must
// write the plan and close the State.
func Create(dir string) (*State, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := fresh(dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have been there
		return nil, err
	}
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	if err := fresh(dir); err != nil { // another process may have written a plan meanwhile
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// fresh returns an error if dir has something else than what a call has left that was killed before it had a
// plan.
func fresh(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == PlanFile:
			return fmt.Errorf("%s has a plan already: name another directory, or remove this one if nothing was converted with it", dir)
		case name != LedgerFile && name != EvidenceFile && name != DuplicatesFile && filepath.Join(dir, name) != files.LockPath(filepath.Join(dir, LedgerFile)) && !strings.HasSuffix(name, ".tmp"):
			return fmt.Errorf("%s is not empty: name a new directory", dir)
		}
	}
	return nil
}

// WritePlan writes the plan to its file, for a person who edits it.
func (s *State) WritePlan(p *Plan) error {
	return files.Replace(filepath.Join(s.dir, PlanFile), p.Text())
}

// ReadFile reads the plan that a person edits, of the directory dir. The error names the file.
func ReadFile(dir string) (*Plan, error) {
	path := filepath.Join(dir, PlanFile)
	p, err := Read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Lock locks the directory of a migration, and reads it as [Look] does. It returns an error if another process uses
// the directory. The caller must close the State.
func Lock(dir string) (*State, error) {
	if _, err := Look(dir); err != nil { // nothing is created
		return nil, err
	}
	s, err := open(dir)
	if err == nil && !s.Sealed() {
		if s.Plan, err = ReadFile(dir); err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return s, err
}

// LockState is [Lock] for a plan that is applied. The error wraps [ErrNoState] if none is.
func LockState(dir string) (*State, error) {
	if _, err := ReadState(dir); err != nil {
		return nil, err
	}
	return Lock(dir)
}

// Look reads the directory of a migration without locking it. If no plan is applied, the State has the one that a
// person edits.
func Look(dir string) (s *State, err error) {
	if s, err = ReadState(dir); errors.Is(err, ErrNoState) {
		s = &State{dir: dir}
		s.Plan, err = ReadFile(dir)
	}
	return s, err
}

// open opens the ledger in dir, or creates it. The State has no plan if the ledger has none.
func open(dir string) (*State, error) {
	path := filepath.Join(dir, LedgerFile)
	f, err := ledger.OpenFile(path)
	if err != nil {
		return nil, ledgerError(path, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s, err := stateOf(dir, entries, f.Ledger)
	if err != nil && !errors.Is(err, ErrNoState) {
		return nil, errors.Join(err, f.Close())
	}
	s.ledger = f
	for _, st := range s.All() {
		s.Of(st).SaveTo(f, st.under())
	}
	return s, nil
}

// ledgerError adds the path of the ledger to an error, and what a person can do if the file is damaged.
func ledgerError(path string, err error) error {
	if errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrFormat) || errors.Is(err, ledger.ErrFormat) {
		return fmt.Errorf("%s: %w; put the latest copy of it back: nothing else knows what was converted", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// ReadState reads the state in dir without locking it.
func ReadState(dir string) (*State, error) {
	entries, err := os.ReadDir(dir) // first: another process writes to the ledger before it makes a file
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, LedgerFile)
	l, err := ledger.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ledgerError(path, err)
	}
	s, err := stateOf(dir, entries, l)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// stateOf returns the state that the facts of a ledger are, which is nil if there is none. entries are the files of
// the directory. The state has no plan with an error that wraps [ErrNoState].
func stateOf(dir string, entries []fs.DirEntry, l *ledger.Ledger) (*State, error) {
	s := &State{dir: dir}
	var has ledger.Facts
	if l != nil {
		s.migration, has = l.ID(), l.Facts(ofPlan)
	}
	if len(has) > 0 { // otherwise nothing was applied
		path := filepath.Join(dir, LedgerFile)
		if err := has.Decode(&s.facts); err != nil {
			return nil, ledgerError(path, err)
		}
		p, err := Parse([]byte(s.Text))
		if err != nil || p.Digest() != s.Digest {
			return nil, ledgerError(path, journal.ErrDamaged)
		}
		s.Plan = p
		s.of = make(map[string]*convert.State)
		for _, st := range s.All() {
			if p.Dump != nil { // which is converted at once
				break
			}
			if s.of[st.Name()], err = convert.StateOf(l.Facts(st.under())); err != nil {
				return nil, ledgerError(path, err)
			}
		}
	}
	if err := s.known(entries); err != nil {
		return nil, err
	}
	if !s.Sealed() {
		return s, fmt.Errorf("%s: %w", dir, ErrNoState)
	}
	return s, nil
}

// Groups returns the groups of steps, as [Plan.Groups] does: of those that are sealed, or those of the plan.
func (s *State) Groups() [][]Step {
	if !s.Sealed() {
		return s.Plan.Groups()
	}
	return s.Plan.groups(s.Made)
}

// Steps returns the steps in the order of the work.
func (s *State) Steps() []Step { return slices.Concat(s.Groups()...) }

// All returns the steps, and those of earlier copies of the plan whose files are left.
func (s *State) All() []Step { return slices.Concat(s.Made, s.Past) }

// Of returns how far a step is. One that is not sealed has not begun. A step that is carried out changes its state,
// which no other one may read at the same time.
func (s *State) Of(st Step) *convert.State {
	if of := s.of[st.Name()]; of != nil {
		return of
	}
	return &convert.State{}
}

// Sealed reports whether a plan is applied: every step has a decision in the ledger.
func (s *State) Sealed() bool { return s.Digest != "" }

// Adopt writes to the ledger that the plan is applied by the steps. decided has the states of those that are
// new, with their decisions, by the names of the steps. Nothing is converted by a plan before that.
func (s *State) Adopt(p *Plan, steps []Step, decided map[string]*convert.State) error {
	past := slices.DeleteFunc(s.All(), func(st Step) bool { return !s.Of(st).HasFiles() || slices.ContainsFunc(steps, st.equal) })
	next := &State{facts: s.facts, dir: s.dir, of: make(map[string]*convert.State), ledger: s.ledger, migration: s.migration}
	next.Past, next.Undone, next.Restored = past, "", false
	next.seal(p, steps)
	all := ledger.Facts{}
	for _, st := range next.All() {
		of := decided[st.Name()]
		if of == nil {
			of = s.Of(st)
		} else {
			of.Conversion = ledger.NewID()
			of.SaveTo(s.ledger, st.under())
		}
		next.of[st.Name()] = of
		if err := all.Add(st.under(), of); err != nil {
			return err
		}
	}
	err := all.Add(ofPlan, next.facts)
	if err == nil {
		err = s.ledger.Set("", all)
	}
	if err != nil {
		return next.fail(err)
	}
	*s = *next
	return nil
}

// AdoptDump writes to the ledger that the plan, which is about a dump, is applied, and what was converted by it.
func (s *State) AdoptDump(p *Plan, c *Converted) error {
	s.Converted = c
	s.seal(p, p.Steps())
	return s.save()
}

func (s *State) seal(p *Plan, steps []Step) {
	s.Plan, s.Made, s.Text, s.Digest = p, steps, p.canonical(), p.Digest()
}

// save writes to the ledger what has changed of the plan.
func (s *State) save() error {
	all := ledger.Facts{}
	err := all.Add("", s.facts)
	if err == nil {
		err = s.ledger.Set(ofPlan, all)
	}
	if err != nil {
		return s.fail(err)
	}
	return nil
}

func (s *State) fail(err error) error {
	return fmt.Errorf("%s: %w", filepath.Join(s.dir, LedgerFile), err)
}

// MarkUndone records that the conversions are being undone. It changes nothing if that was recorded
// before.
func (s *State) MarkUndone(now time.Time) error {
	if s.Undone != "" {
		return nil
	}
	s.Undone = now.UTC().Format(time.RFC3339)
	return s.save()
}

// MarkRestored records that the undo has ended. A plan can then be applied again, with new files.
func (s *State) MarkRestored() error {
	s.Restored = true
	return s.save()
}

// Migration returns the random id of the migration, or "" if nothing was applied.
func (s *State) Migration() string { return s.migration }

// Conversions returns the names that the conversions of all steps have in the record.
func (s *State) Conversions() (names []string) {
	for _, st := range s.All() {
		names = append(names, s.Of(st).Conversion)
	}
	return names
}

// Files returns the paths of the files of a step.
func (s *State) Files(st Step) Files { return st.Files(s.dir) }

// Dir returns the path of the directory.
func (s *State) Dir() string { return s.dir }

// Close closes the ledger, if it is open.
func (s *State) Close() error {
	if s.ledger == nil {
		return nil
	}
	return s.ledger.Close()
}

// Discard closes the State of a directory that [Create] has made, and removes the directory, unless it has a plan.
func (s *State) Discard() error {
	dir := s.Dir()
	err := s.Close()
	if _, failed := os.Stat(filepath.Join(dir, PlanFile)); !errors.Is(failed, fs.ErrNotExist) {
		return err
	}
	ledger := filepath.Join(dir, LedgerFile)
	for _, path := range []string{ledger, files.LockPath(ledger), dir} {
		_ = os.Remove(path) // a directory that has something else stays
	}
	return err
}
