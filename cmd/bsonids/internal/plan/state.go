package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// State is a plan that is applied, in a state directory. Each of its steps has files of its own
// there.
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
var ErrNoState = errors.New("no plan was applied with it")

// OpenState opens the state of the plan in dir, or creates both. It returns an error if another
// process uses the directory, or if another plan is under way in it. The caller must close the
// State.
func OpenState(dir string, p *Plan) (*State, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
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
			return nil, errors.Join(fmt.Errorf("%s: another plan, or this one before it was edited, is under way with it: %s; finish it or undo it, and use another directory for this one", dir, d), s.Close())
		}
		// Nothing was converted yet.
		for _, step := range s.Plan.Steps() {
			if err := os.Remove(filepath.Join(dir, step.State())); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
		of, err := convert.ReadState(filepath.Join(dir, st.State()))
		s.Decided = s.Decided || err == nil && of.Begun()
	}
	return s, nil
}

// Save writes to the ledger what has changed.
func (s *State) Save() error {
	f := facts{s.Plan.Digest(), s.Plan.canonical(), s.Decided, s.Undone, []string{}}
	for _, st := range s.Plan.Steps() {
		for _, name := range []string{st.State(), st.UndoLog(), st.SkipList()} {
			if name != "" {
				f.Files = append(f.Files, name)
			}
		}
	}
	has, err := ledger.FactsOf(f)
	if err == nil {
		err = s.ledger.Set(has)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(LedgerFile), err)
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

// Path returns the path of a file in the directory.
func (s *State) Path(name string) string { return filepath.Join(s.dir, name) }

// Close closes the ledger, if it is open.
func (s *State) Close() error {
	if s.ledger == nil {
		return nil
	}
	return s.ledger.Close()
}
