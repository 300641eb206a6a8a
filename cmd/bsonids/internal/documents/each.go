package documents

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Each calls visit for each document that matches the filter, in the order of the server. A document is
// valid until visit returns. It returns the error of the server or of visit.
func Each(ctx context.Context, coll *mongo.Collection, filter bson.D, visit func(bson.Raw) error) error {
	cur, err := coll.Find(ctx, filter, options.Find().SetBatchSize(2000))
	if err != nil {
		return err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	for cur.Next(ctx) {
		if err := visit(cur.Current); err != nil {
			return err
		}
	}
	return cur.Err()
}
