package documents

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Key returns an _id as a map key.
func Key(id bson.RawValue) string { return string(byte(id.Type)) + string(id.Value) }

// ByID returns the documents with the ids that match the filter, in a map whose keys are those of [Key]. The filter
// and the projection may be nil.
func ByID(ctx context.Context, coll *mongo.Collection, ids []bson.RawValue, filter, projection bson.D) (map[string]bson.Raw, error) {
	ctx = patience.Undated(ctx)
	if len(ids) == 0 {
		return map[string]bson.Raw{}, nil
	}
	find := bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
	if len(filter) > 0 {
		find = append(find, bson.E{Key: "$and", Value: bson.A{filter}})
	}
	cur, err := coll.Find(ctx, find, projected(projection))
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	docs := make(map[string]bson.Raw, len(ids))
	for cur.Next(ctx) {
		doc := slices.Clone(cur.Current)
		docs[Key(doc.Lookup("_id"))] = doc
	}
	return docs, cur.Err()
}

// projected returns options with a projection, which may be nil.
func projected(projection bson.D) *options.FindOptionsBuilder {
	if projection == nil {
		return options.Find()
	}
	return options.Find().SetProjection(projection)
}

// Error is the error of a document that cannot be converted or written.
type Error struct {
	ID     bson.RawValue
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("document with _id %s: %s", e.ID, e.Reason) }
