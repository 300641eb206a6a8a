package cli

import (
	"context"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// decide makes the decision from all values of the collection, and searches for equal values among
// those that are not converted.
func (o *convertOptions) decide(ctx context.Context, coll *mongo.Collection, conv convert.Conversion, query bson.D, earlier map[string][]decide.Rival) (decision, error) {
	var p *decide.Pass
	err := o.load.patience.Pass(ctx, func(progress func(int)) error {
		p = decide.NewPass(decide.Question{Order: conv.From.Order, Name: conv.From.Name, Subtype: conv.From.Subtype, Form: conv.From.Form,
			Wanted: conv.Selects, Trusted: o.trust, Query: query, Earlier: earlier}, time.Now())
		total, err := coll.EstimatedDocumentCount(ctx)
		if err != nil {
			return err
		}
		bar := o.progress(total, "deciding", o.database+"."+o.collection)
		defer bar.Done()
		return p.Read(ctx, coll, func(n int) {
			progress(n)
			bar.Add(n)
		})
	})
	if err != nil {
		return decision{}, err
	}
	found, err := o.search(ctx, coll, p, len(query) > 0)
	if err != nil {
		return decision{}, err
	}
	d, unknown := p.Decide()
	if query != nil && d.Documents == 0 {
		return decision{}, failure.Usagef("--query: no document of %s.%s matches", o.database, o.collection)
	}
	if len(unknown) > 0 {
		return decision{}, failure.Usagef("--trust %s: no such field has %s", strings.Join(unknown, ", "), conv.From.Values())
	}
	if conv.From.BySubtype() {
		d.BySubtype, d.Fields = true, []decide.Field{}
	}
	return decision{Decision: &d, references: found}, nil
}

// search reads what is not converted: the documents that --query excludes, and other collections of
// the database.
func (o *convertOptions) search(ctx context.Context, coll *mongo.Collection, p *decide.Pass, queried bool) (*report.References, error) {
	r := &report.References{Searched: []report.Searched{}}
	if queried {
		namespace := o.database + "." + o.collection
		if n, err := p.ReadRest(ctx, coll, namespace); err != nil {
			if failure.Explain(err, "").Kind != failure.Failed {
				return nil, err
			}
			r.Unread = append(r.Unread, namespace+": the documents that do not match --query")
		} else {
			r.Searched = append(r.Searched, report.Searched{Namespace: namespace, Documents: n, Of: n})
		}
	}
	if o.references.value > 0 {
		names, err := o.otherCollections(ctx, coll)
		if err != nil {
			return nil, err
		}
		for _, ns := range names {
			var got *counted
			var read scan.Readout
			err := o.load.patience.Do(ctx, func() (err error) {
				got = &counted{add: p.Other(ns.String()).Add} // it does not count a value twice
				read, err = scan.Read(ctx, coll.Database().Collection(ns.Collection), got, int64(o.references.value), func(total int64) *terminal.Progress {
					return o.progress(total, "searching", ns.String())
				})
				return err
			})
			switch {
			case err != nil && (ctx.Err() != nil || failure.Explain(err, "").Kind == failure.Unreachable):
				return nil, err
			case err != nil: // for example, a missing privilege
				r.Unread = append(r.Unread, ns.String())
			default:
				r.Searched = append(r.Searched, report.Searched{Namespace: ns.String(), Documents: got.n, Of: max(read.Documents, got.n), Random: read.Mode != scan.First})
			}
		}
	}
	r.Left = p.Elsewhere()
	for i := range r.Left {
		if r.Left[i].Namespace == "" {
			r.Left[i].Namespace = o.database + "." + o.collection
		}
	}
	if p.Full() {
		r.Unread = append(r.Unread, "the values after the first 67,108,864")
	}
	return r, nil
}

type counted struct {
	n   int64
	add func([]byte) error
}

func (c *counted) Add(doc []byte) error {
	c.n++
	return c.add(doc)
}

// otherCollections returns the collections that may contain references to the converted collection.
func (o *convertOptions) otherCollections(ctx context.Context, coll *mongo.Collection) ([]scan.Namespace, error) {
	all, err := scan.Namespaces(ctx, coll.Database().Client(), []string{o.database}, nil)
	if err != nil {
		return nil, err
	}
	var out []scan.Namespace
	for _, ns := range all {
		if ns.Collection != o.collection && ns.Collection != o.into && !strings.HasPrefix(ns.Collection, "bsonids.") {
			out = append(out, ns)
		}
	}
	return out, nil
}

// warnOfReferences warns about references to converted values that are not converted, and about
// what the search may have missed.
func (o *convertOptions) warnOfReferences(r *report.References) {
	if r == nil {
		return
	}
	for _, e := range r.Left {
		o.warn("%s %s has %d distinct values that equal converted ones, and stays %s: these references find no document until they are converted too",
			e.Namespace, e.Path, e.Equal, o.from.Name)
	}
	for _, s := range r.Searched {
		switch least := s.Missed(); {
		case !s.Random && s.Documents < s.Of:
			o.warn("%s: only the first %d of %d documents were searched for equal values, because the server cannot sample: references in the others are not found",
				s.Namespace, s.Documents, s.Of)
		case least > 1:
			o.warn("%s: a random sample of %d of %d documents was searched for equal values: references in fewer than %d documents are missed with a probability "+
				"of more than 5 %%; --references %d searches all documents", s.Namespace, s.Documents, s.Of, least, s.Of)
		}
	}
	for _, u := range r.Unread {
		o.warn("cannot search %s for equal values", u)
	}
	if o.references.value == 0 {
		o.warn("other collections were not searched for values that equal converted ones")
	}
}
