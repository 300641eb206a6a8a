package clientopt

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/inuse"
)

// CodecOptions returns bsonOpts as options of package bsoncodec, so that [bsoncodec.Marshal] and
// [bsoncodec.Unmarshal] write and read what a client with these BSONOptions does. Nil gives no
// options.
func CodecOptions(bsonOpts *options.BSONOptions) bsoncodec.Options {
	opts, _ := inuse.Options(bsonOpts)
	return opts
}

// errUnknownDriver reports a version of the driver that keeps its registry where this library does not look, or a
// collection or cursor that has none.
var errUnknownDriver = errors.New("it has no registry, or this version of the driver is too new to tell")

// CollectionCodec returns the registry and the options that coll encodes and decodes documents with, whoever built the
// registry. It sends nothing. A nil coll is an error, and so is a version of the driver, or a BSON option, that this
// library does not know.
func CollectionCodec(coll *mongo.Collection) (*bson.Registry, bsoncodec.Options, error) {
	if coll == nil {
		return nil, bsoncodec.Options{}, errors.New("clientopt: the collection is nil")
	}
	return codecOf(coll, "collection")
}

// CursorCodec returns the registry and the options that cursor decodes documents with, whoever built the registry. It asks
// no server, and the cursor stays where it is. Errors are those of [CollectionCodec]. Package cursors uses both to decode
// from memory, which is faster than the Decode method of the cursor.
func CursorCodec(cursor *mongo.Cursor) (*bson.Registry, bsoncodec.Options, error) {
	if cursor == nil {
		return nil, bsoncodec.Options{}, errors.New("clientopt: the cursor is nil")
	}
	return codecOf(cursor, "cursor")
}

func codecOf[H inuse.Holder](h *H, name string) (*bson.Registry, bsoncodec.Options, error) {
	reg, opts, ok := inuse.Of(h)
	if !ok {
		return nil, bsoncodec.Options{}, fmt.Errorf("clientopt: cannot read the settings of the %s: %w", name, errUnknownDriver)
	}
	return reg, opts, nil
}
