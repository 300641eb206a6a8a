// Package changes reads the change stream of a database. It takes from an event which document
// changed, and not the document.
package changes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// await is how long a server waits for changes before it answers that there are none.
const await = time.Second

// Event is an event of a change stream.
type Event struct {
	Token bson.Raw       `bson:"_id"`
	Type  string         `bson:"operationType"`
	Time  bson.Timestamp `bson:"clusterTime"`
	NS    struct {
		DB, Coll string
	} `bson:"ns"`
	To struct {
		DB, Coll string
	} `bson:"to"`
	Key bson.Raw `bson:"documentKey"`
}

// Batch is what happened in some collections of a database behind a position of its change stream.
type Batch struct {
	IDs    map[string][]bson.RawValue // the documents that changed, by the name of the collection, each once
	At     bson.Raw                   // the position behind
	Time   bson.Timestamp             // of the last event; zero if there was none
	Events int
	// End is the last event if one of the collections was dropped, renamed or replaced by it, or the
	// stream has ended.
	End *Event
	// Lost is why it cannot be known what happened, or empty. Next does not set it.
	Lost string
}

// Sort returns what events say about collections until the first that ends one of them, and how many
// events these are.
func Sort(events []Event, collections []string) (b Batch, err error) {
	b.IDs = make(map[string][]bson.RawValue)
	seen := make(map[string]bool)
	for _, e := range events {
		b.Events++
		b.At, b.Time = e.Token, e.Time
		switch e.Type {
		case "invalidate", "dropDatabase":
			b.End = &e
			return b, nil
		case "rename", "drop":
			if slices.Contains(collections, e.NS.Coll) || slices.Contains(collections, e.To.Coll) && e.To.DB == e.NS.DB {
				b.End = &e
				return b, nil
			}
		}
		if !slices.Contains(collections, e.NS.Coll) || e.Key == nil {
			continue
		}
		id, err := e.Key.LookupErr("_id")
		if err != nil {
			return b, fmt.Errorf("an event of type %s has no _id", e.Type)
		}
		if key := e.NS.Coll + "\x00" + string(byte(id.Type)) + string(id.Value); !seen[key] {
			seen[key] = true
			b.IDs[e.NS.Coll] = append(b.IDs[e.NS.Coll], id)
		}
	}
	return b, nil
}

// Stream is a change stream of a server. It is not safe for concurrent use.
type Stream struct {
	cs          *mongo.ChangeStream
	collections []string
	most        int     // events at a time
	rest        []Event // read, and behind the last batch
}

// NoneError is the error of a server without the change streams that a copy and a cutover need.
type NoneError struct{ Why string }

func (e *NoneError) Error() string { return e.Why }

// Now returns the token of the present position. The error is a [*NoneError] if there is none.
func Now(ctx context.Context, db *mongo.Database, collection string) (bson.Raw, error) {
	s, err := Open(ctx, db, []string{collection}, nil, 1)
	if failure.Means(err, failure.NoStream) {
		return nil, &NoneError{"the server has no change streams: " + err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.token() == nil {
		return nil, &NoneError{"the change streams of the server have no postBatchResumeToken"}
	}
	return s.token(), nil
}

// Open opens the change stream of a database, behind the token or else at the present, for the changes of
// some of its collections and for all renames. A stream of one collection would end when the collection is
// renamed. most is the maximum number of events that Next returns.
func Open(ctx context.Context, db *mongo.Database, collections []string, after bson.Raw, most int) (*Stream, error) {
	pipeline := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "ns.coll", Value: bson.D{{Key: "$in", Value: collections}}}},
			bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"rename", "dropDatabase", "invalidate"}}}}},
		}}}}},
		{{Key: "$project", Value: bson.D{{Key: "operationType", Value: 1}, {Key: "clusterTime", Value: 1}, {Key: "ns", Value: 1}, {Key: "to", Value: 1},
			{Key: "documentKey", Value: 1}}}},
	}
	opts := options.ChangeStream().SetMaxAwaitTime(await)
	if after != nil { // startAfter works behind an invalidate, too
		opts.SetStartAfter(after)
	}
	cs, err := db.Watch(ctx, pipeline, opts)
	if err != nil {
		return nil, err
	}
	return &Stream{cs: cs, collections: collections, most: most}, nil
}

// token returns the token of the current position, or nil if the server sends none.
func (s *Stream) token() bson.Raw { return slices.Clone(s.cs.ResumeToken()) }

// Next waits for changes for a moment. It returns what happened, or a batch without events, which has the
// token of the position, too. After an error, the stream is unusable.
func (s *Stream) Next(ctx context.Context) (Batch, error) {
	events := s.rest
	for len(events) < s.most && (len(events) == 0 || s.cs.RemainingBatchLength() > 0) {
		if !s.cs.TryNext(ctx) {
			if err := s.cs.Err(); err != nil {
				return Batch{}, err
			}
			if s.cs.ID() == 0 { // startAfter opens it again, also behind an invalidate
				return Batch{}, &failure.Error{Kind: failure.Unreachable, Text: "the server closed the change stream"}
			}
			break
		}
		var e Event
		if err := bson.Unmarshal(slices.Clone(s.cs.Current), &e); err != nil {
			return Batch{}, err
		}
		events = append(events, e)
	}
	b, err := Sort(events, s.collections)
	if s.rest = events[b.Events:]; len(s.rest) == 0 && b.End == nil {
		b.At = s.token()
	}
	return b, err
}

// Close closes the stream. It gives up after some seconds.
func (s *Stream) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.cs.Close(ctx)
}
