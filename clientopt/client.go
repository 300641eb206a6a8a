package clientopt

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/internal/redact"
)

// ApplyURI returns the driver's client options for uri, with a registry that stores UUIDs in the
// representation that uri names, or else in that of [WithDefaultRepresentation]. The options are
// complete. A registry that is set on them later replaces that of this function, and the
// uuidRepresentation of a connection string that is applied to them later is ignored, as the driver
// ignores it.
//
// The name uuidRepresentation and its values are read in any letter case, percent-encoded or not.
// With the scheme mongodb+srv the driver looks up the host, after uuidRepresentation and opts were
// checked.
//
// Errors are those of [Representation], a nil or invalid Option, the errors of the registry's
// builder, and those of the driver's parser and of ClientOptions.Validate. No error shows the
// secrets of uri or opts.
//
// It implements "Implicit decoding and encoding" of the MongoDB driver specification "Handling of
// Native UUID Types".
func ApplyURI(uri string, opts ...Option) (*options.ClientOptions, error) {
	clientOpts, _, err := apply(uri, opts)
	return clientOpts, err
}

// Connect returns a client for uri. It calls [ApplyURI] and mongo.Connect, which starts the client
// and does not wait for a server. Errors are those of both, without the secrets of uri and opts.
// The errors of operations come from the client.
func Connect(uri string, opts ...Option) (*mongo.Client, error) {
	clientOpts, hidden, err := apply(uri, opts)
	if err != nil {
		return nil, err
	}
	client, err := mongo.Connect(clientOpts)
	if err != nil {
		return nil, fmt.Errorf("clientopt: cannot make a client: %w", hidden.Error(err))
	}
	return client, nil
}

func apply(uri string, opts []Option) (*options.ClientOptions, redact.Secrets, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, nil, err
	}
	cs, err := parse(uri)
	if err != nil {
		return nil, nil, fmt.Errorf("clientopt: the connection string is not valid: %w", err)
	}
	hidden := redact.ConnectionString(uri)
	values := cs.representations
	for _, o := range s.client {
		more, err := checkClientOptions(o)
		if err != nil {
			return nil, nil, err
		}
		values = append(values, more...)
		hidden = append(hidden, secretsOf(o)...)
		if a := o.AutoEncryptionOptions; a != nil && a.KeyVaultClientOptions != nil {
			// The client of the key vault is made on connecting, and its errors appear then. Its
			// representation does not matter, because its documents have no UUIDs of the
			// application.
			if _, err := appliedURI(a.KeyVaultClientOptions); err != nil {
				return nil, nil, err
			}
			hidden = append(hidden, secretsOf(a.KeyVaultClientOptions)...)
		}
	}

	rep, stated, err := representation(values)
	if err != nil {
		return nil, nil, fmt.Errorf("clientopt: %w", hidden.Error(err))
	}
	if !stated {
		rep = s.fallback
	}
	reg, err := s.newRegistry(rep)
	if err != nil {
		return nil, nil, err
	}

	all := append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, s.client...)
	merged := options.MergeClientOptions(all...)
	if err := merged.Validate(); err != nil {
		return nil, nil, fmt.Errorf("clientopt: %w", hidden.Error(err))
	}
	if err := s.monitor(merged, rep); err != nil {
		return nil, nil, err
	}
	return merged.SetRegistry(reg), hidden, nil
}

// checkClientOptions returns the values of uuidRepresentation in the connection string that was
// applied to o.
func checkClientOptions(o *options.ClientOptions) ([]string, error) {
	switch {
	case o == nil:
		return nil, errors.New("clientopt: WithClientOptions was given nil options")
	case o.Registry != nil:
		return nil, errors.New("clientopt: a registry in WithClientOptions would replace the one for UUIDs: " +
			"use WithRegistryBuilder for its codecs")
	}
	cs, err := appliedURI(o)
	return cs.representations, err
}

// appliedURI parses the connection string that was applied to o, if any. If the driver refused it,
// the error shows nothing of it: o keeps the driver's error, which can show secrets, but not the
// string.
func appliedURI(o *options.ClientOptions) (connString, error) {
	// After a failed ApplyURI, all further calls do nothing. That is the only sign of it outside
	// the driver. Merging with nil copies o.
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

// secretsOf returns what no error about a client with these options may show.
func secretsOf(o *options.ClientOptions) redact.Secrets {
	s := redact.ConnectionString(o.GetURI())
	if o.Auth == nil {
		return s
	}
	s = append(s, o.Auth.Password)
	for name, value := range o.Auth.AuthMechanismProperties {
		s = append(s, redact.Property(name, value)...)
	}
	return s
}
