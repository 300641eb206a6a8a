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

// index adds documents of the old collection to the index, unless they are there, and returns the _ids that they get.
func (m *Mirror) index(ids []bson.RawValue) (fresh []bson.RawValue, err error) {
	for _, id := range ids {
		f, err := m.fresh(id)
		if err != nil {
			return nil, err
		}
		if m.indexed(id) {
			all, err := m.sources(f)
			if err == nil && !slices.ContainsFunc(all, id.Equal) {
				err = m.Index.add(f, id)
			}
			if err != nil {
				return nil, err
			}
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
	if ids, err = m.Index.of(fresh); err != nil {
		return nil, err
	}
	for _, id := range ids {
		is, err := m.fresh(id)
		if err == nil && !is.Equal(fresh) {
			err = errors.New("the temporary file of the index of _ids is damaged")
		}
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
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

// Fill makes the index have all documents of the old collection, unless it has, or no _id is converted. To find what changes
// later, documents of the old collection are not read again.
func (m *Mirror) Fill(ctx context.Context) error {
	if m.Index.whole || !m.Conversion.ReachesID() {
		return nil
	}
	if err := m.Index.forget(); err != nil {
		return err
	}
	pages := &documents.Pages{Collection: m.Old, Size: 10 * int64(m.Batch), Projection: onlyID, Ahead: true}
	err := pages.Each(ctx, m.Patience, func(docs []bson.Raw) error {
		for _, id := range documents.IDs(docs, documents.ID) {
			if !m.indexed(id) {
				continue
			}
			fresh, err := m.fresh(id)
			if err == nil {
				err = m.Index.add(fresh, id)
			}
			if err != nil {
				return err
			}
		}
		m.Progress(len(docs))
		return nil
	})
	if err != nil {
		return err
	}
	return m.Index.seal()
}

// twins finds the documents of the old collection that get the _id of another one.
func (m *Mirror) twins(ctx context.Context, r *Result) error {
	var of [][]bson.RawValue
	found := func() error {
		err := m.again(ctx, r, func(page *Result) error {
			n, err := m.found(ctx, of)
			for i, ids := range of {
				if err != nil || n[i] < 2 {
					continue
				}
				var fresh bson.RawValue
				if fresh, err = m.fresh(ids[0]); err == nil {
					page.stuck(Finding{ID: fresh, From: ids[1], Reason: sameID})
				}
			}
			return err
		})
		of = of[:0]
		return err
	}
	err := m.Index.twins(func(ids []bson.RawValue) error {
		if of = append(of, ids); len(of) < m.Batch {
			return nil
		}
		return found()
	})
	if err != nil {
		return err
	}
	return found()
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

// distinct returns the documents whose _id no other document of the old collection gets.
func (m *Mirror) distinct(ctx context.Context, want []wanted, r *Result) (single []wanted, err error) {
	fresh, err := m.index(documents.IDs(want, wanted.from))
	if err != nil {
		return nil, err
	}
	of, err := m.sourcesOf(fresh)
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

// compare compares documents with those of the new collection, and makes the two agree. It writes none whose _id another document
// gets, too.
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
	if lacks, err = m.distinct(ctx, lacks, r); err != nil {
		return err
	}
	if differ, err = m.distinct(ctx, differ, r); err != nil {
		return err
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

// strange returns those of docs, of the new collection, that no document of the index is converted to. Only these need to be
// looked for in the old collection.
func (m *Mirror) strange(docs []bson.Raw) (strange []bson.Raw, err error) {
	for _, doc := range docs {
		has := false
		if id := documents.ID(doc); m.indexed(id) {
			if has, err = m.Index.has(id); err != nil {
				return nil, err
			}
		}
		if !has {
			strange = append(strange, doc)
		}
	}
	return strange, nil
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
