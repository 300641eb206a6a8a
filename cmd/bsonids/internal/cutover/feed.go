package cutover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// The limits of a change stream.
const (
	feedLimit   = 30 * time.Second // for reading it once
	feedWait    = 100 * time.Millisecond
	mostChanged = 200_000 // documents; more are found faster by a comparison
)

// changed returns the _ids of the documents of the collection in place that changed from w.Since, or
// since it was called last, until now, or until it was renamed away. Only the _ids are used, so that
// an event that is read twice does no harm. why is why they are not known.
func (s *Server) changed(ctx context.Context, w Way, untilRenamed bool) (ids []bson.RawValue, why string, err error) {
	if w.Since.T == 0 {
		return nil, "the server has no operation times", nil
	}
	err = s.Patience.Do(ctx, func() error {
		ids, why, err = s.read(ctx, w, untilRenamed)
		if err != nil || why != "" {
			s.endFeed(w.Name)
		}
		return err
	})
	var se mongo.ServerError
	if errors.As(err, &se) {
		return nil, "the server has no change stream from then on: " + se.Error(), nil
	}
	return ids, why, err
}

// feed returns the change stream of a collection.
func (s *Server) feed(ctx context.Context, w Way) (*mongo.ChangeStream, error) {
	if f := s.feeds[w.Name]; f != nil {
		return f, nil
	}
	f, err := s.DB.Watch(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "ns.coll", Value: w.Name}}}},
		{{Key: "$project", Value: bson.D{{Key: "operationType", Value: 1}, {Key: "documentKey", Value: 1}, {Key: "to", Value: 1}, {Key: "clusterTime", Value: 1}}}},
	}, options.ChangeStream().SetStartAtOperationTime(&w.Since).SetMaxAwaitTime(feedWait))
	if err != nil {
		return nil, err
	}
	if s.feeds == nil {
		s.feeds = make(map[string]*mongo.ChangeStream)
	}
	s.feeds[w.Name] = f
	return f, nil
}

func (s *Server) endFeed(name string) {
	if f := s.feeds[name]; f != nil {
		_ = f.Close(context.Background())
		delete(s.feeds, name)
	}
}

func (s *Server) read(ctx context.Context, w Way, untilRenamed bool) (ids []bson.RawValue, why string, err error) {
	f, err := s.feed(ctx, w)
	if err != nil {
		return nil, "", err
	}
	seen := make(map[string]bool)
	empty := 0 // a first batch may be empty although events follow
	for began := time.Now(); time.Since(began) < feedLimit; {
		if !f.TryNext(ctx) {
			switch {
			case f.Err() != nil:
				return nil, "", f.Err()
			case f.ID() == 0:
				return nil, "the change stream ended", nil
			case !untilRenamed && empty > 0:
				return ids, "", nil
			}
			empty++
			continue
		}
		empty = 0
		if renamed(f.Current, w) {
			return ids, "", nil
		}
		id, err := f.Current.LookupErr("documentKey", "_id")
		if err != nil || seen[documents.Key(id)] {
			continue
		}
		key := documents.Key(id)
		seen[key] = true
		ids = append(ids, bson.RawValue{Type: id.Type, Value: []byte(key[1:])})
		if len(ids) > mostChanged {
			return nil, fmt.Sprintf("more than %d documents have changed", mostChanged), nil
		}
	}
	if untilRenamed {
		why = "the change stream did not show the rename within " + feedLimit.String()
	}
	return ids, why, nil
}

// renamed reports whether the event is the rename of the collection in place, as opposed to an earlier
// one.
func renamed(event bson.Raw, w Way) bool {
	kind, _ := event.Lookup("operationType").StringValueOK()
	to, _ := event.Lookup("to", "coll").StringValueOK()
	t, i, _ := event.Lookup("clusterTime").TimestampOK()
	return kind == "rename" && to == w.Away() && !w.Left.After(bson.Timestamp{T: t, I: i})
}
