package survey

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// Cost is how long the parts of a conversion take for a document, measured on a sample.
type Cost struct {
	Sample int           // documents
	Page   time.Duration // to read it in the order of _id
	Find   time.Duration // to find it by its _id, as an update does
}

// measured is the number of documents in a sample.
const measured = 2000

// measure reads the first documents as a conversion does, and finds them by their _ids.
func measure(ctx context.Context, coll *mongo.Collection, now func() time.Time) (c Cost, err error) {
	p := &documents.Pages{Collection: coll, Size: 1000}
	var page, find time.Duration
	for c.Sample < measured {
		begin := now()
		docs, err := p.Next(ctx)
		if err != nil {
			return Cost{}, err
		}
		page += now().Sub(begin)
		if len(docs) == 0 {
			break
		}
		c.Sample += len(docs)
		ids := make([]bson.RawValue, len(docs))
		for i, d := range docs {
			ids[i] = d.Lookup("_id")
		}
		begin = now()
		if _, err := documents.ByID(ctx, coll, ids, bson.D{{Key: "_id", Value: 1}}); err != nil {
			return Cost{}, err
		}
		find += now().Sub(begin)
	}
	if c.Sample > 0 {
		c.Page, c.Find = page/time.Duration(c.Sample), find/time.Duration(c.Sample)
	}
	return c, nil
}
