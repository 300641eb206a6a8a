package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
)

// State is a plan that is applied, in a state directory. Each of its steps has files of its own
// there.
type State struct {
	Plan *Plan
	// Decided is set when the decision of every step is in its state file. Nothing is converted
	// before that.
	Decided bool
	Undone  string // when bsonids undo began to restore the values; empty if it did not

	dir  string
	lock *flock.Flock
}

const stateFormat = "plan state 1"

// stateFile is the content of the file.
type stateFile struct {
	Format  string `json:"bsonids"`
	Digest  string `json:"digest"`
	Decided bool   `json:"decided"`
	Undone  string `json:"undone,omitempty"`
	Plan    string `json:"plan"` // YAML without comments
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
	s, err := LockState(dir)
	if err != nil && !errors.Is(err, ErrNoState) {
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

// LockState opens the state in dir. The error wraps [ErrNoState] if there is none; the State is then
// valid, and without a plan. The caller must close the State.
func LockState(dir string) (*State, error) {
	path := filepath.Join(dir, StateFile)
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	lock, err := convert.LockFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, err := ReadState(dir)
	switch {
	case errors.Is(err, ErrNoState):
		return &State{dir: dir, lock: lock}, err
	case err != nil:
		return nil, errors.Join(err, lock.Unlock())
	}
	s.lock = lock
	return s, nil
}

// ReadState reads the state in dir without locking it.
func ReadState(dir string) (*State, error) {
	path := filepath.Join(dir, StateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoState)
	}
	if err != nil {
		return nil, err
	}
	var f stateFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil || f.Format != stateFormat {
		return nil, fmt.Errorf("%s: it is not the state of a plan of this version", path)
	}
	p, err := Parse([]byte(f.Plan))
	if err != nil || p.Digest() != f.Digest {
		return nil, fmt.Errorf("%s: it is damaged", path)
	}
	return &State{Plan: p, Decided: f.Decided, Undone: f.Undone, dir: dir}, nil
}

// Save replaces the state file atomically.
func (s *State) Save() error {
	b, err := json.MarshalIndent(stateFile{stateFormat, s.Plan.Digest(), s.Decided, s.Undone, s.Plan.canonical()}, "", "  ")
	if err != nil {
		return err
	}
	return convert.ReplaceFile(s.Path(StateFile), append(b, '\n'))
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

// Close unlocks the directory, if it is locked.
func (s *State) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Unlock()
}
