package mirror

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// repair writes the documents that the new collection lacks, and those that differ there. Documents may
// have exchanged a unique value. Nobody uses a copy that is not in place: both are deleted, and then
// inserted.
func (m *Mirror) repair(ctx context.Context, lacks, differ []wanted, r *Result) error {
	if len(lacks)+len(differ) == 0 {
		return nil
	}
	var left []Leftovers
	for _, w := range slices.Concat(lacks, differ) {
		if len(w.left) > 0 {
			left = append(left, Leftovers{w.from(), w.left})
		}
	}
	if m.Leaves != nil && len(left) > 0 {
		if err := m.Leaves(left); err != nil {
			return err
		}
	}
	if err := m.still(ctx); err != nil {
		return err
	}
	blocked, err := m.replace(ctx, differ, r)
	if err == nil && len(blocked) > 0 {
		var held []bson.Raw
		for i := range blocked {
			held, blocked[i].got = append(held, blocked[i].got), nil
		}
		// These are no documents without a counterpart: they are inserted again, or stuck.
		deleted := Result{}
		err = m.delete(ctx, m.New, held, &deleted)
	}
	if err != nil {
		return err
	}
	lacks = append(lacks, blocked...)
	stuck, err := m.insert(ctx, lacks)
	for _, f := range stuck {
		r.stuck(f)
	}
	r.Inserted += int64(len(lacks) - len(stuck))
	return err
}

func (m *Mirror) still(ctx context.Context) error {
	if m.Still == nil {
		return nil
	}
	return m.Still(ctx)
}

// send calls write with a context for writing, and if the server ends that at its time limit, with each
// half of the documents.
func send[T any](ctx context.Context, m *Mirror, all []T, id func(T) bson.RawValue, write func(ctx context.Context, some []T) error) error {
	if len(all) == 0 {
		return nil
	}
	return bulk.Halved(all, m.Halves, m.Limit, id, func(some []T) error {
		writing, cancel, err := m.Begin(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		return write(writing, some)
	})
}

// Insert inserts documents into the new collection. It leaves documents that are already
// there unchanged, and returns those that could not be inserted although nothing equal is there.
func (m *Mirror) Insert(ctx context.Context, docs []bson.Raw) (stuck []Finding, err error) {
	all := make([]wanted, len(docs))
	for i, doc := range docs {
		all[i].doc = doc
	}
	return m.insert(ctx, all)
}

func (m *Mirror) insert(ctx context.Context, all []wanted) (stuck []Finding, err error) {
	doubt, refused, err := m.store(ctx, all)
	if err != nil {
		return nil, err
	}
	return m.doubted(ctx, doubt, refused)
}

// replace replaces documents. The filters have the values that were read: what has changed meanwhile is
// stuck, and compared again. It returns the documents whose unique value another one has.
func (m *Mirror) replace(ctx context.Context, differ []wanted, r *Result) (blocked []wanted, err error) {
	doubt, refused, err := m.store(ctx, differ)
	if err != nil {
		return nil, err
	}
	doubt = slices.DeleteFunc(doubt, func(w wanted) bool {
		is := refused[documents.Key(w.id())].Duplicate
		if is {
			blocked = append(blocked, w)
		}
		return is
	})
	stuck, err := m.doubted(ctx, doubt, refused)
	r.Replaced += int64(len(differ) - len(refused))
	for _, f := range stuck {
		if f.Reason == emptyTimestamp {
			r.Replaced-- // it would be replaced again and again
		}
		r.stuck(f)
	}
	return blocked, err
}

// store inserts documents, or replaces those that are there. It returns those that may not be there as they
// should be, and which of these the server refused.
func (m *Mirror) store(ctx context.Context, all []wanted) (doubt []wanted, refused map[string]bulk.Refusal, err error) {
	refused = make(map[string]bulk.Refusal)
	err = send(ctx, m, all, wanted.id, func(ctx context.Context, all []wanted) error {
		plain, exact := apart(all)
		for i, some := range [][]wanted{plain, exact} {
			matched, no, err := write(ctx, m.New, some, i == 1, m.Bypass)
			if err != nil {
				return err
			}
			unsure := i == 1 || int(matched) != len(some)-len(no) // one of them changed meanwhile
			for _, f := range no {
				w := some[f.Index]
				some[f.Index].doc = nil
				doubt, refused[documents.Key(w.id())] = append(doubt, w), f
			}
			for _, w := range some {
				switch {
				case w.doc == nil:
					continue
				case unsure:
					doubt = append(doubt, w)
				}
				if m.Wrote != nil {
					m.Wrote(w.doc)
				}
			}
		}
		return nil
	})
	return doubt, refused, err
}

// write sends the inserts or the replacements of one batch. matched is the number of documents that were found
// as they were read.
func write(ctx context.Context, coll *mongo.Collection, all []wanted, exact, bypass bool) (matched int64, refused []bulk.Refusal, err error) {
	var docs []bson.Raw
	var filters []bson.D
	for _, w := range all {
		if docs = append(docs, w.doc); w.got != nil {
			filters = append(filters, w.filter())
		}
	}
	if len(filters) > 0 {
		return bulk.Replace(ctx, coll, filters, docs, exact, bypass)
	}
	refused, err = bulk.Insert(ctx, coll, docs, exact, bypass)
	return int64(len(docs) - len(refused)), refused, err
}

// doubted returns the documents that are not in the new collection as they should be, after they were
// written or refused.
func (m *Mirror) doubted(ctx context.Context, all []wanted, refused map[string]bulk.Refusal) (stuck []Finding, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := documents.IDs(all, wanted.id)
	held, err := documents.ByID(ctx, m.New, ids, nil, nil)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for i, w := range all {
		key := documents.Key(ids[i])
		f, no := refused[key]
		switch got := held[key]; {
		case seen[key] || bytes.Equal(got, w.doc):
		case got != nil && bytes.Equal(got, filledIn(w.doc, got)):
			stuck = append(stuck, Finding{ID: ids[i], From: w.from(), Reason: emptyTimestamp})
		case no:
			stuck = append(stuck, Finding{ID: ids[i], From: w.from(), Reason: f.Reason, Awaits: f.Duplicate, Refused: !f.Duplicate})
		default:
			stuck = append(stuck, Finding{ID: ids[i], From: w.from(), Reason: changedSince, Awaits: true})
		}
		seen[key] = true
	}
	return stuck, nil
}

// delete deletes documents of a collection, unless they have changed meanwhile. It keeps them all if that is not allowed
// and others of the kind may stay.
func (m *Mirror) delete(ctx context.Context, coll *mongo.Collection, docs []bson.Raw, r *Result) error {
	if len(docs) == 0 {
		return nil
	}
	if err := m.still(ctx); err != nil {
		return err
	}
	err := send(ctx, m, docs, documents.ID, func(ctx context.Context, docs []bson.Raw) error {
		models := make([]mongo.WriteModel, len(docs))
		for i, doc := range docs {
			models[i] = mongo.NewDeleteOneModel().SetFilter(replaced(doc, bulk.MaxUpdate))
		}
		n, err := bulk.Delete(ctx, coll, models)
		if err != nil {
			return err
		}
		r.Deleted += int64(len(docs))
		if int(n) != len(docs) && !m.Back { // on the way back, there is another comparison
			for _, doc := range docs {
				r.stuck(Finding{ID: documents.ID(doc), Reason: changedSince, Awaits: true})
			}
		}
		return nil
	})
	if m.Keeps != nil && failure.Means(err, failure.Unauthorized) {
		for _, doc := range docs {
			m.stays(doc, r)
		}
		return nil
	}
	return err
}

// apart separates the documents that have an empty timestamp which a server sets.
func apart(all []wanted) (plain, exact []wanted) {
	for _, w := range all {
		if len(empty(w.doc)) > 0 {
			exact = append(exact, w)
		} else {
			plain = append(plain, w)
		}
	}
	return plain, exact
}

// nameEndAndEmpty is the end of a name and an empty timestamp.
var nameEndAndEmpty [1 + 8]byte

// empty returns the offsets behind the timestamps of a document that a server sets: those that are
// empty, at the top level, except in _id.
func empty(doc bson.Raw) (behind []int) {
	if !bytes.Contains(doc, nameEndAndEmpty[:]) { // most documents
		return nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil
	}
	at := 4
	for _, e := range elements {
		at += len(e)
		if e[0] != byte(bson.TypeTimestamp) {
			continue
		}
		if t, i, ok := e.Value().TimestampOK(); ok && t == 0 && i == 0 && e.Key() != "_id" {
			behind = append(behind, at)
		}
	}
	return behind
}

// filledIn returns doc with its empty timestamps replaced by those of got if a server sets them.
func filledIn(doc, got bson.Raw) bson.Raw {
	behind := empty(doc)
	if len(behind) == 0 || len(doc) != len(got) {
		return doc
	}
	out := slices.Clone(doc)
	for _, at := range behind {
		copy(out[at-8:at], got[at-8:at])
	}
	return out
}

// filter returns a filter that matches the document to replace.
func (w wanted) filter() bson.D { return replaced(w.got, bulk.MaxUpdate-len(w.doc)) }

// replaced returns a filter that matches doc by its top-level values. It omits the values that a
// query cannot name and those that do not fit into room bytes.
func replaced(doc bson.Raw, room int) bson.D {
	id := doc.Lookup("_id")
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}
	room -= len(id.Value) + 64
	elements, err := doc.Elements()
	if err != nil {
		return filter
	}
	for _, e := range elements {
		switch v := e.Value(); v.Type {
		case bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeEmbeddedDocument:
			// The filter has the element and a document with $eq around its value.
			if k := e.Key(); k != "_id" && k != "" && k[0] != '$' && !bytes.ContainsRune([]byte(k), '.') && len(e)+32 < room {
				room -= len(e) + 32
				filter = append(filter, bson.E{Key: k, Value: bson.D{{Key: "$eq", Value: v}}})
			}
		}
	}
	return filter
}
