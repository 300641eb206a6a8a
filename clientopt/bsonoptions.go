package clientopt

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/inuse"
)

// errUnknownDriver reports a version of the driver that keeps its registry where this library does not look, or a
// collection that has none.
var errUnknownDriver = errors.New("it has no registry, or this version of the driver is too new to tell")

// CollectionCodec returns the registry and the options that coll encodes and decodes documents with, whoever built the
// registry: what [bsoncodec.Marshal] and [bsoncodec.Unmarshal] need to write and read what coll does. It sends nothing. A
// nil coll is an error, and so is a version of the driver, or a BSON option, that this library does not know.
func CollectionCodec(coll *mongo.Collection) (*bson.Registry, bsoncodec.Options, error) {
	if coll == nil {
		return nil, bsoncodec.Options{}, errors.New("clientopt: the collection is nil")
	}
	reg, opts, ok := inuse.Of(coll)
	if !ok {
		return nil, bsoncodec.Options{}, fmt.Errorf("clientopt: cannot read the settings of the collection: %w", errUnknownDriver)
	}
	return reg, opts, nil
}
