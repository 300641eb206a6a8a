// Package mirror makes a collection equal to the converted documents of another one: it compares and
// repairs all documents or some. Copies, their verification, cutovers and the way back of a cutover are made with it.
package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Mirror is a collection and its converted copy, which is changed until the two agree. Only Insert is safe for concurrent
// use.
type Mirror struct {
	Conversion rule.Conversion
	Old, New   *mongo.Collection
	// Index has the converted _ids of the old collection. It may be used again for the same collection.
	Index *Index
	// Back is set if the new collection was in use: what is not there any more is deleted from the old one, and nothing
	// else is changed. Aside, which may be nil, is called for each document of the new one that the conversion would not make.
	Back  bool
	Aside func(doc bson.Raw) error
	Write bool // if false, differences are only found
	Batch int  // documents that are read and written at a time
	// Busy is set if other programs write to the collections, and [Mirror.Some] is called with what changes. The documents of both
	// are read then: that the other one has as many proves nothing.
	Busy bool
	// Bypass is set if the validator does not apply to what is written. Not every user may bypass it.
	Bypass bool
	// Keeps reports whether a document that has no counterpart stays, because another program may have
	// written it. If it is nil, none stays.
	Keeps func(doc bson.Raw) bool

	// Begin is called before each batch is written, and returns the context for it, which ends after
	// Limit. Halves is set if the server ends what exceeds its limit. Its batch is then halved.
	Begin  func(ctx context.Context) (context.Context, context.CancelFunc, error)
	Limit  time.Duration
	Halves bool
	// Still is called before a batch is written, and returns an error if one of the collections was
	// dropped or renamed. It may be nil.
	Still func(ctx context.Context) error
	// Leaves is called before documents are written that have values which the conversion leaves, Wrote
	// for each document that was written, and Met for each that is as it should be. Each may be nil.
	Leaves func(left []Leftovers) error
	Wrote  func(doc bson.Raw)
	Met    func(doc bson.Raw) error

	Progress func(documents int)
	Patience *patience.Patience // for each page that All reads
}

// Leftovers has the values of a document that the conversion leaves unchanged.
type Leftovers struct {
	ID     bson.RawValue // of the old document
	Values []rule.Left
}

// Finding is about a document that does not agree with its counterpart.
type Finding struct {
	ID     bson.RawValue // in one of the collections
	From   bson.RawValue // of the document of the old collection, if it is known
	Reason string

	// Awaits is set if another document has its unique value, or it has changed meanwhile, so that it may
	// be written later. Refused is set if the server refuses the document itself.
	Awaits, Refused bool
}

// most is the maximum number of findings of each sort.
const most = 10_000

// Result is what a comparison has found and changed.
type Result struct {
	Documents int64 // of the old collection
	Equal     int64 // of these, the ones whose counterparts are as they should be
	// Inserted, Replaced and Deleted count the documents of the new collection that were missing, that
	// differed, and that had no counterpart. Without Mirror.Write, Found has the first of them. On the way back, Deleted
	// counts those of the old collection.
	Inserted, Replaced, Deleted int64
	// Stuck are the first documents that cannot be brought to agree, and Stays has the number of all. On the way back, these
	// are the ones of the new collection that the conversion would not make.
	Stuck []Finding
	Stays int64
	// Extra counts the documents that have no counterpart, and stay. Found has the first of them.
	Extra int64
	Found []Finding

	listed map[string]bool // the _ids in Stuck
}

// Changed returns the number of documents that were changed, or may have been.
func (r Result) Changed() int64 { return r.Inserted + r.Replaced + r.Deleted }

func (r *Result) stuck(f Finding) {
	key := documents.Key(f.ID)
	if r.listed[key] {
		return
	}
	r.Stays++
	if len(r.Stuck) >= most {
		return
	}
	if r.listed == nil {
		r.listed = make(map[string]bool)
	}
	r.listed[key] = true
	r.Stuck = append(r.Stuck, f)
}

func (r *Result) find(id bson.RawValue, reason string) {
	if len(r.Found) < most {
		r.Found = append(r.Found, Finding{ID: id, Reason: reason})
	}
}

// Add adds what another comparison has found and changed, or only what it changed if it failed.
func (r *Result) Add(o Result, failed bool) {
	r.Inserted, r.Replaced, r.Deleted = r.Inserted+o.Inserted, r.Replaced+o.Replaced, r.Deleted+o.Deleted
	if failed {
		return
	}
	r.Documents, r.Equal, r.Extra = r.Documents+o.Documents, r.Equal+o.Equal, r.Extra+o.Extra
	for _, f := range o.Stuck {
		r.stuck(f)
	}
	r.Stays += o.Stays - int64(len(o.Stuck))
	for _, f := range o.Found {
		r.find(f.ID, f.Reason)
	}
}

// Then returns the result of two comparisons of the same documents: what both have changed, and what the
// second one has found.
func (r Result) Then(next Result) Result {
	next.Inserted, next.Replaced, next.Deleted = next.Inserted+r.Inserted, next.Replaced+r.Replaced, next.Deleted+r.Deleted
	return next
}

// Why describes one of the documents that cannot be brought to agree.
func (r Result) Why() string {
	if len(r.Stuck) == 0 {
		return ""
	}
	return fmt.Sprintf("_id %s: %s", r.Stuck[0].ID, r.Stuck[0].Reason)
}

// The reasons of findings.
const (
	sameID         = "two documents have the same _id after the conversion"
	emptyTimestamp = "the document has an empty timestamp at its top level, which the server sets when a document is inserted"
	differs        = "the copy differs from the converted source"
	changedSince   = "another program has changed the document meanwhile"
	writtenThere   = "it was inserted or changed in the new collection"
	// Missing is the reason of a document that has no copy.
	Missing = "missing in the copy"
	// NoSource is the reason of a document of the copy that has no counterpart.
	NoSource = "missing in the source: it was deleted there, or another program wrote it to the copy; if it was deleted, delete the copy too"
)

// All compares all documents. If the server is lost for some time, All continues at the page that it was
// comparing.
func (m *Mirror) All(ctx context.Context) (Result, error) {
	var r Result
	m.Index.whole = false
	err := m.Fill(ctx)
	if err == nil && m.Index.whole {
		err = m.twins(ctx, &r)
	}
	if err != nil {
		return r, err
	}
	pages := &documents.Pages{Collection: m.Old, Size: int64(m.Batch)}
	err = pages.Each(ctx, m.Patience, func(docs []bson.Raw) error {
		want, err := m.wanted(docs)
		if err == nil {
			r.Documents += int64(len(docs))
			err = m.again(ctx, &r, func(page *Result) error { return m.compare(ctx, want, page) })
		}
		if err == nil {
			m.Progress(len(docs))
		}
		return err
	})
	if err != nil {
		return r, err
	}
	// The new collection has each of these documents, or lacks those that were only counted, or that are deleted from the old
	// one. If it has as many, it has no others.
	has := r.Documents
	switch {
	case m.Back:
		has -= r.Deleted
	case !m.Write:
		has -= r.Inserted
	}
	if !m.Busy && r.Stays == 0 {
		n, err := patience.Ask(ctx, m.Patience, func() (int64, error) { return m.New.CountDocuments(ctx, bson.D{}) })
		if err != nil || n == has {
			return r, err
		}
	}
	pages = &documents.Pages{Collection: m.New, Size: int64(m.Batch), Projection: onlyID}
	err = pages.Each(ctx, m.Patience, func(docs []bson.Raw) error {
		var err error
		if m.Busy { // what was deleted since the index was made is told to [Mirror.Some]
			docs, err = m.strange(docs)
		}
		if err == nil {
			err = m.again(ctx, &r, func(page *Result) error { return m.extras(ctx, docs, page) })
		}
		if err == nil && m.Busy {
			m.Progress(len(docs))
		}
		return err
	})
	return r, err
}

// again calls f, again while the server is lost, and adds its result.
func (m *Mirror) again(ctx context.Context, r *Result, f func(page *Result) error) error {
	return m.Patience.Do(ctx, func() error {
		var page Result
		err := f(&page)
		r.Add(page, err != nil)
		return err
	})
}

// Some compares the documents of the old collection with the ids, those of the new collection
// with the ids others, and the counterparts of both. Documents may be in the way of each other if an
// index is unique: these are compared again as long as that helps.
func (m *Mirror) Some(ctx context.Context, ids, others []bson.RawValue) (Result, error) {
	var all Result
	if err := m.Fill(ctx); err != nil {
		return all, err
	}
	for before := -1; ; {
		var r Result
		err := m.some(ctx, ids, others, &r)
		ids, others = nil, nil
		for _, f := range r.Stuck {
			switch {
			case !f.Awaits:
			case f.From.Type != 0:
				ids = append(ids, f.From)
			default:
				others = append(others, f.ID)
			}
		}
		for _, f := range all.Stuck {
			if !f.Awaits {
				r.stuck(f)
			}
		}
		r.Documents, r.Equal, r.Extra, r.Found = r.Documents+all.Documents, r.Equal+all.Equal, r.Extra+all.Extra, append(all.Found, r.Found...)
		all = all.Then(r)
		n := len(ids) + len(others)
		if err != nil || n == 0 || before >= 0 && n >= before {
			return all, err
		}
		before = n
	}
}

func (m *Mirror) some(ctx context.Context, ids, others []bson.RawValue, r *Result) error {
	for len(ids)+len(others) > 0 {
		some, of := slices.Clone(ids[:min(len(ids), m.Batch)]), slices.Clone(others[:min(len(others), m.Batch)])
		ids, others = ids[len(some):], others[len(of):]
		r.Documents += int64(len(some) + len(of))
		fresh, err := m.index(some)
		if err != nil {
			return err
		}
		of = append(of, fresh...)
		sources, err := m.sourcesOf(of) // another document may have the same counterpart
		if err != nil {
			return err
		}
		lead := append(some, slices.Concat(sources...)...)
		held, err := documents.ByID(ctx, m.Old, lead, nil, onlyID)
		if err != nil {
			return err
		}
		// Deletions come first: an inserted document may have the unique value of a deleted one.
		found, err := documents.ByID(ctx, m.New, of, nil, onlyID)
		if err != nil {
			return err
		}
		have := make(map[string]bool)
		for _, doc := range held {
			id, err := m.fresh(documents.ID(doc))
			if err != nil {
				return err
			}
			key := documents.Key(id)
			if have[key] {
				r.stuck(Finding{ID: id, From: documents.ID(doc), Reason: sameID})
			}
			have[key] = true
			delete(found, key)
		}
		if err := m.extras(ctx, slices.Collect(maps.Values(found)), r); err != nil {
			return err
		}
		err = documents.EachByID(ctx, m.Old, lead, nil, nil, func(docs []bson.Raw) error {
			want, err := m.wanted(docs)
			if err == nil {
				err = m.compare(ctx, want, r)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Merge inserts the documents of the collection from into the collection to, converted if convert is set. It leaves what is there as it is, and returns the documents that could not be inserted
// because another one has the same _id or unique value.
func (m *Mirror) Merge(ctx context.Context, from, to *mongo.Collection, convert bool) (read int64, conflicts []Finding, err error) {
	into := *m
	into.New = to
	pages := &documents.Pages{Collection: from, Size: int64(m.Batch)}
	err = pages.Each(ctx, nil, func(docs []bson.Raw) (err error) {
		read += int64(len(docs))
		if convert {
			for i, doc := range docs {
				if docs[i], _, _, err = m.Conversion.Rewrite(doc); err != nil {
					return &documents.Error{ID: doc.Lookup("_id"), Reason: err.Error()}
				}
			}
		}
		more, err := into.Insert(ctx, docs)
		conflicts = append(conflicts, more...)
		return err
	})
	return read, conflicts, err
}
