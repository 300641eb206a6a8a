package convert

import (
	"encoding/hex"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// State is the progress of a conversion: its facts in the ledger of the migration. It is not safe for concurrent use.
type State struct {
	// CollectionUUID is the UUID that the server gives the collection, in hexadecimal digits. It is
	// empty if the server gives none.
	CollectionUUID string `json:"collectionUUID,omitempty"`

	// Decisions determine which values are converted, one for each of the pairs. They are saved before the first
	// value is converted and do not change after that.
	Decisions []decide.Decision `json:"decisions,omitempty"`

	// Position is the _id up to which all documents are done, in the order of _id.
	Position *Position `json:"position,omitempty"`

	// UndoID is the id of the undo log, which is here before the log is made. UndoOffset is the offset in it of
	// the first entry that may be about a document after Position. UndoSize is its size in bytes, at least, and 0
	// until it was made.
	UndoID     string `json:"undoId,omitempty"`
	UndoOffset int64  `json:"undoOffset,omitempty"`
	UndoSize   int64  `json:"undoSize,omitempty"`

	Listed // what the list of the values has that are left unchanged

	// Conversion is the id of this conversion in the record of conversions.
	Conversion string `json:"run,omitempty"`

	// Undone is the time at which bsonids undo began to restore the values, in RFC 3339. It is empty if it did
	// not.
	Undone string `json:"undone,omitempty"`

	// Created and Copied are steps of a conversion into a new collection. Created is set before the
	// collection is created, Copied when all documents were copied.
	Created bool `json:"created,omitempty"`
	Copied  bool `json:"copied,omitempty"`
	// CopyUUID is the UUID that the server gave the copy, in hexadecimal digits. It is empty if it is not known. Another
	// collection of the name of the copy must have no documents.
	CopyUUID string `json:"copyUUID,omitempty"`

	Done bool `json:"done"`
	// Changed, Values and Skipped have the counts of the documents up to Position. What a run that was
	// killed changed after that is found by the undo log.
	Changed int64 `json:"changedDocuments"`
	Values  int64 `json:"changedValues,omitempty"`
	Skipped int64 `json:"skippedDocuments,omitempty"`

	file  *ledger.File // nil if the ledger is only read
	under string       // as of [ledger.Ledger.Set]
	list  *SkipList    // nil if there is none
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

// Begun reports whether a run may have written anything to the database.
func (s *State) Begun() bool { return s.UndoSize > 0 || s.Created }

// HasFiles reports whether a run may have made an undo log, or listed values.
func (s *State) HasFiles() bool { return s.UndoID != "" || s.Created }

// CopyGone makes a copy that was dropped be made again.
func (s *State) CopyGone() {
	s.Done, s.Copied, s.Position, s.Changed, s.Values, s.Skipped = false, false, nil, 0, 0, 0
}

// StateOf returns the state that facts of a ledger are. The error describes what is wrong.
func StateOf(facts ledger.Facts) (*State, error) {
	s := &State{}
	if err := facts.Decode(s); err != nil {
		return nil, err
	}
	switch p := s.Position; {
	case s.Conversion == "":
		return nil, fmt.Errorf("%w: it lacks a conversion", ledger.ErrFormat)
	case p != nil && (p.Type == 0 || p.raw().Validate() != nil):
		return nil, fmt.Errorf("%w: the position is not a BSON value", ledger.ErrFormat)
	case s.UndoOffset < 0 || s.UndoSize < 0 || s.Listed.Size < 0 || s.Changed < 0 || s.Skipped < 0:
		return nil, fmt.Errorf("%w: a negative number", ledger.ErrFormat)
	}
	return s, nil
}

// SaveTo makes Save write to the ledger in a file, facts whose names begin with under.
func (s *State) SaveTo(f *ledger.File, under string) { s.file, s.under = f, under }

// Bind records the UUID that the server gives the collection; id is nil if the server gives none.
// Bind returns an error if the state has another UUID: the collection is in another deployment or
// was dropped and created again, so its progress is unknown.
func (s *State) Bind(id *bson.Binary) error {
	if id == nil {
		return nil
	}
	is := hex.EncodeToString(id.Data)
	if was := s.CollectionUUID; was != "" && was != is {
		return s.fail(errors.New("it is about another collection with the same name, in another deployment or dropped since"))
	}
	s.CollectionUUID = is
	return s.Save()
}

// Lists sets the list of the values that are left unchanged.
func (s *State) Lists(l *SkipList) { s.list = l }

// Save writes to the ledger what has changed since the last Save. It syncs the skip list first: the state
// must not record a document as done while its skipped values can still be lost.
func (s *State) Save() error {
	if s.list != nil {
		var err error
		if s.Listed, err = s.list.Listed(); err != nil {
			return err
		}
	}
	facts := ledger.Facts{}
	err := facts.Add("", s)
	if err == nil {
		err = s.file.Set(s.under, facts)
	}
	if err != nil {
		return s.fail(err)
	}
	return nil
}

// Knows reports whether the ledger has a run.
func (s *State) Knows(run string) bool { return s.file.Knows(run) }

// Begin writes the id of a run to the ledger, before it is in the record.
func (s *State) Begin(run string) error {
	if err := s.file.Begin(run); err != nil {
		return s.fail(err)
	}
	return nil
}

// BeginUndoLog writes the id of the undo log to the ledger, before the log is made.
func (s *State) BeginUndoLog() error {
	if s.UndoID != "" {
		return nil
	}
	s.UndoID = ledger.NewID()
	return s.Save()
}

func (s *State) fail(err error) error { return &RecordError{LedgerRecord, s.file.Path(), err} }
