package cli

import (
	"context"
	"errors"
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
}

// expectedBy returns what the state file of a conversion says about its undo log.
func expectedBy(s convert.State) expectedLog {
	return expectedLog{s.Identity.Collection, s.Conversion, s.UndoID, s.UndoSize}
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
	return w, err
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
		if st.Into != "" || !s.Decided { // nothing was changed
			continue
		}
		state, err := convert.ReadState(s.Path(st.State()))
		if err != nil {
			add(err)
			continue
		}
		w := expectedBy(state)
		if !o.noRecord {
			err := o.load.patience.Do(ctx, func() (err error) {
				w, err = w.inRecord(ctx, db)
				return err
			})
			if err != nil {
				return err
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

// logWhole returns an error if the undo log lacks entries.
func (o *undoOptions) logWhole(ctx context.Context, db *mongo.Database, log *convert.UndoReader) error {
	w := expectedLog{collection: log.Identity.Collection, id: log.ID}
	if s, err := convert.ReadState(log.State); err == nil && s.UndoID == log.ID {
		w = expectedBy(s)
	}
	if !o.noRecord {
		var err error
		if w, err = w.inRecord(ctx, db); err != nil {
			return err
		}
	}
	if err := log.Covers(w.id, w.size); err != nil {
		return incompleteLogs(nameless(err), "values would stay converted", err)
	}
	return nil
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
