package documents

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Key returns an _id as a map key.
func Key(id bson.RawValue) string { return string(byte(id.Type)) + string(id.Value) }

// ID returns the _id of a document.
func ID(doc bson.Raw) bson.RawValue { return doc.Lookup("_id") }

// IDs returns the _ids of documents, of which id returns one.
func IDs[T any](all []T, id func(T) bson.RawValue) []bson.RawValue {
	ids := make([]bson.RawValue, len(all))
	for i, doc := range all {
		ids[i] = id(doc)
	}
	return ids
}

// ByID returns the documents with the ids that match the filter, in a map whose keys are those of [Key]. The filter
// and the projection may be nil.
func ByID(ctx context.Context, coll *mongo.Collection, ids []bson.RawValue, filter, projection bson.D) (map[string]bson.Raw, error) {
	found := make(map[string]bson.Raw, len(ids))
	err := EachByID(ctx, coll, ids, filter, projection, func(docs []bson.Raw) error {
		for _, doc := range docs {
			found[Key(doc.Lookup("_id"))] = doc
		}
		return nil
	})
	return found, err
}

// MaxAsked is the size in bytes of the ids that one query has. A larger one is asked for alone.
const MaxAsked = 8 << 20

// EachByID calls visit for each page of what [ByID] returns: together, documents may be larger than the memory.
func EachByID(ctx context.Context, coll *mongo.Collection, ids []bson.RawValue, filter, projection bson.D, visit func(docs []bson.Raw) error) error {
	for len(ids) > 0 {
		n, size := 0, 0
		for ; n < len(ids) && (n == 0 || size+len(ids[n].Value) <= MaxAsked); n++ {
			size += len(ids[n].Value) + 16 // with its place in the array
		}
		find := bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids[:n]}}}}
		if len(filter) > 0 {
			find = append(find, bson.E{Key: "$and", Value: bson.A{filter}})
		}
		p := &Pages{Collection: coll, Projection: projection, Filter: find, Size: int64(n) + 1} // more than there are
		if err := p.Each(patience.Undated(ctx), nil, visit); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
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
	Passes bool // the same may succeed later
}

func (e *Error) Error() string { return fmt.Sprintf("document with _id %s: %s", e.ID, e.Reason) }
