package clientopt

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Collection returns a clone of coll that stores UUIDs in the representation r, whatever its client
// and its database are set to. It has a registry of [NewClientRegistry]. Everything else of coll stays,
// the BSON options of its client included:
//
//	orders, err := clientopt.Collection(client.Database("shop").Collection("orders"), uuidrep.JavaLegacy)
//
// [WithRegistryBuilder] is the only Option that applies; the others are errors. So are a nil coll and the
// errors of NewClientRegistry.
func Collection(coll *mongo.Collection, r uuidrep.Representation, opts ...Option) (*mongo.Collection, error) {
	if coll == nil {
		return nil, errors.New("clientopt: the collection is nil")
	}
	reg, err := NewClientRegistry(r, opts...)
	if err != nil {
		return nil, err
	}
	return coll.Clone(options.Collection().SetRegistry(reg)), nil
}

// NewClientRegistry returns a registry like that of a client of [Connect] with the representation r. It
// is for everything of the driver that takes a registry, such as options.Database and
// options.GridFSUpload. Unlike the registry of [bsoncodec.NewRegistry] it knows the documents of package
// autoid.
//
// [WithRegistryBuilder] is the only Option that applies; the others are errors. So are the errors of the
// registry's builder.
func NewClientRegistry(r uuidrep.Representation, opts ...Option) (*bson.Registry, error) {
	s, err := newSettings(opts)
	switch {
	case err != nil:
		return nil, err
	case s.hasFallback:
		return nil, errors.New("clientopt: WithDefaultRepresentation does not apply to a registry")
	case s.hasClient:
		return nil, errors.New("clientopt: WithClientOptions does not apply to a registry")
	case len(s.audits) > 0:
		return nil, errors.New("clientopt: WithAudit does not apply to a registry")
	}
	return s.newRegistry(r)
}

func (s *settings) newRegistry(r uuidrep.Representation) (*bson.Registry, error) {
	builder := bsoncodec.NewRegistryBuilder(r)
	for _, f := range s.registry {
		f(builder)
	}
	reg, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("clientopt: cannot build the registry: %w", err)
	}
	autoid.Register(reg)
	return reg, nil
}
