package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// State is the directory of a migration, with its plan. What was done by the plan is in the record of the database.
type State struct {
	Plan *Plan // nil while it is made

	dir  string
	lock *flock.Flock // nil if the directory is only read
	made bool         // Create has made the directory
}

// Create makes the directory of a migration and locks it. It returns an error if there is something else at
// dir than an empty directory, or the one of a call that was killed before it had a plan. The caller must
// write the plan and close the State, or discard it.
func Create(dir string) (*State, error) {
	_, err := os.Stat(dir)
	s := &State{dir: dir, made: errors.Is(err, fs.ErrNotExist)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := fresh(dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have been there
		return nil, err
	}
	if s.lock, err = files.Lock(filepath.Join(dir, PlanFile)); err != nil {
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
		case name != EvidenceFile && name != DuplicatesFile && filepath.Join(dir, name) != files.LockPath(filepath.Join(dir, PlanFile)) && !strings.HasSuffix(name, ".tmp"):
			return fmt.Errorf("%s is not empty: name a new directory", dir)
		}
	}
	return nil
}

// Discard closes the directory, which has no plan, and removes what Create has made.
func (s *State) Discard() error {
	err := errors.Join(files.Discard(filepath.Join(s.dir, PlanFile), s.lock), os.RemoveAll(filepath.Join(s.dir, EvidenceFile)), os.RemoveAll(filepath.Join(s.dir, DuplicatesFile)))
	if s.made {
		_ = os.Remove(s.dir) // which fails if something else is in it
	}
	return err
}

// WritePlan writes the plan to its file, for a person who edits it.
func (s *State) WritePlan(p *Plan) error {
	return files.Replace(filepath.Join(s.dir, PlanFile), p.Text())
}

// ReadFile reads the plan of the directory dir. The error names the file.
func ReadFile(dir string) (*Plan, error) {
	path := filepath.Join(dir, PlanFile)
	p, err := Read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Look reads the directory of a migration without locking it.
func Look(dir string) (*State, error) {
	p, err := ReadFile(dir)
	if err != nil {
		return nil, err
	}
	return &State{Plan: p, dir: dir}, nil
}

// Lock locks the directory of a migration, and reads it. It returns an error if another process uses
// the directory. The caller must close the State.
func Lock(dir string) (*State, error) {
	if _, err := Look(dir); err != nil { // nothing is created
		return nil, err
	}
	lock, err := files.Lock(filepath.Join(dir, PlanFile))
	if err != nil {
		return nil, err
	}
	s, err := Look(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	s.lock = lock
	return s, nil
}

// LockPath returns the path of the lock of the directory.
func (s *State) LockPath() string { return files.LockPath(filepath.Join(s.dir, PlanFile)) }

// Groups returns the groups of steps of the plan.
func (s *State) Groups() [][]Step { return s.Plan.Groups() }

// Steps returns the steps in the order of the work.
func (s *State) Steps() []Step { return s.Plan.Steps() }

// Conversions returns the names that the conversions of all steps have in the record.
func (s *State) Conversions() (names []string) {
	for _, st := range s.Steps() {
		names = append(names, s.Plan.Conversion(st.Task))
	}
	return names
}

// Logs opens the undo logs in the directory, as [undolog.In] does.
func (s *State) Logs() (logs []*undolog.Reader, unread map[string]error, err error) {
	return undolog.In(s.dir)
}

// Glance opens the undo logs in the directory, as [undolog.Glance] does.
func (s *State) Glance() (logs []*undolog.Reader, unread map[string]error, err error) {
	return undolog.Glance(s.dir)
}

// Dir returns the path of the directory.
func (s *State) Dir() string { return s.dir }

// Close unlocks the directory, if it is locked.
func (s *State) Close() error {
	if s.lock == nil {
		return nil
	}
	// The lock file is not removed: otherwise two processes could lock different files of the same
	// name.
	return s.lock.Unlock()
}

// Converted is the last dump that was converted by a plan.
type Converted struct {
	Out   string          `json:"out"` // absolute, or "-" for standard output
	Ended string          `json:"ended"`
	Steps []ConvertedStep `json:"steps"` // as those of the plan
}

// ConvertedStep is what the conversion of one collection of a dump has changed.
type ConvertedStep struct {
	Values    int64 `json:"values"`
	Documents int64 `json:"documents"`
	Skipped   int64 `json:"documentsSkipped"`
}

// WriteConverted notes the last dump that was converted.
func (s *State) WriteConverted(c *Converted) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(s.dir, ConvertedFile), append(b, '\n'))
}

// Converted returns the last dump that was converted, or nil if there is none.
func (s *State) Converted() (*Converted, error) {
	path := filepath.Join(s.dir, ConvertedFile)
	b, err := files.ReadAtMost(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var c Converted
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err == nil && len(c.Steps) != len(s.Steps()) {
		return nil, nil // by the plan as it was
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &c, nil
}
