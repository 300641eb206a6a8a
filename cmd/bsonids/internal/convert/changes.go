package convert

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// stream is a [changes.Stream].
type stream interface {
	Next(ctx context.Context) (changes.Batch, error)
	Close()
}

// ErrCannotFollow is wrapped by the error of a server on which a copy cannot follow its source.
var ErrCannotFollow = errors.New("a copy cannot follow its source on this server")

// CanFollow returns an error that wraps [ErrCannotFollow] if the server lacks what a copy needs in
// order to follow the collection. spec is the specification of the collection.
func CanFollow(ctx context.Context, coll *mongo.Collection, spec *mongo.CollectionSpecification) error {
	s, err := changes.Open(ctx, coll.Database(), []string{coll.Name()}, changes.Start{}, 1)
	switch {
	case failure.Means(err, failure.NoStream):
		return &followError{"the server has no change streams: " + err.Error()}
	case err != nil:
		return err
	}
	defer s.Close()
	switch {
	case s.Token() == nil:
		return &followError{"its change streams have no postBatchResumeToken"}
	case spec.UUID == nil:
		return &followError{"it does not tell the UUIDs of collections"}
	}
	return nil
}

type followError struct{ reason string }

func (e *followError) Error() string { return ErrCannotFollow.Error() + ": " + e.reason }
func (e *followError) Unwrap() error { return ErrCannotFollow }
