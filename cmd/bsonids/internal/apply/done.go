package apply

import (
	"context"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
)

// copyGone makes a copy that is complete be made again if it was dropped.
func (w *worker) copyGone(ctx context.Context) error {
	if w.ID.Into == "" || !w.state.Done {
		return nil
	}
	dropped, err := migration.Dropped(ctx, w.db, w.ID.Into)
	if err != nil || len(dropped) == 0 {
		return err
	}
	w.Warn("%s.%s is not there any more: it is made again", w.ID.Database, w.ID.Into)
	w.state.CopyGone()
	return w.state.Save()
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
