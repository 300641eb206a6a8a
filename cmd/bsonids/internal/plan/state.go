package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// State is a plan that is applied, in the directory of a migration. Each of its steps has files of its
// own there.
type State struct {
	Plan *Plan
	// Decided is set when the decision of every step is in its state file. Nothing is converted
	// before that. A step that has begun shows it, too.
	Decided bool
	Undone  string // when bsonids undo began to restore the values; empty if it did not

	dir    string
	ledger *ledger.File // nil if the state is only read
}

// facts are the facts of the ledger of a plan.
type facts struct {
	Digest  string `json:"digest"`
	Plan    string `json:"plan"` // YAML without comments
	Decided bool   `json:"decided"`
	Undone  string `json:"undone,omitempty"`
	// Files are the names of the ledgers, undo logs and skip lists of the steps, in the directory. Their
	// sizes are in the ledgers of the steps.
	Files []string `json:"files"`
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
	if err == nil { // another process may have written a plan meanwhile
		if err = fresh(dir); err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// fresh returns an error if dir has something else than a ledger without a plan.
func fresh(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == PlanFile:
			return fmt.Errorf("%s has a plan already: name another directory, or remove this one if nothing was converted with it", dir)
		case name != LedgerFile && filepath.Join(dir, name) != files.LockPath(filepath.Join(dir, LedgerFile)) && !strings.HasSuffix(name, ".tmp"):
			return fmt.Errorf("%s is not empty: name a new directory", dir)
		}
	}
	return nil
}

// WritePlan writes the plan to its file, for a person who edits it.
func (s *State) WritePlan(p *Plan) error {
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		return err
	}
	return files.Replace(filepath.Join(s.dir, PlanFile), b.Bytes())
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

// OpenState locks the directory of a migration and begins to apply the plan, or continues. It returns an
// error if another process uses the directory, or if another plan is under way in it. The caller must close
// the State.
func OpenState(dir string, p *Plan) (*State, error) {
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	if s.Plan != nil {
		d := Difference(s.Plan, p)
		switch {
		case d == "":
			return s, nil
		case s.Decided:
			return nil, errors.Join(fmt.Errorf("%s: the plan was edited after it was begun: %s; take the edit back, or undo the plan and make another directory", dir, d), s.Close())
		}
		// Nothing was converted yet.
		for _, step := range s.Plan.Steps() {
			if err := os.Remove(step.Files(dir).State); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, errors.Join(err, s.Close())
			}
		}
	}
	s.Plan = p
	if err := s.Save(); err != nil { // fail now if the directory cannot be written
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// LockState opens the state in dir. The error wraps [ErrNoState] if there is none. The caller must close
// the State.
func LockState(dir string) (*State, error) {
	if _, err := ReadState(dir); err != nil { // nothing is created
		return nil, err
	}
	s, err := open(dir)
	if err == nil && s.Plan == nil {
		err = errors.Join(fmt.Errorf("%s: %w", dir, ErrNoState), s.Close())
	}
	return s, err
}

// open opens the ledger in dir, or creates it. The State has no plan if the ledger has none.
func open(dir string) (*State, error) {
	path := filepath.Join(dir, LedgerFile)
	f, err := ledger.OpenFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, err := stateOf(dir, f.Facts())
	if err != nil && !errors.Is(err, ErrNoState) {
		return nil, errors.Join(err, f.Close())
	}
	s.ledger = f
	return s, nil
}

// ReadDir reads the plan in dir, and its state if it is applied. It locks nothing.
func ReadDir(dir string) (*State, error) {
	s, err := ReadState(dir)
	if errors.Is(err, ErrNoState) {
		s = &State{dir: dir}
		s.Plan, err = ReadFile(dir)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ReadState reads the state in dir without locking it.
func ReadState(dir string) (*State, error) {
	path := filepath.Join(dir, LedgerFile)
	f, err := ledger.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", dir, ErrNoState)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, err := stateOf(dir, f)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// stateOf returns the state that the facts of a ledger are. It has no plan with an error that wraps
// [ErrNoState].
func stateOf(dir string, has ledger.Facts) (*State, error) {
	path := filepath.Join(dir, LedgerFile)
	s := &State{dir: dir}
	if len(has) == 0 { // a process was killed after it made the file
		return s, fmt.Errorf("%s: %w", dir, ErrNoState)
	}
	var f facts
	if err := has.Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := Parse([]byte(f.Plan))
	if err != nil || p.Digest() != f.Digest {
		return nil, fmt.Errorf("%s: it is damaged", path)
	}
	s.Plan, s.Decided, s.Undone = p, f.Decided, f.Undone
	for _, st := range p.Steps() { // the ledger may have lost its last record
		of, err := convert.ReadState(st.Files(dir).State)
		s.Decided = s.Decided || err == nil && of.Begun()
	}
	return s, nil
}

// Save writes to the ledger what has changed.
func (s *State) Save() error {
	f := facts{s.Plan.Digest(), s.Plan.canonical(), s.Decided, s.Undone, []string{}}
	for _, st := range s.Plan.Steps() {
		f.Files = append(f.Files, st.Files("").names()...)
	}
	has, err := ledger.FactsOf(f)
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
	return s.Save()
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
