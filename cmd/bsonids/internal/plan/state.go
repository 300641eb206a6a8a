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
	ledger *ledger.File // nil if the state is only read
	// migration is the random id of the ledger; empty if there is none.
	migration string
}

// Converted is a converted dump.
type Converted struct {
	Out   string           `json:"out"` // absolute, or "-" for standard output
	Ended string           `json:"ended"`
	Steps []report.Changed `json:"steps"` // as those of the plan
}

// facts are the facts of the ledger of a plan. They are zero if nothing is sealed.
type facts struct {
	Digest string `json:"digest"`
	Text   string `json:"plan"`           // YAML without comments
	Made   []Step `json:"steps"`          // those that are sealed; their decisions are in their state files
	Past   []Step `json:"past,omitempty"` // of earlier copies of the plan: only their files are left
	// Undone is when bsonids undo began to restore the values. It is empty if it did not. Restored is set when
	// it has ended.
	Undone   string `json:"undone,omitempty"`
	Restored bool   `json:"restored,omitempty"`
	Epoch    int64  `json:"recorded,omitempty"` // of the migration, which its record has for certain
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
		case name != LedgerFile && name != EvidenceFile && filepath.Join(dir, name) != files.LockPath(filepath.Join(dir, LedgerFile)) && !strings.HasSuffix(name, ".tmp"):
			return fmt.Errorf("%s is not empty: name a new directory", dir)
		}
	}
	return nil
}

// WritePlan writes the plan to its file, for a person who edits it.
func (s *State) WritePlan(p *Plan) error {
	return files.Replace(filepath.Join(s.dir, PlanFile), p.text())
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
	s, err := stateOf(dir, f.Facts())
	if err != nil && !errors.Is(err, ErrNoState) {
		return nil, errors.Join(err, f.Close())
	}
	s.ledger, s.migration = f, f.ID()
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
func ReadState(dir string) (s *State, err error) {
	path := filepath.Join(dir, LedgerFile)
	for range 2 { // another process may write to the ledger, and to files of which it tells, in between
		var l *ledger.Ledger
		var f ledger.Facts
		l, err = ledger.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, ledgerError(path, err)
		default:
			f = l.Facts()
		}
		if s, err = stateOf(dir, f); err == nil { // it has facts
			s.migration = l.ID()
			return s, nil
		}
	}
	return nil, err
}

// stateOf returns the state that the facts of a ledger are. It has no plan with an error that wraps
// [ErrNoState].
func stateOf(dir string, has ledger.Facts) (*State, error) {
	path := filepath.Join(dir, LedgerFile)
	s := &State{dir: dir}
	if len(has) > 0 { // otherwise a process was killed after it made the file
		if err := has.Decode(&s.facts); err != nil {
			return nil, ledgerError(path, err)
		}
		p, err := Parse([]byte(s.Text))
		if err != nil || p.Digest() != s.Digest {
			return nil, ledgerError(path, journal.ErrDamaged)
		}
		s.Plan = p
	}
	if _, err := s.strangers(); err != nil {
		return nil, err
	}
	for _, st := range s.Made {
		if of, err := convert.ReadState(st.Files(dir).State); err == nil && s.Undone == "" { // the ledger may have lost its last record
			s.Undone = of.Undone
		}
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

// Sealed reports whether a plan is applied: every step has a state file with its decision.
func (s *State) Sealed() bool { return s.Digest != "" }

// Adopt writes to the ledger that the plan is applied by the steps, whose decisions must be in their state
// files. Nothing is converted by a plan before that.
func (s *State) Adopt(p *Plan, steps []Step) error {
	var past []Step
	for _, st := range slices.Concat(s.Past, s.Made) {
		// The files of one that has not begun are of no use.
		if begun, err := hasBegun(st.Files(s.dir), st); (begun || err != nil) && !slices.ContainsFunc(steps, st.equal) {
			past = append(past, st)
		}
	}
	s.Past, s.Undone, s.Restored = past, "", false
	if err := s.seal(p, steps); err != nil {
		return err
	}
	return s.Clean()
}

// AdoptDump writes to the ledger that the plan, which is about a dump, is applied, and what was converted by it.
func (s *State) AdoptDump(p *Plan, c *Converted) error {
	s.Converted = c
	return s.seal(p, p.Steps())
}

func (s *State) seal(p *Plan, steps []Step) error {
	s.Plan, s.Made, s.Text, s.Digest = p, steps, p.canonical(), p.Digest()
	return s.save()
}

// save writes to the ledger what has changed.
func (s *State) save() error {
	has, err := ledger.FactsOf(s.facts)
	if err == nil {
		err = s.ledger.Set(has)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(s.dir, LedgerFile), err)
	}
	return nil
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

// Conversions returns the names that the conversions of all steps have in the record. all is false if a file of one
// is missing, damaged or another one's.
func (s *State) Conversions() (names []string, all bool) {
	for _, st := range s.All() {
		of, err := convert.ReadState(st.Files(s.dir).State)
		if err != nil || !st.Identity(of.Identity.Database).Equal(of.Identity) {
			return nil, false
		}
		names = append(names, of.Conversion)
	}
	return names, true
}

// Recorded returns the epoch of the migration that its record has for certain, or 0.
func (s *State) Recorded() int64 { return s.Epoch }

// MarkRecorded notes that the record has the epoch.
func (s *State) MarkRecorded(epoch int64) error {
	s.Epoch = epoch
	return s.save()
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
