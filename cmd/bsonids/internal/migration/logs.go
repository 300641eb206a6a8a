package migration

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Log is what the ledger and the record say about the undo log of a conversion.
type Log struct {
	Collection string
	Conversion string // the name of the conversion in the record
	ID         string // of the log; empty if there is none
	Size       int64  // in bytes, at least; 0 if it may not have been created
	UUID       string // of the collection, in hexadecimal digits; empty if it is not known
}

// LogOf returns what the ledger says about the undo log of a conversion of the collection.
func LogOf(collection string, s *convert.State) Log {
	return Log{collection, s.Conversion, s.UndoID, s.UndoSize, s.CollectionUUID}
}

// InRecord adds what the record says. A record that the user may not read adds nothing.
func (l Log) InRecord(ctx context.Context, db *mongo.Database) (Log, error) {
	runs, err := record.OfLog(ctx, db, l.Collection, l.Conversion, l.ID)
	if Denied(err) {
		return l, nil
	}
	var r record.Run // what the last run that converts says, or else the first undo
	for _, o := range runs {
		l.Size = max(l.Size, o.UndoSize)
		if o.Kind == record.Convert || r.UndoID == "" {
			r = *o
		}
	}
	l.ID, l.Conversion = cmp.Or(l.ID, r.UndoID), cmp.Or(l.Conversion, r.Conversion)
	if l.UUID == "" && r.Kind == record.Convert && r.UUID != nil {
		l.UUID = hex.EncodeToString(r.UUID.Data)
	}
	return l, err
}

// Denied reports whether the user lacks a privilege.
func Denied(err error) bool {
	return err != nil && failure.Explain(err, "").Kind == failure.Denied
}

// Replaced reports whether the collection is another one than that which was converted. Documents that
// it lacks were then not deleted: they may be in a collection of another name.
func (l Log) Replaced(spec *mongo.CollectionSpecification) bool {
	return l.UUID != "" && spec.UUID != nil && hex.EncodeToString(spec.UUID.Data) != l.UUID
}

// ReplacedError returns the error of work that does not find what was converted.
func ReplacedError(namespace string) error {
	return &failure.Error{Kind: failure.Failed, Text: namespace + " is another collection than the one that was converted, which was dropped or renamed: " +
		"what became of its values is unknown; give the collection its name back"}
}

// In returns an error if the log at path lacks entries. A log that may not have been created may be
// missing.
func (l Log) In(path string) error {
	log, err := convert.ReadUndoLog(path)
	if errors.Is(err, os.ErrNotExist) && l.Size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(log.Covers(l.ID, l.Size), log.Close())
}

// IncompleteLogs returns the error of work that lacks entries of undo logs. so says what follows.
func IncompleteLogs(so string, broken ...error) error {
	var texts []string
	for _, err := range broken {
		text := err.Error()
		if path := (*os.PathError)(nil); errors.As(err, &path) { // without the name of the operation
			text = path.Path + ": " + path.Err.Error()
		}
		texts = append(texts, text)
	}
	return &failure.Error{Kind: failure.Failed, Text: strings.Join(texts, "; ") + ": " + so + " without what is missing; put the files back", Err: errors.Join(broken...)}
}
