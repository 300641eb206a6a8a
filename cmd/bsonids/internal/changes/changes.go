// Package changes reads the change stream of a database. It takes from an event which document
// changed, and not the document.
package changes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// await is how long a server waits for changes before it answers that there are none, unless the caller
// of Open wants otherwise.
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

// Start is where a stream begins: behind the token, at the time if there is no token, or now.
type Start struct {
	After bson.Raw
	At    bson.Timestamp
	Await time.Duration // how long Next waits for changes; a second if zero
}

// Stream is a change stream of a server. It is not safe for concurrent use.
type Stream struct {
	cs   *mongo.ChangeStream
	most int // events at a time
}

// Open opens the change stream of a database for the changes of some of its collections and for all
// renames. A stream of one collection would end when the collection is renamed. most is the maximum
// number of events that Next returns.
func Open(ctx context.Context, db *mongo.Database, collections []string, from Start, most int) (*Stream, error) {
	pipeline := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "ns.coll", Value: bson.D{{Key: "$in", Value: collections}}}},
			bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"rename", "dropDatabase", "invalidate"}}}}},
		}}}}},
		{{Key: "$project", Value: bson.D{{Key: "operationType", Value: 1}, {Key: "clusterTime", Value: 1}, {Key: "ns", Value: 1}, {Key: "to", Value: 1},
			{Key: "documentKey", Value: 1}}}},
	}
	opts := options.ChangeStream().SetMaxAwaitTime(cmp.Or(from.Await, await))
	switch {
	case from.After != nil: // startAfter works behind an invalidate, too
		opts.SetStartAfter(from.After)
	case from.At.T > 0:
		opts.SetStartAtOperationTime(&from.At)
	}
	cs, err := db.Watch(ctx, pipeline, opts)
	if err != nil {
		return nil, err
	}
	return &Stream{cs, most}, nil
}

// Token returns the token of the current position, or nil if the server sends none.
func (s *Stream) Token() bson.Raw { return slices.Clone(s.cs.ResumeToken()) }

// Next waits for changes for a moment. It returns them in their order, or none, with the token
// of the position behind them. After an error, the stream is unusable.
func (s *Stream) Next(ctx context.Context) ([]Event, bson.Raw, error) {
	var out []Event
	for len(out) < s.most && (len(out) == 0 || s.cs.RemainingBatchLength() > 0) {
		if !s.cs.TryNext(ctx) {
			if err := s.cs.Err(); err != nil {
				return nil, nil, err
			}
			if s.cs.ID() == 0 { // startAfter opens it again, also behind an invalidate
				return nil, nil, &failure.Error{Kind: failure.Unreachable, Text: "the server closed the change stream"}
			}
			break
		}
		var e Event
		if err := bson.Unmarshal(slices.Clone(s.cs.Current), &e); err != nil {
			return nil, nil, err
		}
		out = append(out, e)
	}
	return out, s.Token(), nil
}

// Close closes the stream. It gives up after some seconds.
func (s *Stream) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.cs.Close(ctx)
}
