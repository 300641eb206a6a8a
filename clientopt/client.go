package clientopt

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Option changes what [ApplyURI] and [Connect] make. An Option may be used any number of times, also concurrently where
// the functions and options given to it may.
type Option func(*settings)

type settings struct {
	fallback uuidrep.Representation
	registry []func(*bsoncodec.RegistryBuilder)
	client   []*options.ClientOptions
}

// WithDefaultRepresentation sets the representation for connection strings that have no uuidRepresentation; one that
// says unspecified has it. Given twice, the last counts. A value that is none of the five constants is an error of
// [ApplyURI] and [Connect], whatever the connection string says.
func WithDefaultRepresentation(r uuidrep.Representation) Option {
	return func(s *settings) { s.fallback = r }
}

// WithRegistry has f complete the builder of the client's registry, which has its representation already: more UUID
// types, more to decode, the caller's own codecs through [bsoncodec.RegistryBuilder.With]. f is called once for each
// [ApplyURI] and [Connect], several in the order given. Errors of the builder are theirs; so is a nil f.
func WithRegistry(f func(*bsoncodec.RegistryBuilder)) Option {
	return func(s *settings) { s.registry = append(s.registry, f) }
}

// WithClientOptions merges opts over the connection string as mongo.Connect merges its arguments: the last one that sets
// a field wins, nil is skipped.
//
// A registry among them is an error of [ApplyURI] and [Connect]: it would take the place of the one that they make; use
// [WithRegistry]. A connection string that was applied to one of them, the last one where there are several, counts as
// if its uuidRepresentation stood in the main one: two different values are an error.
func WithClientOptions(opts ...*options.ClientOptions) Option {
	return func(s *settings) { s.client = append(s.client, opts...) }
}

// ApplyURI returns the driver's client options for uri, with a registry that stores UUIDs in the representation that
// uri names, or else [WithDefaultRepresentation]. The options are complete: SetRegistry on them, or a later argument of
// mongo.Connect with a registry, undoes what this function is for, and the uuidRepresentation of a connection string
// that is applied to them later is ignored, as the driver ignores it.
//
// The name of the option uuidRepresentation and its values are read in any letter case and percent-encoded or not; the
// same value twice is one. With the scheme mongodb+srv the driver looks the host up, as ever, but only after
// uuidRepresentation and opts were found good.
//
// Errors are those of [Representation], of the builder of the registry, and whatever the driver's own parsing and
// ClientOptions.Validate report, at once rather than on connecting. None shows the secrets of uri or opts.
//
// The option is that of "Implicit decoding and encoding" in the MongoDB driver specification "Handling of Native UUID
// Types".
func ApplyURI(uri string, opts ...Option) (*options.ClientOptions, error) {
	clientOpts, _, err := apply(uri, opts)
	return clientOpts, err
}

// Connect returns a client for uri: [ApplyURI], then mongo.Connect, which starts the client and does not wait for a
// server. Errors are those of both, without the secrets of uri or opts; those of operations come from the client itself.
func Connect(uri string, opts ...Option) (*mongo.Client, error) {
	clientOpts, hidden, err := apply(uri, opts)
	if err != nil {
		return nil, err
	}
	client, err := mongo.Connect(clientOpts)
	if err != nil {
		return nil, fmt.Errorf("clientopt: cannot make a client: %w", redact(err, hidden))
	}
	return client, nil
}

func apply(uri string, opts []Option) (*options.ClientOptions, secrets, error) {
	var s settings
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}

	cs, err := parse(uri)
	if err != nil {
		return nil, nil, fmt.Errorf("clientopt: the connection string is not valid: %w", err)
	}
	hidden := cs.secrets()
	values := cs.values("uuidrepresentation")
	for _, o := range s.client {
		if o == nil {
			continue
		}
		if o.Registry != nil {
			return nil, nil, errors.New("clientopt: a registry in WithClientOptions would replace the one for UUIDs: " +
				"put its codecs into WithRegistry")
		}
		applied, err := appliedURI(o)
		if err != nil {
			return nil, nil, err
		}
		hidden = append(hidden, applied.secrets()...)
		hidden = append(hidden, authSecrets(o.Auth)...)
		values = append(values, applied.values("uuidrepresentation")...)

		// The client of the key vault is made on connecting, and errors with it. Its documents have no UUIDs of the
		// application's, so its representation is nobody's concern.
		if a := o.AutoEncryptionOptions; a != nil && a.KeyVaultClientOptions != nil {
			applied, err := appliedURI(a.KeyVaultClientOptions)
			if err != nil {
				return nil, nil, err
			}
			hidden = append(hidden, applied.secrets()...)
			hidden = append(hidden, authSecrets(a.KeyVaultClientOptions.Auth)...)
		}
	}

	rep, stated, err := representation(values)
	if err != nil {
		return nil, nil, fmt.Errorf("clientopt: %w", redact(err, hidden))
	}
	// An invalid default is the program's mistake: it must not wait for the connection string that lets it through.
	if _, err := s.fallback.MarshalText(); err != nil {
		return nil, nil, fmt.Errorf("clientopt: WithDefaultRepresentation: %w", err)
	}
	if !stated {
		rep = s.fallback
	}

	builder := bsoncodec.NewRegistryBuilder(rep)
	for _, f := range s.registry {
		if f == nil {
			return nil, nil, errors.New("clientopt: WithRegistry needs a function, it was given nil")
		}
		f(builder)
	}
	reg, err := builder.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("clientopt: cannot build the registry: %w", err)
	}
	autoid.Register(reg)

	all := append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, s.client...)
	merged := options.MergeClientOptions(all...)
	if err := merged.Validate(); err != nil {
		return nil, nil, fmt.Errorf("clientopt: %w", redact(err, hidden))
	}
	return merged.SetRegistry(reg), hidden, nil
}

// appliedURI returns what the connection string holds that was applied to o, if any. One that the driver refused is an
// error that shows nothing of it: o keeps the driver's error, which may show its secrets, but not the string.
func appliedURI(o *options.ClientOptions) (connString, error) {
	// After a failed ApplyURI all further ones do nothing, which is the only sign of it outside the driver. Merging
	// with nil copies o.
	const probe = "mongodb://probe.invalid"
	if options.MergeClientOptions(o, nil).ApplyURI(probe).GetURI() != probe {
		return connString{}, errors.New("clientopt: a connection string that was applied to an argument of " +
			"WithClientOptions is not valid: pass it as the main one to learn why")
	}
	if o.GetURI() == "" {
		return connString{}, nil
	}
	cs, err := parse(o.GetURI())
	if err != nil {
		return cs, fmt.Errorf("clientopt: the connection string within WithClientOptions is not valid: %w", err)
	}
	return cs, nil
}
