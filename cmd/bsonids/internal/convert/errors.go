// Package convert changes UUIDs in a collection from one representation to another. A conversion
// can be stopped at any moment and never overwrites what another program wrote.
package convert

import (
	"fmt"
)

// Record identifies one of the files of a migration.
type Record int

// The files of a migration.
const (
	LedgerRecord Record = iota
	UndoRecord
	SkipRecord
)

func (r Record) String() string {
	return [...]string{"the ledger", "the undo log", "the skip list"}[r]
}

// RecordError is an error of one of the files of a migration, at Path.
type RecordError struct {
	Record Record
	Path   string
	Err    error
}

func (e *RecordError) Error() string { return fmt.Sprintf("%s %s: %v", e.Record, e.Path, e.Err) }

// Unwrap returns the underlying error.
func (e *RecordError) Unwrap() error { return e.Err }

func (u *UndoReader) fail(err error) error { return &RecordError{UndoRecord, u.file.Name(), err} }
