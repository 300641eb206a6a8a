package record

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Decision decodes the decision of the last run that has the collection, representations, fields
// query and division of want. It reports whether there is such a run. Runs that were undone are ignored. If
// the server does not distinguish a collection from another one with the same name, all runs are
// ignored, except those of a division.
func Decision(ctx context.Context, db *mongo.Database, want Run, decision any) (bool, error) {
	if want.UUID == nil && want.Division == "" {
		return false, nil
	}
	cur, err := collection(db).Find(ctx, bson.D{{Key: "collection", Value: want.Collection}, {Key: "kind", Value: Convert},
		{Key: "from", Value: want.From}, {Key: "to", Value: want.To}, {Key: "decision", Value: bson.D{{Key: "$exists", Value: true}}}},
		options.Find().SetSort(bson.D{{Key: "epoch", Value: -1}}))
	if err != nil {
		return false, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	for cur.Next(ctx) {
		var r Run
		if err := cur.Decode(&r); err != nil {
			return false, err
		}
		if r.UUID == nil && r.Division == "" || !sameCollection(&r, &want) || r.Undone != nil || r.Query != want.Query || r.Into != want.Into && want.Division != "" ||
			r.Division != want.Division || !slices.Equal(r.Fields, want.Fields) {
			continue
		}
		return true, cur.Current.Lookup("decision").Unmarshal(decision)
	}
	return false, cur.Err()
}

// Others calls f with the decisions of the runs that converted documents of want from another order
// of the same subtype. unmarshal decodes a decision. Runs that were undone are ignored, and runs of
// documents that another query selects.
func Others(ctx context.Context, db *mongo.Database, want Run, f func(unmarshal func(decision any) error) error) error {
	if want.UUID == nil {
		return nil
	}
	cur, err := collection(db).Find(ctx, bson.D{{Key: "collection", Value: want.Collection}, {Key: "kind", Value: Convert},
		{Key: "fromSubtype", Value: want.FromSubtype}, {Key: "decision", Value: bson.D{{Key: "$exists", Value: true}}}})
	if err != nil {
		return err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	for cur.Next(ctx) {
		var r Run
		if err := cur.Decode(&r); err != nil {
			return err
		}
		if r.From == want.From || r.UUID == nil || !r.UUID.Equal(*want.UUID) || r.Undone != nil || r.Query != "" && r.Query != want.Query {
			continue
		}
		if err := f(func(decision any) error { return cur.Current.Lookup("decision").Unmarshal(decision) }); err != nil {
			return err
		}
	}
	return cur.Err()
}
