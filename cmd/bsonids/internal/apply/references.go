package apply

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// search reads what is not converted: the documents that --query excludes, and other collections of
// the database.
func (w *worker) search(ctx context.Context, s *decide.Survey, query bson.D) (*report.References, error) {
	r := &report.References{Searched: []report.Searched{}}
	if len(query) > 0 {
		rest, err := s.Collection(w.ID.Database, w.ID.Collection, false)
		if err != nil {
			return nil, err
		}
		switch err := w.Survey(ctx, w.coll, bson.D{{Key: "$nor", Value: bson.A{query}}}, rest); {
		case err == nil:
			r.Searched = append(r.Searched, report.Searched{Namespace: rest.Namespace, Documents: rest.Documents(), Of: rest.Documents()})
		case failure.Explain(err, "").Kind != failure.Failed:
			return nil, err
		default:
			r.Unread = append(r.Unread, rest.Namespace+": the documents that do not match --query")
		}
	}
	if w.References > 0 {
		names, err := w.otherCollections(ctx)
		if err != nil {
			return nil, err
		}
		for _, ns := range names {
			other, err := s.Collection(ns.Database, ns.Collection, false)
			if err != nil {
				return nil, err
			}
			from := source.Collection{Collection: w.db.Collection(ns.Collection), Sample: int64(w.References)}
			read, err := from.Read(ctx, w.Patience, func(total int64) *progress.Progress { return w.Progress(total, "searching", ns.String()) }, other)
			switch {
			case err != nil && (ctx.Err() != nil || failure.Explain(err, "").Kind == failure.Unreachable):
				return nil, err
			case err != nil: // for example, a missing privilege
				r.Unread = append(r.Unread, ns.String())
			default:
				r.Searched = append(r.Searched, report.Searched{Namespace: ns.String(), Documents: other.Documents(), Of: max(read.Documents, other.Documents()), Random: read.Mode != source.First})
			}
		}
	}
	return r, nil
}

// otherCollections returns the collections that may contain references to the converted collection.
func (w *worker) otherCollections(ctx context.Context) ([]scan.Namespace, error) {
	all, err := scan.Namespaces(ctx, w.Client, []string{w.ID.Database}, nil)
	if err != nil {
		return nil, err
	}
	var out []scan.Namespace
	for _, ns := range all {
		if ns.Collection != w.ID.Collection && ns.Collection != w.ID.Into && !strings.HasPrefix(ns.Collection, "bsonids.") {
			out = append(out, ns)
		}
	}
	return out, nil
}

// warnOfReferences warns about references to converted values that are not converted, and about
// what the search may have missed.
func (w *worker) warnOfReferences(r *report.References) {
	if r == nil {
		return
	}
	for _, e := range r.Left {
		w.Warn("%s %s has %d distinct values that equal converted ones, and stays %s: these references find no document until they are converted too",
			e.Namespace, e.Path, e.Equal, w.ID.From)
	}
	for _, s := range r.Searched {
		switch least := s.Missed(); {
		case !s.Random && s.Documents < s.Of:
			w.Warn("%s: only the first %d of %d documents were searched for equal values, because the server cannot sample: references in the others are not found",
				s.Namespace, s.Documents, s.Of)
		case least > 1:
			w.Warn("%s: a random sample of %d of %d documents was searched for equal values: references in fewer than %d documents are missed with a probability "+
				"of more than 5 %%; --references %d searches all documents", s.Namespace, s.Documents, s.Of, least, s.Of)
		}
	}
	for _, u := range r.Unread {
		w.Warn("cannot search %s for equal values", u)
	}
	if w.References == 0 {
		w.Warn("other collections were not searched for values that equal converted ones")
	}
}
