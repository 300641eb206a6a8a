package convert

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Selection is what a conversion is about: values of the documents that match a query.
type Selection struct {
	Conversion rule.Conversion
	Query      bson.D // nil for all documents
}

// each calls f for the documents, and progress with the number of all that were read.
func (s *Selection) each(ctx context.Context, coll *mongo.Collection, patient *patience.Patience, progress func(int), f func(doc bson.Raw) error) error {
	pages := &documents.Pages{Collection: coll, Projection: s.Conversion.Projection(), Filter: s.Query, Size: batchSize, Ahead: true}
	return pages.Each(ctx, patient, func(docs []bson.Raw) error {
		progress(len(docs))
		for _, doc := range docs {
			if err := f(doc); err != nil {
				return err
			}
		}
		return nil
	})
}
