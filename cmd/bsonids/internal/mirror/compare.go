package mirror

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// fresh returns the _id that the conversion gives a document of the old collection.
func (m *Mirror) fresh(id bson.RawValue) (bson.RawValue, error) {
	if !m.indexed(id) {
		return id, nil
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return id, err
	}
	converted, _, _, err := m.Conversion.Rewrite(doc)
	if err != nil {
		return id, &documents.Error{ID: id, Reason: err.Error()}
	}
	return converted.Lookup("_id"), nil
}

// indexed reports whether the index has documents with such an _id: the conversion may give one to a document, or take it.
func (m *Mirror) indexed(id bson.RawValue) bool {
	if !m.Conversion.ReachesID() {
		return false
	}
	switch id.Type {
	case bson.TypeBinary, bson.TypeString, bson.TypeEmbeddedDocument, bson.TypeNull:
		return true
	}
	return false
}

// index adds documents of the old collection to the index, and returns the _ids that they get.
func (m *Mirror) index(ids []bson.RawValue) (fresh []bson.RawValue, err error) {
	for _, id := range ids {
		f, err := m.fresh(id)
		if err == nil && m.indexed(id) {
			_, err = m.Index.add(f, id)
		}
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, f)
	}
	return fresh, nil
}

// sources returns the _ids that the conversion turns into one. The old collection may have no document any more that has
// one of them.
func (m *Mirror) sources(fresh bson.RawValue) (ids []bson.RawValue, err error) {
	if !m.indexed(fresh) {
		return []bson.RawValue{fresh}, nil
	}
	all, err := m.Index.of(fresh)
	for _, id := range all {
		is, err := m.fresh(id)
		if err != nil {
			return nil, err
		}
		if is.Equal(fresh) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// sourcesOf returns the sources of each of the _ids.
func (m *Mirror) sourcesOf(fresh []bson.RawValue) (of [][]bson.RawValue, err error) {
	of = make([][]bson.RawValue, len(fresh))
	for i, id := range fresh {
		if of[i], err = m.sources(id); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// fill makes the index have all documents of the old collection, unless it has.
func (m *Mirror) fill(ctx context.Context) error {
	if m.Index.whole || !m.Conversion.ReachesID() {
		return nil
	}
	if err := m.Index.forget(); err != nil {
		return err
	}
	pages := &documents.Pages{Collection: m.Old, Size: int64(m.Batch), Projection: onlyID}
	err := pages.Each(ctx, m.Patience, func(docs []bson.Raw) error {
		_, err := m.index(documents.IDs(docs, documents.ID))
		return err
	})
	m.Index.whole = err == nil
	return err
}

// onlyID is the projection of documents of which only the _id matters.
var onlyID = bson.D{{Key: "_id", Value: 1}}

// found returns how many of the _ids in each list have a document in the old collection.
func (m *Mirror) found(ctx context.Context, of [][]bson.RawValue) ([]int, error) {
	held, err := documents.ByID(ctx, m.Old, slices.Concat(of...), nil, onlyID)
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

// wanted is a document that the new collection should have.
type wanted struct {
	doc  bson.Raw
	got  bson.Raw // what it has; nil if nothing
	old  bson.Raw // of which it is made
	left []rule.Left
}

func (w wanted) id() bson.RawValue { return w.doc.Lookup("_id") }

// from returns the _id of the document of the old collection, if it is known.
func (w wanted) from() bson.RawValue {
	if w.old == nil {
		return bson.RawValue{}
	}
	return w.old.Lookup("_id")
}

// wanted returns what the new collection should have for each document of the old one.
func (m *Mirror) wanted(docs []bson.Raw) (want []wanted, err error) {
	for _, doc := range docs {
		fresh, _, left, err := m.Conversion.Rewrite(doc)
		if err != nil {
			return nil, &documents.Error{ID: documents.ID(doc), Reason: err.Error()}
		}
		want = append(want, wanted{doc: fresh, old: doc, left: left})
	}
	return want, nil
}

// single adds documents to the index, and returns those whose _id no other document gets that was added before.
func (m *Mirror) single(want []wanted, r *Result) (single []wanted, err error) {
	for _, w := range want {
		twice := false
		if m.indexed(w.from()) {
			others, err := m.Index.add(w.id(), w.from())
			for _, o := range others {
				is, failed := m.fresh(o)
				twice, err = twice || is.Equal(w.id()), errors.Join(err, failed)
			}
			if err != nil {
				return nil, err
			}
		}
		if twice {
			r.stuck(Finding{ID: w.id(), From: w.from(), Reason: sameID})
		} else {
			single = append(single, w)
		}
	}
	return single, nil
}

// distinct returns the documents whose _id no other document of the old collection gets.
func (m *Mirror) distinct(ctx context.Context, want []wanted, r *Result) (single []wanted, err error) {
	of, err := m.sourcesOf(documents.IDs(want, wanted.id))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(of, func(ids []bson.RawValue) bool { return len(ids) > 1 }) {
		return want, nil
	}
	n, err := m.found(ctx, of)
	if err != nil {
		return nil, err
	}
	for i, w := range want {
		if n[i] > 1 {
			r.stuck(Finding{ID: w.id(), From: w.from(), Reason: sameID})
		} else {
			single = append(single, w)
		}
	}
	return single, nil
}

// compare compares documents with those of the new collection, and makes the two agree.
func (m *Mirror) compare(ctx context.Context, want []wanted, r *Result) error {
	if len(want) == 0 {
		return nil
	}
	ids := documents.IDs(want, wanted.id)
	held, err := documents.ByID(ctx, m.New, ids, nil, nil)
	if err != nil {
		return err
	}
	var lacks, differ []wanted
	var equal []bson.Raw
	for i, w := range want {
		w.got = held[documents.Key(ids[i])]
		switch {
		case w.got == nil:
			lacks = append(lacks, w)
		case !bytes.Equal(w.got, w.doc):
			differ = append(differ, w)
		default:
			equal = append(equal, w.got)
		}
	}
	if err := m.settle(ctx, lacks, differ, r); err != nil {
		return err
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

// settle makes the collections agree about documents that the new one lacks, and that differ there, or counts them.
func (m *Mirror) settle(ctx context.Context, lacks, differ []wanted, r *Result) error {
	if m.Back {
		for _, w := range differ {
			if err := m.aside(w.got, r); err != nil {
				return err
			}
		}
		if !m.Write {
			r.Deleted += int64(len(lacks))
			return nil
		}
		var gone []bson.Raw
		for _, w := range lacks {
			gone = append(gone, w.old)
		}
		return m.delete(ctx, m.Old, gone, r)
	}
	if m.Write {
		return m.repair(ctx, lacks, differ, r)
	}
	r.Inserted, r.Replaced = r.Inserted+int64(len(lacks)), r.Replaced+int64(len(differ))
	for _, w := range lacks {
		r.find(w.id(), Missing)
	}
	for _, w := range differ {
		r.find(w.id(), differs)
	}
	return nil
}

// aside notes a document of the new collection that the conversion has not made.
func (m *Mirror) aside(doc bson.Raw, r *Result) error {
	r.stuck(Finding{ID: documents.ID(doc), Reason: writtenThere})
	if m.Aside == nil {
		return nil
	}
	return m.Aside(doc)
}

// extras deletes those of docs, of the new collection, that no document of the old one is converted to. On the way back,
// it notes them. The documents need to have their _id only.
func (m *Mirror) extras(ctx context.Context, docs []bson.Raw, r *Result) error {
	if len(docs) == 0 {
		return nil
	}
	ids := documents.IDs(docs, documents.ID)
	of, err := m.sourcesOf(ids)
	if err != nil {
		return err
	}
	n, err := m.found(ctx, of)
	if err != nil {
		return err
	}
	var gone []bson.RawValue
	for i, id := range ids {
		switch {
		case n[i] == 0:
			gone = append(gone, id)
		case n[i] > 1:
			r.stuck(Finding{ID: id, Reason: sameID})
		}
	}
	if !m.Write && !m.Back {
		r.Deleted += int64(len(gone))
		for _, id := range gone {
			r.find(id, NoSource)
		}
		return nil
	}
	return documents.EachByID(ctx, m.New, gone, nil, nil, func(docs []bson.Raw) error {
		if m.Back {
			for _, doc := range docs {
				if err := m.aside(doc, r); err != nil {
					return err
				}
			}
			return nil
		}
		docs = slices.DeleteFunc(docs, func(doc bson.Raw) bool {
			stays := m.Keeps != nil && m.Keeps(doc)
			if stays {
				m.stays(doc, r)
			}
			return stays
		})
		return m.delete(ctx, m.New, docs, r)
	})
}

// stays notes a document that has no counterpart, and is not deleted.
func (m *Mirror) stays(doc bson.Raw, r *Result) {
	r.Extra++
	r.find(doc.Lookup("_id"), NoSource)
}
