package convert

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// unmet is a value of an entry that its document does not have as the entry says.
type unmet struct {
	id     bson.RawValue
	path   string
	at     undolog.Place // of the entry
	reason string
}

// stillUnmet returns those of the values about whose paths no later entry is. That entry then tells
// what the document should have.
func stillUnmet(logs undolog.Logs, all []unmet) ([]unmet, error) {
	if len(all) == 0 {
		return nil, nil
	}
	last := make(map[string]map[string]undolog.Place)
	for _, o := range all {
		last[documents.Key(o.id)] = make(map[string]undolog.Place)
	}
	err := logs.All(func(e undolog.Entry) error {
		if of := last[documents.Key(e.ID)]; of != nil {
			for _, ch := range e.Changes {
				of[ch.Path] = e.At
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o unmet) bool { return o.at.Before(last[documents.Key(o.id)][o.path]) }), nil
}

// entries calls f with batches of at most size entries that are not void, and of about as many bytes as one update.
// A batch never has two entries about one document, which two runs may have written.
func entries(logs undolog.Logs, size int, f func([]undolog.Entry) error) error {
	var b []undolog.Entry
	held := make(map[string]bool, size) // the documents in b
	err := logs.Each(func(e undolog.Entry) error {
		id := documents.Key(e.ID)
		if len(b) == size || held[id] || large(b, e) {
			if err := f(b); err != nil {
				return err
			}
			b = nil
			clear(held)
		}
		b = append(b, e)
		held[id] = true
		return nil
	})
	if err != nil || len(b) == 0 {
		return err
	}
	return f(b)
}

// large reports whether the entries have about as many bytes as one update, or are of another log than the next one.
func large(b []undolog.Entry, next undolog.Entry) bool {
	return len(b) > 0 && (b[0].At.Log != next.At.Log || next.At.Offset-b[0].At.Offset > bulk.MaxUpdate)
}

// eachIn returns what of returns for each of the entries whose document there is, by their places.
func eachIn[T any](ctx context.Context, coll *mongo.Collection, all []undolog.Entry, of func(e undolog.Entry, doc bson.Raw) T) (map[undolog.Place]T, error) {
	ids, about := make([]bson.RawValue, len(all)), make(map[string][]undolog.Entry, len(all))
	for i, e := range all {
		key := documents.Key(e.ID)
		ids[i], about[key] = e.ID, append(about[key], e)
	}
	found := make(map[undolog.Place]T, len(all))
	err := documents.EachByID(ctx, coll, ids, nil, nil, func(docs []bson.Raw) error {
		for _, doc := range docs {
			for _, e := range about[documents.Key(doc.Lookup("_id"))] {
				found[e.At] = of(e, doc)
			}
		}
		return nil
	})
	return found, err
}

// wayBackOf returns the edits that restore the values of an entry in doc, and the changes that it cannot
// restore.
func wayBackOf(e undolog.Entry, doc bson.Raw) (p rule.Edits, lost []rule.Change, err error) {
	p.ID = e.ID
	p.Changes, lost, err = rule.WayBack(doc, e.Changes)
	return p, lost, err
}
