package convert

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
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
				if p.From.Has(l) || p.To.Has(l) || l.Type == bson.TypeNull && p.From.Form == kinds.Struct { // null is what a struct may become
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

// Expected returns the number of values that a conversion of the documents of o.Part would change, in place or in a
// copy. It counts none in documents that are corrupt.
func Expected(ctx context.Context, coll *mongo.Collection, o Options, copied bool) (values int64, err error) {
	pages := &documents.Pages{Collection: coll, Projection: o.Conversion.Projection(), Filter: o.Query, Size: batchSize}
	err = pages.Each(ctx, o.Patience, func(docs []bson.Raw) error {
		for _, doc := range docs {
			if !o.Part.Has(doc.Lookup("_id")) {
				continue
			}
			p, _ := o.Conversion.Plan(doc)
			n := len(p.Changes)
			if copied {
				_, n, _, _ = o.Conversion.Rewrite(doc, nil)
			}
			values += int64(n)
		}
		return nil
	})
	return values, err
}
