package record

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Runs returns all runs that convert or undo, without their decisions, sorted by when they began.
func Runs(ctx context.Context, db *mongo.Database) ([]*Run, error) {
	return find[*Run](ctx, collection(db), bson.D{{Key: "kind", Value: bson.D{{Key: "$in", Value: bson.A{Convert, Undo}}}}}, "started", "epoch")
}

// Alive reports whether a run that has not ended has shown a sign of life within some seconds.
func (r *Run) Alive(now time.Time) bool { return r.Ended == nil && !r.expired(now.Add(-lease)) }

// Wrote reports whether the run has changed values of its collection, or may have: values that its log has.
func (r *Run) Wrote() bool {
	return r.Kind == Convert && r.Into == "" && (r.Log.Size > 0 || r.Progress.Changed > 0)
}

// Stands reports whether the run has changed values of its collection, and no undo has restored them.
func (r *Run) Stands() bool { return r.Wrote() && (r.Undone == nil || !r.Undone.Complete) }

// Copied reports whether the run has begun to write a copy.
func (r *Run) Copied() bool {
	return r.Kind == Convert && r.Into != "" && (r.IntoUUID != nil || r.Progress.Changed > 0)
}

// Restored reports whether an undo has restored the values of the run.
func (r *Run) Restored() bool { return r.Undone != nil && r.Undone.Complete && !r.Undone.Lost }

// Remains reports whether the collection may have values that the run has changed, and that were not given up: no undo has
// restored them, or one went without the undo log of the run, or without its end.
func (r *Run) Remains() bool {
	return r.Wrote() && !r.Restored() && (r.Undone == nil || !r.Undone.GivenUp)
}

// MarkUndone records in the documents of runs, which their random ids name, how far this run, an undo, has restored their
// values.
func (l *Lock) MarkUndone(ctx context.Context, runs []string, is Undone) error {
	if len(runs) == 0 {
		return nil
	}
	is.By = l.run.ID
	_, err := l.coll.UpdateMany(ctx, bson.D{{Key: "by.token", Value: bson.D{{Key: "$in", Value: runs}}}, {Key: "kind", Value: Convert}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "undone", Value: is}}}})
	return err
}

// MarkVerified records a proof in the document of a run, which has ended.
func MarkVerified(ctx context.Context, db *mongo.Database, r *Run, proven bool, version string) error {
	now, err := Now(ctx, db)
	if err != nil {
		return err
	}
	me := whoAmI(version)
	_, err = collection(db).UpdateOne(ctx, bson.D{{Key: "_id", Value: r.ID}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "verified", Value: Verified{At: now, Proven: proven, By: me.User + "@" + me.Host}}}}})
	return err
}
