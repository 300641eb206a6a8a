package mixedrep

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/uuidrep"
)

// Collection is a collection of the driver that reads UUIDs in two representations, writes one,
// and matches both in filters. The embedded collection is the driver's, with the same registry: it
// reads both and matches the one that is written.
//
// To take the _id of an insert from a source, insert an [autoid.Document]. An autoid.Collection of the
// embedded collection would lose the filters: its methods return an error.
//
// A Collection is safe for concurrent use.
type Collection struct{ *mongo.Collection }

// Wrap returns coll with a registry of its own, which writes UUIDs in the representation write and
// reads those in the representation also, too. One of the two must be [uuidrep.Standard]. Each
// function configure is called twice: with the builder of the registry, and with the builder of a
// registry that differs in the representation alone. It must do the same to both. The
// registry has [autoid.Register]; the BSON options are those of coll.
//
// The errors are those of [bsoncodec.RegistryBuilder.Build]; a nil collection or function is an
// error, too.
func Wrap(
	coll *mongo.Collection, write, also uuidrep.Representation, configure ...func(*bsoncodec.RegistryBuilder),
) (*Collection, error) {
	if coll == nil {
		return nil, errors.New("mixedrep: nil collection")
	}
	builder := bsoncodec.NewRegistryBuilder(write).AlsoDecode(also)
	twin := bsoncodec.NewRegistryBuilder(also).AlsoDecode(write)
	for _, f := range configure {
		if f == nil {
			return nil, errors.New("mixedrep: nil function")
		}
		f(builder)
		f(twin)
	}
	reg, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("mixedrep: %w", err)
	}
	other, err := twin.Build()
	if err != nil {
		return nil, fmt.Errorf("mixedrep: %w", err)
	}
	autoid.Register(reg)
	built.Of(reg).OwnFilters = true
	register(reg, other)
	return &Collection{coll.Clone(options.Collection().SetRegistry(reg))}, nil
}

// Clone returns the driver's clone of the collection with the same representations. A registry
// among the options is ignored: [Wrap] another collection to change it.
func (c *Collection) Clone(opts ...options.Lister[options.CollectionOptions]) *Collection {
	opts = append(slices.Clone(opts), options.Collection().SetRegistry(nil))
	return &Collection{c.Collection.Clone(opts...)}
}
