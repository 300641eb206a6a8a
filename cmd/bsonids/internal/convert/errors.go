// Package convert changes UUIDs in a collection to another representation. A conversion
// can be stopped at any moment and never overwrites what another program wrote.
package convert

import "fmt"

// The files of a migration.
const (
	LedgerRecord = "the ledger"
	UndoRecord   = "the undo log"
	SkipRecord   = "the skip list"
)

// RecordError is an error of one of the files of a migration, at Path.
type RecordError struct {
	Record string
	Path   string
	Err    error
}

func (e *RecordError) Error() string { return fmt.Sprintf("%s %s: %v", e.Record, e.Path, e.Err) }

// Unwrap returns the underlying error.
func (e *RecordError) Unwrap() error { return e.Err }

func (u *UndoReader) fail(err error) error { return &RecordError{UndoRecord, u.file.Name(), err} }
