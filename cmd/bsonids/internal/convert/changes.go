package convert

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// awaitChanges is how long a server waits for changes before it answers that there are none.
const awaitChanges = time.Second

// stream is a change stream of a database.
type stream interface {
	// next waits for changes, for about awaitChanges. It returns them in their order, or none, with
	// the token of the position behind them. After an error, the stream is unusable.
	next(ctx context.Context) ([]change, bson.Raw, error)
	close()
}

// change is an event of a change stream. The document itself is not read from it.
type change struct {
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

// changes is a change stream of a server.
type changes struct {
	cs   *mongo.ChangeStream
	most int // events at a time
}

// openChanges opens the change stream of a database for the changes of some of its collections and
// for all renames, behind the token, or from now on if it is nil. A stream of one collection would
// end when the collection is renamed. startAfter works behind an invalidate, too.
func openChanges(ctx context.Context, db *mongo.Database, collections []string, after bson.Raw, most int) (*changes, error) {
	pipeline := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "ns.coll", Value: bson.D{{Key: "$in", Value: collections}}}},
			bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"rename", "dropDatabase", "invalidate"}}}}},
		}}}}},
		{{Key: "$project", Value: bson.D{{Key: "operationType", Value: 1}, {Key: "clusterTime", Value: 1}, {Key: "ns", Value: 1}, {Key: "to", Value: 1},
			{Key: "documentKey", Value: 1}}}},
	}
	opts := options.ChangeStream().SetMaxAwaitTime(awaitChanges)
	if after != nil {
		opts.SetStartAfter(after)
	}
	cs, err := db.Watch(ctx, pipeline, opts)
	if err != nil {
		return nil, err
	}
	return &changes{cs, most}, nil
}

// token returns the token of the current position, or nil if the server sends none.
func (c *changes) token() bson.Raw { return slices.Clone(c.cs.ResumeToken()) }

func (c *changes) next(ctx context.Context) ([]change, bson.Raw, error) {
	var out []change
	for len(out) < c.most && (len(out) == 0 || c.cs.RemainingBatchLength() > 0) {
		if !c.cs.TryNext(ctx) {
			if err := c.cs.Err(); err != nil {
				return nil, nil, err
			}
			if c.cs.ID() == 0 { // startAfter opens it again, also behind an invalidate
				return nil, nil, &failure.Error{Kind: failure.Unreachable, Text: "the server closed the change stream"}
			}
			break
		}
		var e change
		if err := bson.Unmarshal(slices.Clone(c.cs.Current), &e); err != nil {
			return nil, nil, err
		}
		out = append(out, e)
	}
	return out, c.token(), nil
}

func (c *changes) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.cs.Close(ctx)
}

// expired reports whether err says that a stream cannot be resumed behind its token, because the
// changes behind it are no longer in the oplog: CappedPositionLost, InvalidResumeToken,
// ChangeStreamFatalError and ChangeStreamHistoryLost.
func expired(err error) bool {
	var se mongo.ServerError
	return errors.As(err, &se) && slices.ContainsFunc([]int{136, 260, 280, 286}, se.HasErrorCode)
}

// ErrCannotFollow is wrapped by the error of a server on which a copy cannot follow its source.
var ErrCannotFollow = errors.New("a copy cannot follow its source on this server")

// lacksStreams are the error codes of servers without change streams: FailedToParse (an aggregation
// without a collection, on FerretDB 1), IllegalOperation, CommandNotFound, CommandNotSupported, NotImplemented, an unknown stage, and a server that is not
// in a replica set.
var lacksStreams = []int{9, 20, 59, 115, 238, 40324, 40573}

// CanFollow returns an error that wraps [ErrCannotFollow] if the server lacks what a copy needs in
// order to follow the collection. spec is the specification of the collection.
func CanFollow(ctx context.Context, coll *mongo.Collection, spec *mongo.CollectionSpecification) error {
	s, err := openChanges(ctx, coll.Database(), []string{coll.Name()}, nil, 1)
	var se mongo.ServerError
	switch {
	case errors.As(err, &se) && slices.ContainsFunc(lacksStreams, se.HasErrorCode):
		return &followError{"the server has no change streams: " + err.Error()}
	case err != nil:
		return err
	}
	defer s.close()
	switch {
	case s.token() == nil:
		return &followError{"its change streams have no postBatchResumeToken"}
	case spec.UUID == nil:
		return &followError{"it does not tell the UUIDs of collections"}
	}
	return nil
}

type followError struct{ reason string }

func (e *followError) Error() string { return ErrCannotFollow.Error() + ": " + e.reason }
func (e *followError) Unwrap() error { return ErrCannotFollow }
