package apply

import (
	"context"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// copyGone makes a copy that is complete be made again if it was dropped.
func (w *worker) copyGone(ctx context.Context) error {
	if w.ID.Into == "" || !w.state.Done {
		return nil
	}
	dropped, err := migration.Dropped(ctx, w.db, []string{w.state.Conversion}, w.ID.Into)
	if err != nil || len(dropped) == 0 {
		return err
	}
	w.Warn("%s.%s is not there any more: it is made again", w.ID.Database, w.ID.Into)
	w.state.CopyGone()
	return w.state.Save()
}

// tell makes the record have that a copy is done, with a run of its own. A run that was killed after it had saved
// its state did not record its end, and the cutover waits for that.
func (w *worker) tell(ctx context.Context, did convert.Totals) error {
	if w.ID.Into == "" {
		return nil
	}
	var run *migration.Claim
	err := w.Do(ctx, func() error {
		runs, err := record.Copies(ctx, w.db, w.ID.Collection)
		for _, r := range runs {
			if run == nil && r.Conversion == w.state.Conversion && r.Outcome != record.Done {
				run, err = w.begin(ctx, convert.Options{Part: w.Part, State: w.state})
			}
		}
		return err
	})
	if err != nil || run == nil {
		return err
	}
	run.Report(did)
	return run.End(nil)
}

// logged returns an error if the undo log of a conversion that is done lacks entries.
func (w *worker) logged() error {
	if w.UndoLog == "" {
		return nil
	}
	if err := migration.LogOf(w.state.State).In(w.UndoLog); err != nil {
		return migration.IncompleteLogs(migration.Nameless(err), "the conversion is done, and nothing restores its values", err)
	}
	return nil
}
