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

// repair writes the documents that the other collection lacks, and those that differ there. Documents may
// have exchanged a unique value. Nobody uses a copy that is not in place: both are deleted, and then
// inserted.
func (m *Mirror) repair(ctx context.Context, lacks, differ []wanted, r *Result) error {
	if len(lacks)+len(differ) == 0 {
		return nil
	}
	var left []Left
	for _, w := range slices.Concat(lacks, differ) {
		if len(w.left) > 0 {
			left = append(left, Left{w.from, w.left})
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
	if err == nil && len(blocked) > 0 && !m.Back {
		var held []bson.Raw
		for _, w := range blocked {
			held = append(held, w.got)
		}
		// These are no documents without a counterpart: they are inserted again, or stuck.
		deleted := Result{}
		err = m.delete(ctx, held, &deleted)
	}
	if err != nil {
		return err
	}
	lacks = append(lacks, blocked...)
	docs := make([]bson.Raw, len(lacks))
	for i, w := range lacks {
		docs[i] = w.doc
	}
	from := make(map[string]bson.RawValue, len(lacks))
	for _, w := range lacks {
		from[documents.Key(w.id())] = w.from
	}
	stuck, err := m.Insert(ctx, docs)
	for _, f := range stuck {
		f.From = from[documents.Key(f.ID)]
		r.stuck(f)
	}
	r.Inserted += int64(len(docs) - len(stuck))
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

func idOf(doc bson.Raw) bson.RawValue { return doc.Lookup("_id") }

// Insert inserts documents into the collection that does not lead. It leaves documents that are already
// there unchanged, and returns those that could not be inserted although nothing equal is there.
func (m *Mirror) Insert(ctx context.Context, docs []bson.Raw) (stuck []Finding, err error) {
	_, other := m.roles()
	var doubt []bson.Raw
	reasons := make(map[string]bulk.Refusal)
	var insert func(docs []bson.Raw, bypass bool) error
	insert = func(docs []bson.Raw, bypass bool) error {
		return send(ctx, m, docs, idOf, func(ctx context.Context, docs []bson.Raw) error {
			plain, exact := apart(docs, func(d bson.Raw) bson.Raw { return d })
			refused, err := bulk.Insert(ctx, other, plain, bypass)
			if err != nil {
				return err
			}
			more, err := bulk.InsertExactly(ctx, other, exact, bypass)
			if err != nil {
				return err
			}
			for i := range more {
				more[i].Index += len(plain)
			}
			docs = slices.Concat(plain, exact)
			doubt = append(doubt, exact...)
			no := make(map[int]bool)
			var invalid []bson.Raw
			for _, f := range append(refused, more...) {
				no[f.Index] = true
				if f.Invalid && m.Despite && !bypass {
					invalid = append(invalid, docs[f.Index])
					continue
				}
				doubt = append(doubt, docs[f.Index])
				reasons[documents.Key(idOf(docs[f.Index]))] = f
			}
			for i, doc := range docs {
				if m.Wrote != nil && !no[i] {
					m.Wrote(doc)
				}
			}
			if len(invalid) > 0 {
				return insert(invalid, true)
			}
			return nil
		})
	}
	if err := insert(docs, m.Bypass); err != nil || len(doubt) == 0 {
		return nil, err
	}
	return m.doubted(ctx, doubt, reasons)
}

// doubted returns the documents that are not in the other collection as they should be, after they were
// written or refused.
func (m *Mirror) doubted(ctx context.Context, docs []bson.Raw, reasons map[string]bulk.Refusal) (stuck []Finding, err error) {
	_, other := m.roles()
	ids := make([]bson.RawValue, len(docs))
	for i, doc := range docs {
		ids[i] = idOf(doc)
	}
	held, err := documents.ByID(ctx, other, ids, nil, nil)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for i, doc := range docs {
		key := documents.Key(ids[i])
		f, refused := reasons[key]
		switch got := held[key]; {
		case seen[key] || bytes.Equal(got, doc):
		case got != nil && bytes.Equal(got, filledIn(doc, got)):
			stuck = append(stuck, Finding{ID: ids[i], Reason: emptyTimestamp})
		case refused:
			stuck = append(stuck, Finding{ID: ids[i], Reason: f.Reason, Awaits: f.Duplicate, Refused: !f.Duplicate})
		default:
			stuck = append(stuck, Finding{ID: ids[i], Reason: changedSince, Awaits: true})
		}
		seen[key] = true
	}
	return stuck, nil
}

// replace replaces documents. The filters have the values that were read: what has changed meanwhile is
// stuck, and compared again. It returns the documents whose unique value another one has.
func (m *Mirror) replace(ctx context.Context, differ []wanted, r *Result) (blocked []wanted, err error) {
	_, other := m.roles()
	var replace func(all []wanted, bypass bool) error
	replace = func(all []wanted, bypass bool) error {
		return send(ctx, m, all, wanted.id, func(ctx context.Context, all []wanted) error {
			plain, exact := apart(all, func(w wanted) bson.Raw { return w.doc })
			var invalid []wanted
			done := func(of []wanted, matched int64, refused []bulk.Refusal) {
				no := make(map[int]bool)
				for _, f := range refused {
					no[f.Index] = true
					switch w := of[f.Index]; {
					case f.Duplicate:
						blocked = append(blocked, w)
					case f.Invalid && m.Despite && !bypass:
						invalid = append(invalid, w)
					default:
						r.stuck(Finding{ID: w.id(), From: w.from, Reason: f.Reason, Refused: true})
					}
				}
				for i, w := range of {
					if no[i] {
						continue
					}
					r.Replaced++
					if m.Wrote != nil {
						m.Wrote(w.doc)
					}
					if int(matched) != len(of)-len(refused) { // one of them changed meanwhile
						r.stuck(Finding{ID: w.id(), From: w.from, Reason: changedSince, Awaits: true})
					}
				}
			}
			models := make([]mongo.WriteModel, len(plain))
			for i, w := range plain {
				models[i] = mongo.NewReplaceOneModel().SetFilter(w.filter()).SetReplacement(w.doc)
			}
			matched, refused, err := bulk.Update(ctx, other, models, bypass)
			if err != nil {
				return err
			}
			done(plain, matched, refused)
			if len(exact) > 0 {
				err = m.replaceExactly(ctx, exact, bypass, r, done)
			}
			if err == nil && len(invalid) > 0 {
				err = replace(invalid, true)
			}
			return err
		})
	}
	return blocked, replace(differ, m.Bypass)
}

// replaceExactly replaces documents that have an empty timestamp, and calls done with what the server says.
// Those that the server fills in are stuck.
func (m *Mirror) replaceExactly(ctx context.Context, all []wanted, bypass bool, r *Result, done func([]wanted, int64, []bulk.Refusal)) error {
	_, other := m.roles()
	var docs []bson.Raw
	var filters []bson.D
	for _, w := range all {
		docs, filters = append(docs, w.doc), append(filters, w.filter())
	}
	matched, refused, err := bulk.ReplaceExactly(ctx, other, filters, docs, bypass)
	if err != nil {
		return err
	}
	done(all, matched, refused)
	stuck, err := m.doubted(ctx, docs, nil)
	for _, f := range stuck {
		if f.Reason == emptyTimestamp {
			r.Replaced-- // it would be replaced again and again
			r.stuck(f)
		}
	}
	return err
}

// delete deletes documents, unless they have changed meanwhile. It keeps them all if that is not allowed
// and others of the kind may stay.
func (m *Mirror) delete(ctx context.Context, docs []bson.Raw, r *Result) error {
	if len(docs) == 0 {
		return nil
	}
	if err := m.still(ctx); err != nil {
		return err
	}
	_, other := m.roles()
	err := send(ctx, m, docs, idOf, func(ctx context.Context, docs []bson.Raw) error {
		models := make([]mongo.WriteModel, len(docs))
		for i, doc := range docs {
			models[i] = mongo.NewDeleteOneModel().SetFilter(replaced(doc, bulk.MaxUpdate))
		}
		n, err := bulk.Delete(ctx, other, models)
		if err != nil {
			return err
		}
		r.Deleted += int64(len(docs))
		if int(n) != len(docs) {
			for _, doc := range docs {
				r.stuck(Finding{ID: idOf(doc), Reason: changedSince, Awaits: true})
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
func apart[T any](all []T, doc func(T) bson.Raw) (plain, exact []T) {
	for _, t := range all {
		if len(empty(doc(t))) > 0 {
			exact = append(exact, t)
		} else {
			plain = append(plain, t)
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
