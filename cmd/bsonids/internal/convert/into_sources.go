package convert

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// copies returns the number of docs, read from the target, that are converted copies of documents
// of the source.
func (c *copier) copies(ctx context.Context, docs []bson.Raw) (int, error) {
	sources := make(map[string]bson.Raw)
	err := c.withSources(ctx, docs, nil, func(doc bson.Raw, held []bson.Raw) {
		if len(held) > 0 {
			sources[documents.Key(doc.Lookup("_id"))] = held[0]
		}
	})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, doc := range docs {
		source, ok := sources[documents.Key(doc.Lookup("_id"))]
		if !ok {
			continue
		}
		want, _, err := c.Conversion.Rewrite(source, nil)
		if err != nil {
			return n, err
		}
		if bytes.Equal(want, doc) {
			n++
		}
	}
	return n, nil
}

// withSources calls f for each of docs, read from the target, with the documents of the source that
// have its _id after the conversion.
func (c *copier) withSources(ctx context.Context, docs []bson.Raw, projection bson.D, f func(doc bson.Raw, held []bson.Raw)) error {
	of := make([][]bson.RawValue, len(docs))
	var ids []bson.RawValue
	for i, doc := range docs {
		var err error
		if of[i], err = c.Conversion.sources(doc.Lookup("_id")); err != nil {
			return err
		}
		ids = append(ids, of[i]...)
	}
	var found map[string]bson.Raw
	if len(ids) > 0 {
		var err error
		if found, err = documents.ByID(ctx, c.source, ids, projection); err != nil {
			return err
		}
	}
	for i, doc := range docs {
		var held []bson.Raw
		for _, id := range of[i] {
			if s, ok := found[documents.Key(id)]; ok {
				held = append(held, s)
			}
		}
		f(doc, held)
	}
	return nil
}

// conflicts returns the keys of the converted documents whose _id two documents of the source have
// after the conversion: one that has it already, and one whose _id is converted to it.
func (c *copier) conflicts(ctx context.Context, converted []bson.Raw) (map[string]bool, error) {
	two := make(map[string]bool)
	if c.ids != nil {
		return two, nil // pass has left out the second document
	}
	err := c.withSources(ctx, converted, bson.D{{Key: "_id", Value: 1}}, func(doc bson.Raw, held []bson.Raw) {
		if len(held) > 1 {
			two[documents.Key(doc.Lookup("_id"))] = true
		}
	})
	return two, err
}

const noSource = "missing in the source: it was deleted there, or another program wrote it to the copy; if it was deleted, delete the copy too"

// extras finds the documents of the target that have no source. If repair is set, it deletes those
// that this run wrote and that have not changed since, because their sources were deleted
// meanwhile. It reports the others: their sources may have been deleted, or another program may
// have written them.
func (c *copier) extras(ctx context.Context, res *comparison, repair bool) error {
	p := &documents.Pages{Collection: c.target, Size: int64(c.Batch), Projection: bson.D{{Key: "_id", Value: 1}}}
	return p.Each(ctx, c.steady, func(docs []bson.Raw) error {
		var ids []bson.RawValue
		err := c.steady.Do(ctx, func() (err error) {
			ids, err = c.withoutSource(ctx, docs)
			return err
		})
		if err != nil {
			return err
		}
		deleted := make(map[string]bool)
		if repair && len(ids) > 0 {
			if err := c.still(ctx); err != nil {
				return err
			}
			if deleted, err = c.deleteOwn(ctx, ids); err != nil {
				return err
			}
			res.repaired += int64(len(deleted))
		}
		for _, id := range ids {
			if c.Part.Whole() && !deleted[documents.Key(id)] {
				res.Extra++
				if len(res.extra) < maxListed {
					res.extra = append(res.extra, id)
				}
				res.find(id, "%s", noSource)
			}
		}
		return nil
	})
}

// withoutSource returns the _ids of those of docs, read from the target, that have no source.
func (c *copier) withoutSource(ctx context.Context, docs []bson.Raw) (ids []bson.RawValue, err error) {
	if c.ids != nil {
		for _, doc := range docs {
			if id := doc.Lookup("_id"); !c.ids.Has([]byte(documents.Key(id))) {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	err = c.withSources(ctx, docs, bson.D{{Key: "_id", Value: 1}}, func(doc bson.Raw, held []bson.Raw) {
		if len(held) == 0 {
			ids = append(ids, doc.Lookup("_id"))
		}
	})
	return ids, err
}

// deleteOwn deletes the documents with the ids that this run wrote and that have not changed since.
// It returns the keys of the deleted documents.
func (c *copier) deleteOwn(ctx context.Context, ids []bson.RawValue) (map[string]bool, error) {
	deleted := make(map[string]bool)
	docs, err := documents.ByID(ctx, c.target, ids, nil)
	if err != nil {
		return nil, err
	}
	for key, doc := range docs {
		if !c.own.Has(doc) {
			continue
		}
		ok, err := c.deleteCopy(ctx, doc)
		if failure.Means(err, failure.Unauthorized) {
			return deleted, nil // extras reports the documents
		}
		if err != nil {
			return nil, err
		}
		if ok {
			deleted[key] = true
		}
	}
	return deleted, nil
}

// deleteCopy deletes a document of the target. It reports false if the document has changed since it
// was read.
func (c *copier) deleteCopy(ctx context.Context, doc bson.Raw) (bool, error) {
	res, err := c.target.DeleteOne(ctx, replaced(doc, bulk.MaxUpdate))
	return err == nil && res.DeletedCount == 1, err
}
