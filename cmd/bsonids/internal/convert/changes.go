package convert

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
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
	_, err := changes.Now(ctx, coll.Database(), coll.Name())
	if err == nil && spec.UUID == nil {
		return fmt.Errorf("%w: the server does not tell the UUIDs of collections", ErrCannotFollow)
	}
	return cannot(err)
}

// cannot returns an error that wraps [ErrCannotFollow] in place of the error of a server without change streams.
func cannot(err error) error {
	var none *changes.NoneError
	if errors.As(err, &none) {
		return fmt.Errorf("%w: %s", ErrCannotFollow, none.Why)
	}
	return err
}
