package convert

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// wanted returns what the other collection should have for each document of the leading one.
func (p *Pair) wanted(ctx context.Context, docs []bson.Raw, a *Aligned) (want []bson.Raw, err error) {
	if !p.Back {
		for _, doc := range docs {
			fresh, _, err := p.Conversion.Rewrite(doc, nil)
			if err != nil {
				return nil, &DocumentError{doc.Lookup("_id"), err.Error()}
			}
			want = append(want, fresh)
		}
		return want, nil
	}
	// What is in the old collection shows how unchanged values were stored.
	var ids []bson.RawValue
	of := make([][]bson.RawValue, len(docs))
	for i, doc := range docs {
		if of[i], err = p.Conversion.sources(doc.Lookup("_id")); err != nil {
			return nil, err
		}
		ids = append(ids, of[i]...)
	}
	held, err := documents.ByID(ctx, p.Old, ids, nil)
	if err != nil {
		return nil, err
	}
	for i, doc := range docs {
		var guide bson.Raw
		for _, id := range of[i] {
			if d, ok := held[documents.Key(id)]; ok {
				guide = d
			}
		}
		old, open, err := p.Conversion.restore(doc, guide)
		if err != nil {
			return nil, &DocumentError{doc.Lookup("_id"), err.Error()}
		}
		if len(open) > 0 {
			a.stuck(doc.Lookup("_id"), open[0].Path+": "+open[0].Reason)
			continue
		}
		want = append(want, old)
	}
	return want, nil
}

func (p *Pair) compare(ctx context.Context, docs []bson.Raw, a *Aligned) error {
	want, err := p.wanted(ctx, docs, a)
	if err != nil || len(want) == 0 {
		return err
	}
	_, other := p.roles()
	ids := make([]bson.RawValue, len(want))
	count := make(map[string]int)
	for i, doc := range want {
		ids[i] = doc.Lookup("_id")
		count[documents.Key(ids[i])]++
	}
	held, err := documents.ByID(ctx, other, ids, nil)
	if err != nil {
		return err
	}
	var missing, differ []bson.Raw
	for i, doc := range want {
		switch got, ok := held[documents.Key(ids[i])]; {
		case count[documents.Key(ids[i])] > 1:
			a.stuck(ids[i], sameID)
		case ok && bytes.Equal(got, doc):
		case !ok:
			missing = append(missing, doc)
		case bytes.Equal(got, filledIn(doc, got)):
			a.stuck(ids[i], "the document has an empty timestamp at its top level, which the server sets when a document is inserted")
		default:
			if two, err := p.twice(ctx, doc); err != nil {
				return err
			} else if two {
				a.stuck(ids[i], sameID)
				continue
			}
			differ = append(differ, doc)
		}
	}
	if !p.Write {
		a.Inserted += int64(len(missing))
		a.Replaced += int64(len(differ))
		return nil
	}
	return p.write(ctx, other, held, missing, differ, a)
}

// twice reports whether two documents of the old collection have the _id of doc after the conversion.
func (p *Pair) twice(ctx context.Context, doc bson.Raw) (bool, error) {
	if p.Back {
		return false, nil
	}
	ids, err := p.Conversion.sources(doc.Lookup("_id"))
	if err != nil || len(ids) < 2 {
		return false, err
	}
	held, err := documents.ByID(ctx, p.Old, ids, bson.D{{Key: "_id", Value: 1}})
	return len(held) > 1, err
}

func (p *Pair) write(ctx context.Context, to *mongo.Collection, held map[string]bson.Raw, missing, differ []bson.Raw, a *Aligned) error {
	if len(missing)+len(differ) == 0 {
		return nil
	}
	ctx, cancel, err := p.Check(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	var inTheWay []bson.RawValue
	for _, doc := range differ {
		id := doc.Lookup("_id")
		res, err := to.ReplaceOne(ctx, replaced(held[documents.Key(id)], bulk.MaxUpdate-len(doc)), doc, options.Replace().SetBypassDocumentValidation(true))
		switch {
		case mongo.IsDuplicateKeyError(err):
			inTheWay, missing = append(inTheWay, id), append(missing, doc)
		case err != nil:
			return err
		default:
			a.Replaced += max(1, res.MatchedCount)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	// Documents may have exchanged a unique value. Nobody uses a copy that is not in place: both are
	// deleted, and then inserted.
	if len(inTheWay) > 0 && !p.Back {
		if _, err := to.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: inTheWay}}}}); err != nil {
			return err
		}
	}
	refused, err := bulk.Insert(ctx, to, missing, true)
	for _, r := range refused {
		a.stuck(missing[r.Index].Lookup("_id"), r.Reason)
	}
	a.Inserted += int64(len(missing) - len(refused))
	return err
}

// extras deletes those of docs, of the collection that is not leading, that have no counterpart. The
// documents need to have their _id only.
func (p *Pair) extras(ctx context.Context, docs []bson.Raw, a *Aligned) error {
	leading, other := p.roles()
	of := make([][]bson.RawValue, len(docs))
	var ids []bson.RawValue
	for i, doc := range docs {
		var err error
		if of[i], err = p.counterparts(doc.Lookup("_id"), !p.Back); err != nil {
			return err
		}
		ids = append(ids, of[i]...)
	}
	found, err := documents.ByID(ctx, leading, ids, bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		return err
	}
	var gone []bson.RawValue
	for i, doc := range docs {
		n := 0
		for _, id := range of[i] {
			if _, ok := found[documents.Key(id)]; ok {
				n++
			}
		}
		switch id := doc.Lookup("_id"); {
		case n == 0:
			gone = append(gone, id)
		case n > 1 && !p.Back:
			a.stuck(id, sameID)
		}
	}
	if len(gone) == 0 || !p.Write {
		a.Deleted += int64(len(gone))
		return nil
	}
	if p.Still != nil {
		if err := p.Still(ctx); err != nil {
			return err
		}
	}
	ctx, cancel, err := p.Check(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	res, err := other.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: gone}}}})
	if err == nil {
		a.Deleted += res.DeletedCount
	}
	return err
}

// Merge inserts the documents of the collection from, converted unless the pair goes back, into the
// collection to. It leaves what is there as it is, and returns the documents that could not be
// inserted because another one has the same _id or unique value.
func (p *Pair) Merge(ctx context.Context, from, to *mongo.Collection) (read int64, conflicts []Skip, err error) {
	pages := &documents.Pages{Collection: from, Size: int64(p.Batch)}
	err = pages.Each(ctx, nil, func(docs []bson.Raw) (err error) {
		read += int64(len(docs))
		if !p.Back {
			for i, doc := range docs {
				if docs[i], _, err = p.Conversion.Rewrite(doc, nil); err != nil {
					return &DocumentError{doc.Lookup("_id"), err.Error()}
				}
			}
		}
		writing, cancel, err := p.Check(ctx)
		if err != nil {
			return err
		}
		refused, err := bulk.Insert(writing, to, docs, true)
		cancel()
		if err != nil {
			return err
		}
		var ids []bson.RawValue
		for _, r := range refused {
			ids = append(ids, docs[r.Index].Lookup("_id"))
		}
		if len(ids) == 0 {
			return nil
		}
		held, err := documents.ByID(ctx, to, ids, nil)
		if err != nil {
			return err
		}
		for _, r := range refused {
			doc := docs[r.Index]
			if id := doc.Lookup("_id"); !bytes.Equal(held[documents.Key(id)], doc) {
				conflicts = append(conflicts, Skip{id, r.Reason})
			}
		}
		return nil
	})
	return read, conflicts, err
}
