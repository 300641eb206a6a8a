package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// decide makes the decision from all values of the collection, and searches for equal values among
// those that are not converted.
func (o *convertOptions) decide(ctx context.Context, coll *mongo.Collection, conv convert.Conversion, query bson.D, earlier map[string][]decide.Rival) (d decision, err error) {
	s := decide.NewSurvey(dirOf(o.state), time.Now(), decide.Question{Kind: conv.From, Wanted: conv.Selects, Trusted: o.trust, Earlier: earlier})
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := s.Collection(o.database, o.collection, true)
	if err != nil {
		return decision{}, err
	}
	if query == nil {
		query = bson.D{}
	}
	if err := o.readInto(ctx, o.load.patience, coll, query, c); err != nil {
		return decision{}, err
	}
	if len(query) > 0 && c.Documents() == 0 {
		return decision{}, failure.Usagef("--query: no document of %s.%s matches", o.database, o.collection)
	}
	r, err := o.search(ctx, coll, s, query)
	if err != nil {
		return decision{}, err
	}
	if err := s.Decide(); err != nil {
		return decision{}, err
	}
	r.Left = s.Elsewhere()
	if unknown := s.Unknown(); len(unknown) > 0 {
		return decision{}, failure.Usagef("--trust %s: no such field has %s", strings.Join(unknown, ", "), conv.From.Values())
	}
	d = decision{Decision: c.Decision(conv.From), references: r}
	if conv.From.BySubtype() {
		d.BySubtype, d.Fields = true, []decide.Field{}
	}
	return d, nil
}

// readInto adds the documents of the collection that match the query.
func (c *console) readInto(ctx context.Context, p *patience.Patience, coll *mongo.Collection, query bson.D, to *decide.Surveyed) error {
	return p.Pass(ctx, func(progress func(int)) error {
		to.Forget()
		total, err := coll.EstimatedDocumentCount(ctx)
		if err != nil {
			return err
		}
		bar := c.progress(total, "deciding", to.Namespace)
		defer bar.Done()
		return documents.Each(ctx, coll, query, func(doc bson.Raw) error {
			progress(1)
			bar.Add(1)
			if err := to.Add(doc); !errors.Is(err, walk.ErrCorrupt) { // the conversion skips a corrupt document when it reads it
				return err
			}
			return nil
		})
	})
}

// search reads what is not converted: the documents that --query excludes, and other collections of
// the database.
func (o *convertOptions) search(ctx context.Context, coll *mongo.Collection, s *decide.Survey, query bson.D) (*report.References, error) {
	r := &report.References{Searched: []report.Searched{}}
	if len(query) > 0 {
		rest, err := s.Collection(o.database, o.collection, false)
		if err != nil {
			return nil, err
		}
		switch err := o.readInto(ctx, o.load.patience, coll, bson.D{{Key: "$nor", Value: bson.A{query}}}, rest); {
		case err == nil:
			r.Searched = append(r.Searched, report.Searched{Namespace: rest.Namespace, Documents: rest.Documents(), Of: rest.Documents()})
		case failure.Explain(err, "").Kind != failure.Failed:
			return nil, err
		default:
			r.Unread = append(r.Unread, rest.Namespace+": the documents that do not match --query")
		}
	}
	if o.references.value > 0 {
		names, err := o.otherCollections(ctx, coll)
		if err != nil {
			return nil, err
		}
		for _, ns := range names {
			var read scan.Readout
			other, err := s.Collection(ns.Database, ns.Collection, false)
			if err != nil {
				return nil, err
			}
			err = o.load.patience.Do(ctx, func() (err error) {
				other.Forget()
				read, err = scan.Read(ctx, coll.Database().Collection(ns.Collection), other, int64(o.references.value), func(total int64) *terminal.Progress {
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
				r.Searched = append(r.Searched, report.Searched{Namespace: ns.String(), Documents: other.Documents(), Of: max(read.Documents, other.Documents()), Random: read.Mode != scan.First})
			}
		}
	}
	return r, nil
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
