package apply

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
)

// copyGone makes a copy that is complete be made again if it was dropped.
func (w *worker) copyGone(ctx context.Context) error {
	if w.ID.Into == "" || !w.state.Done {
		return nil
	}
	there, err := w.db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: w.ID.Into}})
	if err != nil || len(there) > 0 {
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
