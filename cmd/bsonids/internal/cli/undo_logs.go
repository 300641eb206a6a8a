package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// expectedLog is what the state file and the record say about an undo log.
type expectedLog struct {
	collection string
	conversion string // the name of the conversion in the record
	id         string // of the log; empty if it may not have been created
	size       int64  // in bytes, at least
	uuid       string // of the collection, in hexadecimal digits; empty if it is not known
}

// expectedBy returns what the state file of a conversion says about its undo log.
func expectedBy(s convert.State) expectedLog {
	return expectedLog{s.Identity.Collection, s.Conversion, s.UndoID, s.UndoSize, s.CollectionUUID}
}

// inRecord adds what the record says. A record that the user may not read adds nothing.
func (w expectedLog) inRecord(ctx context.Context, db *mongo.Database) (expectedLog, error) {
	l, err := record.LogOf(ctx, db, w.collection, w.conversion, w.id)
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		return w, nil
	}
	if w.id == "" {
		w.id = l.ID
	}
	w.size = max(w.size, l.Size)
	if w.uuid == "" && l.UUID != nil {
		w.uuid = hex.EncodeToString(l.UUID.Data)
	}
	return w, err
}

// replaced reports whether the collection is another one than that which was converted. Documents that
// it lacks were then not deleted: they may be in a collection of another name.
func (w expectedLog) replaced(spec *mongo.CollectionSpecification) bool {
	return w.uuid != "" && spec.UUID != nil && hex.EncodeToString(spec.UUID.Data) != w.uuid
}

// replacedError returns the error of a command that does not find what was converted.
func replacedError(namespace string) error {
	return &failure.Error{Kind: failure.Failed, Text: namespace + " is another collection than the one that was converted, which was dropped or renamed: " +
		"what became of its values is unknown; give the collection its name back"}
}

// in returns an error if the log at path lacks entries. A log that may not have been created may be
// missing.
func (w expectedLog) in(path string) error {
	log, err := convert.ReadUndoLog(path)
	if errors.Is(err, os.ErrNotExist) && w.id == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(log.Covers(w.id, w.size), log.Close())
}

// logsWhole returns an error that names each undo log of the plan, and each state file, that is
// missing or lacks entries.
func (o *undoOptions) logsWhole(ctx context.Context, db *mongo.Database, s *plan.State) error {
	var broken []string
	var cause error
	add := func(err error) {
		broken, cause = append(broken, nameless(err)), errors.Join(cause, err)
	}
	for _, st := range s.Plan.Steps() {
		if st.Into != "" { // nothing was changed
			continue
		}
		w := expectedLog{collection: st.Collection}
		if s.Decided {
			state, err := stateOf(s, st)
			if err != nil {
				add(err)
				continue
			}
			w = expectedBy(state)
		}
		if !o.noRecord {
			var elsewhere record.Log
			err := o.load.patience.Do(ctx, func() (err error) {
				if w, err = w.inRecord(ctx, db); err == nil && w.id == "" {
					elsewhere, err = unrestored(ctx, db, st)
				}
				return err
			})
			if err != nil {
				return err
			}
			if elsewhere.ID != "" {
				add(fmt.Errorf("%s: the collection %s was converted with the undo log %s", s.Path(st.State()), quoted(st.Collection), elsewhere.Path))
				continue
			}
		}
		if err := w.in(s.Path(st.UndoLog())); err != nil {
			add(err)
		}
	}
	if cause == nil {
		return nil
	}
	return incompleteLogs(strings.Join(broken, "; "), "values would stay converted", cause)
}

// identityOf returns the identity of the conversion of a step.
func identityOf(database string, st plan.Step) convert.Identity {
	return convert.Identity{Database: database, Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields}
}

// unrestored returns the undo log of the last conversion as in the step whose values were not restored,
// by the record. A state directory that is an earlier copy does not know it. A record that the user may
// not read has none.
func unrestored(ctx context.Context, db *mongo.Database, st plan.Step) (record.Log, error) {
	l, err := record.Unrestored(ctx, db, record.Run{Collection: st.Collection, From: st.From, To: st.To, Fields: st.Fields})
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		return record.Log{}, nil
	}
	return l, err
}

// logWhole returns an error if the undo log lacks entries. It returns what is known of the log.
func (o *undoOptions) logWhole(ctx context.Context, db *mongo.Database, log *convert.UndoReader) (expectedLog, error) {
	w := expectedLog{collection: log.Identity.Collection, id: log.ID}
	if s, err := convert.ReadState(log.State); err == nil && s.UndoID == log.ID {
		w = expectedBy(s)
	}
	if !o.noRecord {
		var err error
		if w, err = w.inRecord(ctx, db); err != nil {
			return w, err
		}
	}
	if err := log.Covers(w.id, w.size); err != nil {
		return w, incompleteLogs(nameless(err), "values would stay converted", err)
	}
	return w, nil
}

func incompleteLogs(text, so string, err error) error {
	return &failure.Error{Kind: failure.Failed, Text: text + ": " + so + " without what is missing; put the files back", Err: err}
}

// nameless returns the text of an error of a file, without the name of an operation.
func nameless(err error) string {
	var path *os.PathError
	if !errors.As(err, &path) {
		return err.Error()
	}
	return path.Path + ": " + path.Err.Error()
}
