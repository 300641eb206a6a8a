package convert

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// State is the progress of a conversion: the facts of its ledger.
type State struct {
	Identity Identity `json:"conversion"`

	// CollectionUUID is the UUID that the server gives the collection, in hexadecimal digits. It is
	// empty if the server gives none.
	CollectionUUID string `json:"collectionUUID,omitempty"`

	// Decisions determine which values are converted, one for each of the pairs. They are saved before the first
	// value is converted and do not change after that.
	Decisions []decide.Decision `json:"decisions,omitempty"`

	// Position is the _id up to which all documents are done, in the order of _id.
	Position *Position `json:"position,omitempty"`

	// UndoID is the id of the undo log. UndoOffset is the offset in it of the first entry that may
	// be about a document after Position. UndoSize is its size in bytes, at least. UndoLog is its path.
	UndoID     string `json:"undoId,omitempty"`
	UndoOffset int64  `json:"undoOffset,omitempty"`
	UndoSize   int64  `json:"undoSize,omitempty"`
	UndoLog    string `json:"undoLog,omitempty"`

	// SkipList is the path of the list of the values that are left unchanged, and Listed what it has.
	SkipList string `json:"skipList,omitempty"`
	Listed

	// Conversion is the id of this conversion in the record of conversions.
	Conversion string `json:"run,omitempty"`

	// Began is when the first run began: the order of conversions, if the record was dropped. It is nil if none did.
	Began *time.Time `json:"began,omitempty"`

	// Undone is the time at which bsonids undo began to restore the values. It is empty if it did
	// not.
	Undone string `json:"undone,omitempty"`

	// Created and Copied are steps of a conversion into a new collection. Created is set before the
	// collection is created, Copied when all documents were copied.
	Created bool `json:"created,omitempty"`
	Copied  bool `json:"copied,omitempty"`

	// Stream is the position in the change stream of the source. It is nil if the copy does not
	// follow its source.
	Stream *StreamPosition `json:"stream,omitempty"`

	Done bool `json:"done"`
	// Changed, Values and Skipped have the counts of the documents up to Position. What a run that was
	// killed changed after that is found by the undo log.
	Changed int64 `json:"changedDocuments"`
	Values  int64 `json:"changedValues,omitempty"`
	Skipped int64 `json:"skippedDocuments,omitempty"`
}

// Position is a BSON value as its type and bytes. Any JSON form of the value could lose
// information.
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

// Begun reports whether a run has written anything.
func (s State) Begun() bool { return s.Position != nil || s.UndoID != "" || s.Created }

// Complete reports whether all documents are converted. A copy that follows its source is never done.
func (s State) Complete() bool { return s.Done || s.Stream != nil && s.Stream.Compared }

// CopyGone makes a copy that was dropped be made again.
func (s *State) CopyGone() {
	s.Done, s.Copied, s.Position, s.Changed, s.Values, s.Skipped = false, false, nil, 0, 0, 0
}

// stateOf returns the state that the facts of a ledger are. The error describes what is wrong.
func stateOf(facts ledger.Facts) (s State, err error) {
	if err := facts.Decode(&s); err != nil {
		return State{}, err
	}
	switch p := s.Position; {
	case s.Identity.Database == "":
		return State{}, fmt.Errorf("%w: it has no conversion", ledger.ErrFormat)
	case p != nil && (p.Type == 0 || p.raw().Validate() != nil):
		return State{}, fmt.Errorf("%w: the position is not a BSON value", ledger.ErrFormat)
	case s.UndoOffset < 0 || s.UndoSize < 0 || s.Listed.Size < 0 || s.Changed < 0 || s.Skipped < 0:
		return State{}, fmt.Errorf("%w: a negative number", ledger.ErrFormat)
	}
	if s.Stream != nil {
		if err := s.Stream.validate(); err != nil {
			return State{}, fmt.Errorf("%w: %w", ledger.ErrFormat, err)
		}
	}
	return s, nil
}

// StateFile is the ledger of a conversion. Only one process at a time can open it. It is not safe for
// concurrent use.
type StateFile struct {
	State
	*ledger.File
	list *SkipList // nil if there is none
}

// OpenState opens the ledger at path, or creates a new one if the file does not exist. It returns
// an error if the ledger is of another conversion, or if another process uses the file. The caller
// must close the StateFile.
func OpenState(path string, id Identity) (*StateFile, error) {
	fail := func(err error) (*StateFile, error) { return nil, &RecordError{StateRecord, path, err} }
	file, err := ledger.OpenFile(path)
	if err != nil {
		return fail(err)
	}
	f := &StateFile{State: State{Identity: id}, File: file}
	if len(file.Facts()) == 0 { // it is new, or a process was killed after it made the file
		err = f.Save()
	} else if f.State, err = stateOf(file.Facts()); err == nil && !f.Identity.Equal(id) {
		err = fmt.Errorf("it belongs to another conversion: %s", f.Identity)
	}
	if err != nil {
		return fail(errors.Join(err, f.Close()))
	}
	return f, nil
}

// ReadState reads the state at path without locking it.
func ReadState(path string) (s State, err error) {
	l, err := ledger.ReadFile(path)
	if err == nil {
		s, err = stateOf(l.Facts())
	}
	if err != nil {
		return State{}, &RecordError{StateRecord, path, err}
	}
	return s, nil
}

// Bind records the UUID that the server gives the collection; id is nil if the server gives none.
// Bind returns an error if the state has another UUID: the collection is in another deployment or
// was dropped and created again, so its progress is unknown.
func (f *StateFile) Bind(id *bson.Binary) error {
	if id == nil {
		return nil
	}
	is := hex.EncodeToString(id.Data)
	if was := f.CollectionUUID; was != "" && was != is {
		return &RecordError{StateRecord, f.Path(), errors.New("it belongs to another collection with the same name, in another deployment or dropped since")}
	}
	f.CollectionUUID = is
	return f.Save()
}

// Lists sets the list of the values that are left unchanged.
func (f *StateFile) Lists(l *SkipList) error {
	path, err := filepath.Abs(l.Path())
	if err != nil {
		return err
	}
	f.list, f.SkipList = l, path
	return f.Save()
}

// Save writes to the ledger what has changed since the last Save. It syncs the skip list first: the state
// must not record a document as done while its skipped values can still be lost.
func (f *StateFile) Save() error {
	if f.list != nil {
		var err error
		if f.Listed, err = f.list.Listed(); err != nil {
			return err
		}
	}
	facts, err := ledger.FactsOf(f.State)
	if err == nil {
		err = f.Set(facts)
	}
	if err != nil {
		return &RecordError{StateRecord, f.Path(), err}
	}
	return nil
}

// Begin writes the id of a run to the ledger, before it is in the record.
func (f *StateFile) Begin(run string) error {
	if f.Began == nil {
		now := time.Now().UTC()
		f.Began = &now
		if err := f.Save(); err != nil {
			return err
		}
	}
	if err := f.File.Begin(run); err != nil {
		return &RecordError{StateRecord, f.Path(), err}
	}
	return nil
}
