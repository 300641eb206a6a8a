package mirror

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

func (m *Mirror) roles() (leading, other *mongo.Collection) {
	if m.Back {
		return m.New, m.Old
	}
	return m.Old, m.New
}

// counterparts returns, for each id, the _ids that its document may have in the other collection. areNew
// is true if the ids are of the new collection.
func (m *Mirror) counterparts(ids []bson.RawValue, areNew bool) (of [][]bson.RawValue, err error) {
	of = make([][]bson.RawValue, len(ids))
	for i, id := range ids {
		if areNew {
			if of[i], err = m.Conversion.Sources(id); err != nil {
				return nil, &documents.Error{ID: id, Reason: err.Error()}
			}
			continue
		}
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
		if err != nil {
			return nil, err
		}
		fresh, _, _, err := m.Conversion.Rewrite(doc)
		if err != nil {
			return nil, err
		}
		of[i] = []bson.RawValue{fresh.Lookup("_id")}
	}
	return of, nil
}

// onlyID is the projection of documents of which only the _id matters.
var onlyID = bson.D{{Key: "_id", Value: 1}}

// found returns how many of the _ids in each list of ids have a document.
func found(ctx context.Context, coll *mongo.Collection, of [][]bson.RawValue) ([]int, error) {
	held, err := documents.ByID(ctx, coll, slices.Concat(of...), nil, onlyID)
	n := make([]int, len(of))
	for i, ids := range of {
		for _, id := range ids {
			if _, ok := held[documents.Key(id)]; ok {
				n[i]++
			}
		}
	}
	return n, err
}

// wanted is a document that the other collection should have.
type wanted struct {
	doc  bson.Raw
	got  bson.Raw      // what it has; nil if nothing
	from bson.RawValue // _id of the document of the leading collection
	left []rule.Left
}

func (w wanted) id() bson.RawValue { return w.doc.Lookup("_id") }

// wanted returns what the other collection should have for each document of the leading one.
func (m *Mirror) wanted(ctx context.Context, docs []bson.Raw, r *Result) (want []wanted, err error) {
	ids := documents.IDs(docs, documents.ID)
	if !m.Back {
		for i, doc := range docs {
			fresh, _, left, err := m.Conversion.Rewrite(doc)
			if err != nil {
				return nil, &documents.Error{ID: ids[i], Reason: err.Error()}
			}
			want = append(want, wanted{doc: fresh, from: ids[i], left: left})
		}
		return want, nil
	}
	// What is in the old collection shows how unchanged values were stored.
	of, err := m.counterparts(ids, true)
	if err != nil {
		return nil, err
	}
	held, err := documents.ByID(ctx, m.Old, slices.Concat(of...), nil, nil)
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
		old, open, err := m.Conversion.Restore(doc, guide)
		if err != nil {
			return nil, &documents.Error{ID: ids[i], Reason: err.Error()}
		}
		if len(open) > 0 {
			r.stuck(Finding{ID: ids[i], From: ids[i], Reason: open[0].Path + ": " + open[0].Reason})
			continue
		}
		want = append(want, wanted{doc: old, from: ids[i]})
	}
	return want, nil
}

// compare compares documents with those of the other collection, and writes those that differ to it.
func (m *Mirror) compare(ctx context.Context, want []wanted, r *Result) error {
	if len(want) == 0 {
		return nil
	}
	_, other := m.roles()
	ids, count := documents.IDs(want, wanted.id), make(map[string]int)
	for _, id := range ids {
		count[documents.Key(id)]++
	}
	held, err := documents.ByID(ctx, other, ids, nil, nil)
	if err != nil {
		return err
	}
	var lacks, differ []wanted
	var equal []bson.Raw
	for i, w := range want {
		w.got = held[documents.Key(ids[i])]
		switch {
		case count[documents.Key(ids[i])] > 1:
			r.stuck(Finding{ID: ids[i], From: w.from, Reason: sameID})
		case w.got == nil:
			lacks = append(lacks, w)
		case !bytes.Equal(w.got, w.doc):
			differ = append(differ, w)
		default:
			equal = append(equal, w.got)
		}
	}
	if differ, err = m.distinct(ctx, differ, r); err != nil {
		return err
	}
	if m.Write {
		if err := m.repair(ctx, lacks, differ, r); err != nil {
			return err
		}
		lacks, differ = nil, nil
	}
	r.Inserted, r.Replaced = r.Inserted+int64(len(lacks)), r.Replaced+int64(len(differ))
	for _, w := range lacks {
		r.find(w.id(), Missing)
	}
	for _, w := range differ {
		r.find(w.id(), differs)
	}
	r.Equal += int64(len(equal))
	for _, doc := range equal { // once, although a page may be compared again
		if m.Met == nil {
			break
		}
		if err := m.Met(doc); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns the documents without those whose _id two documents of the old collection have after
// the conversion: one that has it already, and one whose _id is converted to it.
func (m *Mirror) distinct(ctx context.Context, want []wanted, r *Result) ([]wanted, error) {
	if m.Back || m.ids != nil || len(want) == 0 {
		return want, nil
	}
	ids := documents.IDs(want, wanted.id)
	of, err := m.counterparts(ids, true)
	if err != nil {
		return nil, err
	}
	n, err := found(ctx, m.Old, of)
	if err != nil {
		return nil, err
	}
	var single []wanted
	for i, w := range want {
		if n[i] > 1 {
			r.stuck(Finding{ID: ids[i], From: w.from, Reason: sameID})
		} else {
			single = append(single, w)
		}
	}
	return single, nil
}

// extras deletes those of docs, of the collection that does not lead, that have no counterpart. The
// documents need to have their _id only.
func (m *Mirror) extras(ctx context.Context, docs []bson.Raw, r *Result) error {
	if len(docs) == 0 {
		return nil
	}
	leading, other := m.roles()
	ids := documents.IDs(docs, documents.ID)
	n := make([]int, len(ids))
	if m.ids == nil {
		of, err := m.counterparts(ids, !m.Back)
		if err == nil {
			n, err = found(ctx, leading, of)
		}
		if err != nil {
			return err
		}
	}
	var gone []bson.RawValue
	for i, id := range ids {
		switch {
		case m.ids.Has([]byte(documents.Key(id))):
		case n[i] == 0:
			gone = append(gone, id)
		case n[i] > 1 && !m.Back:
			r.stuck(Finding{ID: id, Reason: sameID})
		}
	}
	if !m.Write {
		r.Deleted += int64(len(gone))
		for _, id := range gone {
			r.find(id, NoSource)
		}
		return nil
	}
	return documents.EachByID(ctx, other, gone, nil, nil, func(docs []bson.Raw) error {
		docs = slices.DeleteFunc(docs, func(doc bson.Raw) bool {
			stays := m.Keeps != nil && m.Keeps(doc)
			if stays {
				m.stays(doc, r)
			}
			return stays
		})
		return m.delete(ctx, docs, r)
	})
}

// stays notes a document that has no counterpart, and is not deleted.
func (m *Mirror) stays(doc bson.Raw, r *Result) {
	r.Extra++
	r.find(doc.Lookup("_id"), NoSource)
}
