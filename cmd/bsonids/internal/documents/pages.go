// Package documents reads the documents of a collection, in pages in the order of _id or by their
// _ids.
package documents

import (
	"cmp"
	"context"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Pages reads a collection in the order of _id, one page at a time. Each page is a separate query.
// No cursor therefore has to stay open while a page is processed, and reading can resume after any
// _id. A Pages is not safe for concurrent use.
type Pages struct {
	Collection *mongo.Collection
	Projection bson.D        // nil for whole documents
	Filter     bson.D        // selects documents; nil for all
	Size       int64         // the maximum number of documents in a page
	Bytes      int           // a page ends after the document that reaches this size; 32 MiB if 0
	After      bson.RawValue // the last _id that was read; zero at the beginning
	Ahead      bool          // Each reads a page while the one before it is visited

	end   bool
	types bool // no documents after After have an _id of its type
	plain bool // the server does not know the unusual types
}

const maxPage = 32 << 20

// Next returns the next documents, or none at the end. It uses separate queries for the _ids of the
// same type as After and for those of later types. With one query for both, a server would read a
// clustered collection from its beginning.
func (p *Pages) Next(ctx context.Context) ([]bson.Raw, error) {
	for !p.end {
		filter := behind(p.After)
		if p.types {
			if filter = ofLaterTypes(p.After, p.plain); filter == nil {
				p.end = true
				break
			}
		}
		docs, whole, err := p.page(ctx, filter)
		if p.types && p.unknown(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.end = whole && (p.types || p.After.Type == 0)
		p.types = whole
		if len(docs) > 0 {
			id := docs[len(docs)-1].Lookup("_id")
			p.After = bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}
			return docs, nil
		}
	}
	return nil, nil
}

// Each calls visit for each page, in order. While the server is lost, it asks for a page again, as long as
// patient allows.
func (p *Pages) Each(ctx context.Context, patient *patience.Patience, visit func(docs []bson.Raw) error) error {
	next := func(ctx context.Context) ([]bson.Raw, error) {
		return patience.Ask(ctx, patient, func() ([]bson.Raw, error) { return p.Next(ctx) })
	}
	if p.Ahead {
		var stop func()
		next, stop = ahead(ctx, next)
		defer stop()
	}
	for {
		docs, err := next(ctx)
		if err != nil || len(docs) == 0 {
			return err
		}
		if err := visit(docs); err != nil {
			return err
		}
	}
}

// ahead returns a function that returns what next does, which is called before its result is asked for, until it
// returns an error or no documents. The caller must call stop.
func ahead(ctx context.Context, next func(context.Context) ([]bson.Raw, error)) (then func(context.Context) ([]bson.Raw, error), stop func()) {
	type page struct {
		docs []bson.Raw
		err  error
	}
	reading, cancel := context.WithCancel(ctx)
	pages := make(chan page)
	go func() {
		defer close(pages)
		for {
			docs, err := next(reading)
			select {
			case pages <- page{docs, err}:
			case <-reading.Done():
				return
			}
			if err != nil || len(docs) == 0 {
				return
			}
		}
	}()
	then = func(ctx context.Context) ([]bson.Raw, error) {
		if p, ok := <-pages; ok {
			return p.docs, p.err
		}
		return nil, ctx.Err()
	}
	stop = func() {
		cancel()
		for range pages { // until it has ended
		}
	}
	return then, stop
}

// unknown reports whether the server refused a query because it does not know the unusual types. If
// so, later queries omit these types. A server cannot store a type that it does not know.
func (p *Pages) unknown(err error) bool {
	if !failure.Means(err, failure.BadValue) || p.plain {
		return false
	}
	p.plain = true
	return true
}

// page returns the first documents that match the filter, and whether these are all.
func (p *Pages) page(ctx context.Context, filter bson.D) (docs []bson.Raw, whole bool, err error) {
	cur, err := p.Collection.Find(ctx, p.and(filter),
		projected(p.Projection).SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(p.Size).SetBatchSize(int32(min(p.Size, math.MaxInt32))))
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	docs = make([]bson.Raw, 0, p.Size)
	left := cmp.Or(p.Bytes, maxPage)
	for left > 0 && cur.Next(ctx) {
		docs = append(docs, slices.Clone(cur.Current))
		left -= len(cur.Current)
	}
	return docs, left > 0 && int64(len(docs)) < p.Size, cur.Err()
}

// and returns a filter for the documents that match both filter and p.Filter.
func (p *Pages) and(filter bson.D) bson.D {
	if len(p.Filter) == 0 {
		return filter
	}
	if len(filter) == 0 {
		return p.Filter
	}
	return bson.D{{Key: "$and", Value: bson.A{filter, p.Filter}}}
}
