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
// reads those in the representation also, too. One of the two must be [uuidrep.Standard]. The
// registry has [autoid.Register]; the BSON options are those of coll.
//
// The errors are those of [bsoncodec.RegistryBuilder.Build]; a nil collection is an error, too.
func Wrap(coll *mongo.Collection, write, also uuidrep.Representation, opts ...Option) (*Collection, error) {
	if coll == nil {
		return nil, errors.New("mixedrep: nil collection")
	}
	builder := bsoncodec.NewRegistryBuilder(write).AlsoDecode(also)
	twin := bsoncodec.NewRegistryBuilder(also).AlsoDecode(write)
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("mixedrep: nil option")
		}
		if err := opt(builder, twin); err != nil {
			return nil, err
		}
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

// An Option configures [Wrap].
type Option func(builder, twin *bsoncodec.RegistryBuilder) error

// WithRegistryBuilder lets f change the builder of the registry, for example register more UUID types. It is called
// twice: with the builder of the registry, and with that of a registry that differs in the representation alone. It
// must do the same to both. A nil f is an error.
func WithRegistryBuilder(f func(*bsoncodec.RegistryBuilder)) Option {
	return func(builder, twin *bsoncodec.RegistryBuilder) error {
		if f == nil {
			return errors.New("mixedrep: WithRegistryBuilder: nil function")
		}
		f(builder)
		f(twin)
		return nil
	}
}

// Clone returns the driver's clone of the collection with the same representations. A registry
// among the options is ignored: [Wrap] another collection to change it.
func (c *Collection) Clone(opts ...options.Lister[options.CollectionOptions]) *Collection {
	opts = append(slices.Clone(opts), options.Collection().SetRegistry(nil))
	return &Collection{c.Collection.Clone(opts...)}
}
