package convert

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// apply brings the copies of some documents up to date: it reads the documents from the source, and
// writes them as the comparison does. Copies may be in the way of each other, if an index is unique.
// apply then tries again in another order, and at last deletes these copies before it inserts them.
func (c *copier) apply(ctx context.Context, keys []key) (failed []key, err error) {
	clear := false
	for {
		n := len(keys)
		failed, err = c.sync(ctx, keys, clear)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil || len(failed) == 0 || clear && len(failed) >= n {
			return failed, err
		}
		clear, keys = len(failed) >= n, failed
	}
}

// sync is one attempt of apply. If clear is set, it deletes the copies first. It writes nothing if
// the error is errMoved.
func (c *copier) sync(ctx context.Context, keys []key, clear bool) (failed []key, err error) {
	if err := c.locate(ctx); err != nil {
		return nil, err
	}
	ids := make([]bson.RawValue, len(keys))
	for i, k := range keys {
		ids[i] = k.id
	}
	held, err := documents.ByID(ctx, c.source, ids, nil)
	if err != nil {
		return nil, err
	}
	var docs, gone []bson.Raw
	for _, k := range keys {
		name := documents.Key(k.id)
		if doc, ok := held[name]; ok {
			docs = append(docs, doc)
			delete(held, name)
		} else if k.deleted {
			doc, err := bson.Marshal(bson.D{{Key: "_id", Value: k.id}})
			if err != nil {
				return nil, err
			}
			gone = append(gone, doc)
		}
	}
	for _, doc := range held { // an _id that the server takes for equal, such as 1 and 1.0
		docs = append(docs, doc)
	}
	orphans, others, err := c.orphans(ctx, gone)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool)
	docs = slices.DeleteFunc(append(docs, others...), func(doc bson.Raw) bool {
		name := documents.Key(doc.Lookup("_id"))
		twice := there[name]
		there[name] = true
		return twice
	})
	want, err := c.converted(docs, true)
	if err != nil {
		return nil, err
	}
	var inTheWay []bson.Raw
	if clear {
		if inTheWay, err = c.inTheWay(ctx, want); err != nil {
			return nil, err
		}
	}
	if err := c.still(ctx); err != nil {
		return nil, err
	}
	orphans = append(orphans, inTheWay...)
	if failed, err = c.deleteMany(ctx, orphans); err != nil {
		return nil, err
	}
	res := comparison{Verified: Verified{Fields: Tally{}}}
	if err := c.compare(ctx, want, &res, true); err != nil {
		return nil, err
	}
	c.res.Stream.Written += res.repaired
	more, err := c.sourcesOf(res.failed)
	more = slices.DeleteFunc(more, func(k key) bool { return !there[documents.Key(k.id)] })
	return distinct(failed, more), err
}

// inTheWay returns the copies of converted documents, except those of two documents.
func (c *copier) inTheWay(ctx context.Context, want []bson.Raw) (copies []bson.Raw, err error) {
	two, err := c.conflicts(ctx, want)
	if err != nil {
		return nil, err
	}
	held, err := c.held(ctx, want)
	for name, doc := range held {
		if !two[name] {
			copies = append(copies, doc)
		}
	}
	return copies, err
}

// orphans returns the copies of deleted documents. If another document of the source has the same
// _id after the conversion, it returns that one instead. Of the documents only the _id is used.
func (c *copier) orphans(ctx context.Context, gone []bson.Raw) (copies, others []bson.Raw, err error) {
	if len(gone) == 0 {
		return nil, nil, nil
	}
	converted, err := c.converted(gone, false)
	if err != nil {
		return nil, nil, err
	}
	held, err := c.held(ctx, converted)
	if err != nil {
		return nil, nil, err
	}
	docs := make([]bson.Raw, 0, len(held))
	for _, doc := range held {
		docs = append(docs, doc)
	}
	err = c.withSources(ctx, docs, nil, func(doc bson.Raw, sources []bson.Raw) {
		if len(sources) == 0 {
			copies = append(copies, doc)
		}
		others = append(others, sources...)
	})
	return copies, others, err
}

// deleteMany deletes copies. It returns the keys of those that changed since they were read.
func (c *copier) deleteMany(ctx context.Context, copies []bson.Raw) (failed []key, err error) {
	if len(copies) == 0 {
		return nil, nil
	}
	ctx, cancel, err := c.mayBegin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for _, doc := range copies {
		ok, err := c.deleteCopy(ctx, doc)
		if err != nil {
			return nil, err
		}
		if ok {
			c.res.Stream.Deleted++
			continue
		}
		keys, err := c.sourcesOf([]bson.RawValue{doc.Lookup("_id")})
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			failed = append(failed, key{k.id, true})
		}
	}
	return failed, nil
}
