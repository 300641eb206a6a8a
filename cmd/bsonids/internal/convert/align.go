package convert

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Pair is a collection and its converted copy. One of them is leading: the other one is changed until
// the two agree.
type Pair struct {
	Conversion Conversion
	Old, New   *mongo.Collection
	Back       bool // the new collection is leading
	Write      bool // if false, differences are only counted
	Batch      int  // documents that are read and written at a time
	// Busy is set if other programs write to the collections. The documents of both are read then: that
	// the other one has as many proves nothing.
	Busy bool

	// Check is called before each batch is written, and returns the context for it.
	Check func(ctx context.Context) (context.Context, context.CancelFunc, error)
	// Still is called before documents are deleted because the leading collection does not have them,
	// and returns an error if it was dropped. It may be nil.
	Still    func(ctx context.Context) error
	Progress func(documents int)
	Patience *patience.Patience // for each page that All reads
}

// Aligned counts the documents of a comparison.
type Aligned struct {
	Documents int64 // of the leading collection
	Inserted  int64 // missing in the other one
	Replaced  int64 // different in the other one
	Deleted   int64 // missing in the leading one
	// Stuck are documents that cannot be brought to agree, with the reason. There may be more.
	Stuck []Skip

	listed map[string]bool // the _ids in Stuck
}

// Differences returns the number of documents that differ.
func (a Aligned) Differences() int64 {
	return a.Inserted + a.Replaced + a.Deleted + int64(len(a.Stuck))
}

func (a *Aligned) stuck(id bson.RawValue, reason string) {
	key := documents.Key(id)
	if len(a.Stuck) >= maxListed || a.listed[key] {
		return
	}
	if a.listed == nil {
		a.listed = make(map[string]bool)
	}
	a.listed[key] = true
	a.Stuck = append(a.Stuck, Skip{id, reason})
}

// add adds the counts of a page. If it failed, only what it changed is counted.
func (a *Aligned) add(page Aligned, failed bool) {
	a.Inserted += page.Inserted
	a.Replaced += page.Replaced
	a.Deleted += page.Deleted
	if failed {
		return
	}
	a.Documents += page.Documents
	for _, s := range page.Stuck {
		a.stuck(s.ID, s.Reason)
	}
}

// sameID is why documents are stuck of which one would be lost.
const sameID = "two documents have the same _id after the conversion"

// All compares all documents. The server may be lost for some time: All continues at the page where it
// was.
func (p *Pair) All(ctx context.Context) (Aligned, error) {
	var a Aligned
	leading, other := p.roles()
	pages := &documents.Pages{Collection: leading, Size: int64(p.Batch)}
	err := p.each(ctx, pages, &a, func(docs []bson.Raw, page *Aligned) error {
		page.Documents = int64(len(docs))
		return p.compare(ctx, docs, page)
	})
	if err != nil {
		return a, err
	}
	// The other collection has each of these documents, or lacks those that were only counted. If it has
	// as many, it has no others.
	has := a.Documents
	if !p.Write {
		has -= a.Inserted
	}
	if !p.Busy && len(a.Stuck) == 0 {
		var n int64
		err := p.Patience.Do(ctx, func() (err error) {
			n, err = other.CountDocuments(ctx, bson.D{})
			return err
		})
		if err != nil || n == has {
			return a, err
		}
	}
	pages = &documents.Pages{Collection: other, Size: int64(p.Batch), Projection: bson.D{{Key: "_id", Value: 1}}}
	return a, p.each(ctx, pages, &a, func(docs []bson.Raw, page *Aligned) error { return p.extras(ctx, docs, page) })
}

// each calls f for each page, again while the server is lost, and adds the counts to a.
func (p *Pair) each(ctx context.Context, pages *documents.Pages, a *Aligned, f func(docs []bson.Raw, page *Aligned) error) error {
	return pages.Each(ctx, p.Patience, func(docs []bson.Raw) error {
		err := p.Patience.Do(ctx, func() error {
			var page Aligned
			err := f(docs, &page)
			a.add(page, err != nil)
			return err
		})
		if err == nil {
			p.Progress(len(docs))
		}
		return err
	})
}

// Some compares the documents of the leading collection with the ids, those of the other collection
// with the ids others, and the counterparts of both.
func (p *Pair) Some(ctx context.Context, ids, others []bson.RawValue) (Aligned, error) {
	var a Aligned
	leading, other := p.roles()
	for len(ids)+len(others) > 0 {
		some, of := ids[:min(len(ids), p.Batch)], slices.Clone(others[:min(len(others), p.Batch)])
		ids, others = ids[len(some):], others[len(of):]
		a.Documents += int64(len(some) + len(of))
		for _, id := range some {
			more, err := p.counterparts(id, p.Back)
			if err != nil {
				return a, err
			}
			of = append(of, more...)
		}
		// Another document of the leading collection may have the same counterpart.
		some = slices.Clone(some)
		for _, id := range of {
			more, err := p.counterparts(id, !p.Back)
			if err != nil {
				return a, err
			}
			some = append(some, more...)
		}
		held, err := documents.ByID(ctx, leading, distinctIDs(some), nil)
		if err != nil {
			return a, err
		}
		docs := slices.Collect(maps.Values(held))
		// Deletions come first: an inserted document may have the unique value of a deleted one.
		found, err := documents.ByID(ctx, other, distinctIDs(of), bson.D{{Key: "_id", Value: 1}})
		if err != nil {
			return a, err
		}
		for _, doc := range docs {
			has, err := p.counterparts(doc.Lookup("_id"), p.Back)
			if err != nil {
				return a, err
			}
			for _, id := range has {
				delete(found, documents.Key(id))
			}
		}
		if err := p.extras(ctx, slices.Collect(maps.Values(found)), &a); err != nil {
			return a, err
		}
		if err := p.compare(ctx, docs, &a); err != nil {
			return a, err
		}
	}
	return a, nil
}

func distinctIDs(ids []bson.RawValue) []bson.RawValue {
	seen := make(map[string]bool, len(ids))
	return slices.DeleteFunc(ids, func(id bson.RawValue) bool {
		key := documents.Key(id)
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

func (p *Pair) roles() (leading, other *mongo.Collection) {
	if p.Back {
		return p.New, p.Old
	}
	return p.Old, p.New
}

// counterparts returns the _ids that a document of one collection may have in the other one. isNew is
// true if id is of the new collection.
func (p *Pair) counterparts(id bson.RawValue, isNew bool) ([]bson.RawValue, error) {
	if isNew {
		return p.Conversion.sources(id)
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return nil, err
	}
	fresh, _, err := p.Conversion.Rewrite(doc, nil)
	return []bson.RawValue{fresh.Lookup("_id")}, err
}
