package record

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Restore inserts a run of a conversion that has ended, if the record has no run of it that knows as much. It
// reports whether it did. Later runs are told from earlier ones by Started, which is now if it is zero. The ledger has the
// id of the run first.
func Restore(ctx context.Context, db *mongo.Database, r Run, l Ledger, version string) (bool, error) {
	coll, err := open(ctx, db)
	if err != nil {
		return false, err
	}
	runs, err := read(ctx, coll, r.Collection)
	if err != nil {
		return false, err
	}
	r.Epoch = 1
	for _, o := range runs {
		r.Epoch = o.Epoch + 1
		if o.Conversion == r.Conversion && o.Kind == Convert && o.UndoSize >= r.UndoSize && (o.Ended == nil || o.Outcome == Done || r.Outcome != Done) {
			return false, nil
		}
	}
	now, err := Now(ctx, db)
	if err != nil {
		return false, err
	}
	r.ID, r.By, r.Updated, r.Ended = id(r.Collection, r.Epoch), whoAmI(version), now, &now
	if r.Started.IsZero() {
		r.Started = now
	}
	r.Reason = "restored from the directory of the migration"
	if err := l.Begin(r.By.Token, now); err != nil {
		return false, err
	}
	_, err = coll.InsertOne(ctx, r)
	return err == nil, err
}

// Abandon marks a migration as one whose directory is lost, and ends its runs. Those that come later do not wait
// for it, and leave the fields of which it has converted some values within one subtype. The error is an [*Error] if
// the record does not have the migration, or if one of its runs has shown a sign of life.
func Abandon(ctx context.Context, db *mongo.Database, migration string) error {
	coll := collection(db)
	var p Plan
	err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: planID(migration)}}).Decode(&p)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return refuse(ErrForgotten, "the record of conversions, %s, has no migration %s; bsonids status --db prints those that it has", Name, migration)
	}
	if err != nil {
		return err
	}
	runs, err := find[*Run](ctx, coll, ofMigration(migration))
	if err != nil {
		return err
	}
	now, err := Now(ctx, db)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Ended == nil && !r.expired(now) {
			return refuseFor(r, ErrHeld, "has not ended", "; wait for it")
		}
	}
	for _, r := range runs {
		set := bson.D{{Key: "abandoned", Value: true}}
		if r.Ended == nil {
			// The server may still carry out what it sent last.
			lost := max(now.Sub(r.Updated.Add(lease)), 1)
			set = append(set, bson.E{Key: "ended", Value: now}, bson.E{Key: "outcome", Value: Stopped}, bson.E{Key: "lost", Value: lost}, bson.E{Key: "reason", Value: "the migration was abandoned"})
		}
		if _, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: r.ID}}, bson.D{{Key: "$set", Value: set}}); err != nil {
			return err
		}
	}
	_, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: p.ID}}, bson.D{{Key: "$set", Value: bson.D{{Key: "abandoned", Value: now}}}})
	return err
}

// Left is what an abandoned migration has converted in a collection within one subtype: some of the values of the
// fields, and nothing tells which.
type Left struct {
	Collection string
	UUID       *bson.Binary // nil if it is not known
	Pair       kinds.Pair
	At         time.Time
}

// Abandoned returns what abandoned migrations have left. What is done, and what was undone, is in one order, which the
// values tell.
func Abandoned(ctx context.Context, db *mongo.Database) (left []Left, err error) {
	runs, err := find[*Run](ctx, collection(db), bson.D{{Key: "abandoned", Value: true}, {Key: "kind", Value: Convert}}, "started")
	for i, r := range runs {
		switch later := func(o *Run) bool { return o.Conversion == r.Conversion }; {
		case slices.ContainsFunc(runs[i+1:], later), !r.SameSubtype(), r.Into != "", r.UndoSize == 0:
		case r.Undone == nil && r.Outcome == Done, r.Undone != nil && r.Undone.Complete:
		default:
			for _, p := range r.Pairs {
				if p.SameSubtype() {
					left = append(left, Left{r.Collection, r.UUID, p, r.Updated})
				}
			}
		}
	}
	return left, err
}
