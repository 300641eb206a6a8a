package convert

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Unmatched returns the fields of the conversion that have no value in coll that may be of the old kind or
// is of the new one: no 16-byte binary value of its subtype, or no text. Their names may be misspelled.
// Unmatched reads until it has found every field.
func Unmatched(ctx context.Context, coll *mongo.Collection, c rule.Conversion) ([]string, error) {
	opts := options.Find()
	if p := c.Projection(); p != nil {
		opts.SetProjection(p)
	}
	cur, err := coll.Find(ctx, bson.D{}, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	left := make([][]walk.Pattern, len(c)) // of each pair
	for i, p := range c {
		left[i] = slices.Clone(p.Fields)
	}
	for slices.ContainsFunc(left, func(of []walk.Pattern) bool { return len(of) > 0 }) && cur.Next(ctx) {
		// The conversion skips and reports a corrupt document.
		_ = c.Walk(cur.Current, func(path *walk.Path, l walk.Leaf) error {
			for i, p := range c {
				if p.From.Has(l) || c.IsNew(path, l) || l.Type == bson.TypeNull && p.From.Form == kinds.Struct { // null is what a struct may become
					left[i] = slices.DeleteFunc(left[i], func(f walk.Pattern) bool { return f.Match(path) })
				}
			}
			return nil
		})
	}
	var names []string
	for _, f := range slices.Concat(left...) {
		names = append(names, f.String())
	}
	return names, cur.Err()
}

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
