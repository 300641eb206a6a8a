package convert

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/gofrs/flock"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Identity is what a state file, an undo log and a command line must agree in.
type Identity struct {
	Database   string   `json:"database"`
	Collection string   `json:"collection"`
	From       string   `json:"from"`
	To         string   `json:"to"`
	Fields     []string `json:"fields,omitempty"`
	Into       string   `json:"into,omitempty"`
	Part       string   `json:"part,omitempty"`
}

func (i Identity) equal(o Identity) bool {
	same := slices.Equal(i.Fields, o.Fields)
	i.Fields, o.Fields = nil, nil
	return same && i.same(o)
}

func (i Identity) same(o Identity) bool {
	return i.Database == o.Database && i.Collection == o.Collection && i.From == o.From && i.To == o.To && i.Into == o.Into && i.Part == o.Part
}

// State is how far a conversion has come.
type State struct {
	Format   string   `json:"bsonids"` // stateFormat
	Identity Identity `json:"conversion"`

	// CollectionUUID is what the server calls the collection, in hexadecimal digits; empty where it says nothing.
	CollectionUUID string `json:"collectionUUID,omitempty"`

	// Position is the _id up to which every document is done, in the order of _id.
	Position *Position `json:"position,omitempty"`

	// UndoID is the undo log's, and UndoOffset where in it those entries begin that documents after Position may have.
	UndoID     string `json:"undoId,omitempty"`
	UndoOffset int64  `json:"undoOffset,omitempty"`

	// Copied and Indexed say what is done of a conversion into a new collection, Created that it is being made.
	Created bool `json:"created,omitempty"`
	Copied  bool `json:"copied,omitempty"`
	Indexed bool `json:"indexed,omitempty"`

	Done    bool  `json:"done"`
	Changed int64 `json:"changedDocuments"`           // at least: a run that was killed has done more than it could write down
	Skipped int64 `json:"skippedDocuments,omitempty"` // likewise; those of a run that was killed may count twice
}

const stateFormat = "state 1"

// Position is a BSON value as type and octets, which JSON in any form would change.
type Position struct {
	Type  byte   `json:"type"`
	Value []byte `json:"value"` // in base64
}

func newPosition(v bson.RawValue) *Position { return &Position{byte(v.Type), v.Value} }

func (p *Position) raw() bson.RawValue {
	if p == nil {
		return bson.RawValue{}
	}
	return bson.RawValue{Type: bson.Type(p.Type), Value: p.Value}
}

// ParseState reads what State.encode wrote. The error says what is wrong with it.
func ParseState(b []byte) (State, error) {
	var s State
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return State{}, fmt.Errorf("not a state file: %w", err)
	}
	if d.More() {
		return State{}, errors.New("not a state file: something follows the state")
	}
	if s.Format != stateFormat {
		return State{}, fmt.Errorf("not a state file of this version: %q, want %q", s.Format, stateFormat)
	}
	if p := s.Position; p != nil {
		if err := p.raw().Validate(); err != nil || p.Type == 0 {
			return State{}, errors.New("not a state file: the position is no BSON value")
		}
	}
	if s.UndoOffset < 0 || s.Changed < 0 || s.Skipped < 0 {
		return State{}, errors.New("not a state file: a negative number")
	}
	return s, nil
}

func (s State) encode() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// StateFile is a state on disk, for one process at a time. It is not safe for concurrent use.
type StateFile struct {
	State
	path string
	lock *flock.Flock
}

// lockFile keeps other processes from the file at path, which need not exist.
func lockFile(path string) (*flock.Flock, error) {
	lock := flock.New(target(path) + ".lock")
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("another process is using it")
	}
	return lock, err
}

// target is path, or what it leads to where it is a symbolic link, which may not exist yet.
func target(path string) string {
	for range 40 { // as many as Linux follows
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// OpenState reads the state at path, or begins a new one where there is none yet. A state of another conversion, and a
// file that another process works with, are errors. Close it.
func OpenState(path string, id Identity) (*StateFile, error) {
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("--state %s: %w", path, err)
	}
	f := &StateFile{State: State{Format: stateFormat, Identity: id}, path: target(path), lock: lock}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := f.Save(); err != nil { // a path that cannot be written is better found out now
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	case err != nil:
		return nil, errors.Join(fmt.Errorf("--state: %w", err), f.Close())
	}
	if f.State, err = ParseState(b); err != nil {
		return nil, errors.Join(fmt.Errorf("--state %s: %w", path, err), f.Close())
	}
	if !f.Identity.equal(id) {
		return nil, errors.Join(fmt.Errorf("--state %s is of another conversion: of %s.%s from %s to %s%s", path, f.Identity.Database,
			f.Identity.Collection, f.Identity.From, f.Identity.To, f.Identity.details()), f.Close())
	}
	return f, nil
}

// Bind notes the UUID that the server gives the collection, nil where it gives none. It is an error if the state was begun
// on another collection: one of the same name in another deployment, or one that was dropped since. How far that one's
// conversion came says nothing about this one.
func (f *StateFile) Bind(id *bson.Binary) error {
	if id == nil {
		return nil
	}
	is := hex.EncodeToString(id.Data)
	if was := f.CollectionUUID; was != "" && was != is {
		return fmt.Errorf("--state %s was begun on another collection of this name: in another deployment, or dropped since", f.path)
	}
	f.CollectionUUID = is
	return f.Save()
}

func (i Identity) details() string {
	s := ""
	for _, f := range i.Fields {
		s += ", field " + f
	}
	if i.Into != "" {
		s += ", into " + i.Into
	}
	if i.Part != "" {
		s += ", part " + i.Part
	}
	return s
}

// Save puts the state in the place of the old one, so that at every moment one of the two is there whole.
func (f *StateFile) Save() error {
	b, err := f.encode()
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	if err := replaceFile(f.path, b); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// Close lets other processes have the file.
func (f *StateFile) Close() error {
	// The lock's file stays: removing it would let two processes hold locks on different files of one name.
	return f.lock.Unlock()
}

func replaceFile(path string, b []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(b); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable, where the system lets directories be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
