package record

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
)

// decided returns the runs of conversions that a filter selects which have decisions, with these, and were not undone.
func decided(ctx context.Context, db *mongo.Database, which bson.E) ([]*Run, error) {
	runs, err := fetch[*Run](ctx, collection(db), bson.D{which, {Key: "kind", Value: Convert},
		{Key: "decisions", Value: bson.D{{Key: "$exists", Value: true}}}}, options.Find(), "started", "epoch")
	return slices.DeleteFunc(runs, func(r *Run) bool { return r.Undone != nil }), err
}

// Earlier returns the decisions of the runs that converted documents which the collection with the UUID may have, except
// those that another filter selects.
func Earlier(ctx context.Context, db *mongo.Database, name string, uuid *bson.Binary, filter string) (all []decide.Decision, err error) {
	if uuid == nil {
		return nil, nil
	}
	earlier, err := history(ctx, db, name, uuid)
	ids := bson.A{}
	for _, r := range earlier {
		if r.Filter == "" || r.Filter == filter {
			ids = append(ids, r.ID)
		}
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	runs, err := decided(ctx, db, bson.E{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}})
	for _, r := range runs {
		all = append(all, r.Decisions...)
	}
	return all, err
}
