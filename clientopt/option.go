package clientopt

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// An Option changes what [ApplyURI], [Connect], [NewClientRegistry] and [Collection] make. It may be used
// any number of times, and by several goroutines if the functions and options given to it may. A
// nil Option is an error.
type Option func(*settings)

type settings struct {
	fallback    uuidrep.Representation
	hasFallback bool
	registry    []func(*bsoncodec.RegistryBuilder)
	client      []*options.ClientOptions
	hasClient   bool
	audits      []auditOf
}

// WithDefaultRepresentation sets the representation for connection strings without
// uuidRepresentation. The last call counts. In a connection string
// uuidRepresentation=unspecified wins over it. A value that is none of the five constants is an error, whatever the connection string
// says.
func WithDefaultRepresentation(r uuidrep.Representation) Option {
	return func(s *settings) { s.fallback, s.hasFallback = r, true }
}

// WithRegistryBuilder lets f change the builder of the registry: it can register more UUID types, decode
// more, and add the caller's own codecs with [bsoncodec.RegistryBuilder.With]. The builder has its
// representation already. Each function is called once for each registry, in the order given. A nil
// f and the errors of the builder are errors.
func WithRegistryBuilder(f func(*bsoncodec.RegistryBuilder)) Option {
	return func(s *settings) { s.registry = append(s.registry, f) }
}

// WithClientOptions merges opts over the connection string as mongo.Connect merges its arguments:
// the last one that sets a field wins.
//
// Nil options and options with a registry are errors; use [WithRegistryBuilder]. The uuidRepresentation of
// a connection string that was applied to opts counts like that of the main one: two different values
// are an error. If several connection strings were applied to one of opts, its last one
// counts.
func WithClientOptions(opts ...*options.ClientOptions) Option {
	return func(s *settings) { s.client, s.hasClient = append(s.client, opts...), true }
}

// newSettings applies opts and checks what does not depend on a connection string.
func newSettings(opts []Option) (settings, error) {
	var s settings
	for _, o := range opts {
		if o == nil {
			return s, errors.New("clientopt: an Option is nil")
		}
		o(&s)
	}
	if _, err := s.fallback.MarshalText(); err != nil {
		return s, fmt.Errorf("clientopt: WithDefaultRepresentation: %w", err)
	}
	for _, f := range s.registry {
		if f == nil {
			return s, errors.New("clientopt: the function of WithRegistryBuilder is nil")
		}
	}
	return s, nil
}
