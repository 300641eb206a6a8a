package convert

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
)

// State is the progress of a conversion.
type State struct {
	Format   string   `json:"bsonids"` // stateFormat
	Identity Identity `json:"conversion"`

	// CollectionUUID is the UUID that the server gives the collection, in hexadecimal digits. It is
	// empty if the server gives none.
	CollectionUUID string `json:"collectionUUID,omitempty"`

	// Decision determines which values are converted. It is saved before the first value is
	// converted and does not change after that.
	Decision *decide.Decision `json:"decision,omitempty"`

	// Position is the _id up to which all documents are done, in the order of _id.
	Position *Position `json:"position,omitempty"`

	// UndoID is the id of the undo log. UndoOffset is the offset in it of the first entry that may
	// be about a document after Position. UndoSize is its size in bytes, at least.
	UndoID     string `json:"undoId,omitempty"`
	UndoOffset int64  `json:"undoOffset,omitempty"`
	UndoSize   int64  `json:"undoSize,omitempty"`

	// SkipList is the path of the list of the values that are left unchanged.
	SkipList string `json:"skipList,omitempty"`

	// Conversion is the id of this conversion in the record of conversions.
	Conversion string `json:"run,omitempty"`

	// Undone is the time at which bsonids undo began to restore the values. It is empty if it did
	// not.
	Undone string `json:"undone,omitempty"`

	// Created, Copied and Indexed are the steps of a conversion into a new collection. Created is
	// set before the collection is created, the others when their step is complete.
	Created bool `json:"created,omitempty"`
	Copied  bool `json:"copied,omitempty"`
	Indexed bool `json:"indexed,omitempty"`

	// Stream is the position in the change stream of the source. It is nil if the copy does not
	// follow its source.
	Stream *StreamPosition `json:"stream,omitempty"`

	Done bool `json:"done"`
	// Changed, Values and Skipped have the counts of the documents up to Position. What a run that was
	// killed changed after that is found by the undo log.
	Changed int64 `json:"changedDocuments"`
	Values  int64 `json:"changedValues,omitempty"`
	Skipped int64 `json:"skippedDocuments,omitempty"`

	// CRC is the checksum of the file up to its place. A wrong position would
	// leave values as they are without a report.
	CRC string `json:"crc,omitempty"`
}

// A state of the first format has no checksum. It is read but not written.
const (
	stateFormat  = "state 2"
	stateFormat1 = "state 1"
)

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

// ParseState parses what State.encode wrote. The error describes what is wrong.
func ParseState(b []byte) (State, error) {
	var s State
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return State{}, fmt.Errorf("not a state file: %w", err)
	}
	if d.More() {
		return State{}, errors.New("not a state file: data after the end")
	}
	switch {
	case s.Format == stateFormat:
		if !sealed(bytes.TrimSpace(b)) {
			return State{}, errors.New("the checksum is wrong: the file is damaged")
		}
	case s.Format != stateFormat1:
		return State{}, fmt.Errorf("unsupported version of the state file: %q, want %q", s.Format, stateFormat)
	case s.CRC != "":
		return State{}, errors.New("a state file of the first version has no checksum: the file is damaged")
	}
	s.Format, s.CRC = stateFormat, ""
	if p := s.Position; p != nil {
		if err := p.raw().Validate(); err != nil || p.Type == 0 {
			return State{}, errors.New("not a state file: the position is not a BSON value")
		}
	}
	if s.Stream != nil {
		if err := s.Stream.validate(); err != nil {
			return State{}, fmt.Errorf("not a state file: %w", err)
		}
	}
	if s.UndoOffset < 0 || s.UndoSize < 0 || s.Changed < 0 || s.Values < 0 || s.Skipped < 0 {
		return State{}, errors.New("not a state file: a negative number")
	}
	return s, nil
}

func (s State) encode() ([]byte, error) {
	s.CRC = ""
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(seal(b), '\n'), nil
}

// StateFile is a state on disk. Only one process at a time can open it. It is not safe for
// concurrent use.
type StateFile struct {
	State
	path string
	lock *flock.Flock
}

// OpenState reads the state at path, or creates a new state if the file does not exist. It returns
// an error if the state is of another conversion, or if another process uses the file. The caller
// must close the StateFile.
func OpenState(path string, id Identity) (*StateFile, error) {
	fail := func(err error) (*StateFile, error) { return nil, &RecordError{StateRecord, path, err} }
	lock, err := LockFile(path)
	if err != nil {
		return fail(err)
	}
	f := &StateFile{State: State{Format: stateFormat, Identity: id}, path: target(path), lock: lock}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := f.Save(); err != nil { // fail now if the path cannot be written
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	case err != nil:
		return fail(errors.Join(err, f.Close()))
	}
	if f.State, err = ParseState(b); err != nil {
		return fail(errors.Join(err, f.Close()))
	}
	if !f.Identity.equal(id) {
		return fail(errors.Join(fmt.Errorf("it belongs to another conversion: %s.%s from %s to %s%s", f.Identity.Database,
			f.Identity.Collection, f.Identity.From, f.Identity.To, f.Identity.details()), f.Close()))
	}
	return f, nil
}

// ReadState reads the state at path without locking it.
func ReadState(path string) (State, error) {
	err := regular(path)
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return State{}, &RecordError{StateRecord, path, err}
	}
	s, err := ParseState(b)
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
		return &RecordError{StateRecord, f.path, errors.New("it belongs to another collection with the same name, in another deployment or dropped since")}
	}
	f.CollectionUUID = is
	return f.Save()
}

// Save replaces the state file atomically.
func (f *StateFile) Save() error {
	b, err := f.encode()
	if err == nil {
		err = ReplaceFile(f.path, b)
	}
	if err != nil {
		return &RecordError{StateRecord, f.path, err}
	}
	return nil
}

// Close unlocks the file.
func (f *StateFile) Close() error {
	// The lock file is not removed: otherwise two processes could lock different files of the same
	// name.
	return f.lock.Unlock()
}

const (
	sealBegin  = `,"crc":"`
	sealLength = len(sealBegin) + 8 + len(`"}`)
)

// seal adds the CRC-32C of a JSON object to it.
func seal(object []byte) []byte {
	body := object[:len(object)-1]
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(nil, `%s%s%08x"}`, body, sealBegin, sum)
}

// sealed reports whether the object has the correct checksum.
func sealed(object []byte) bool {
	n := len(object) - sealLength
	return n >= 0 && bytes.Equal(seal(append(bytes.Clone(object[:n]), '}')), object)
}
