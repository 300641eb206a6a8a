// Package idoption has the values of the options of package uuidgen. The packages of other formats read them, because their
// constructors take the same options.
package idoption

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/bsonids/bsonids/internal/serial"
)

// The defaults of [New].
const (
	NoLimit         = math.MaxInt64
	DefaultRollback = time.Minute
	DefaultWait     = 2 * time.Second
)

// A Config has the values of the options of a constructor.
type Config struct {
	Package string // its name begins the errors
	format  string
	options []string

	Now         func() time.Time // nil: the system's clock
	Random      io.Reader        // nil: the system's source
	MaxAhead    time.Duration
	MaxRollback time.Duration
	MaxWait     time.Duration

	Own any // what the options of the constructor's package set

	// The format of another package has one of these.
	Machine *serial.Machine // it draws the ids
	V6      *V6             // they have the layout of version 6
}

// V6 is how version 6 of package peabody01 differs from that of RFC 9562: the clock sequence stays the same in an order, and
// the node is not zero and has no multicast bit.
type V6 struct {
	Node       uint64 // its fixed bits: a machine id above the random bits
	RandomBits int    // of the node: the lowest
}

// NewGenerator returns the *uuidgen.Generator of a format of another package, which has a Machine or a V6. Package uuidgen
// sets it, and does not export it: other modules could not call it.
var NewGenerator func(*Config) any

// New returns the Config of a constructor without options. Errors begin with the name of the package and name the format.
// The options are the names of those that apply.
func New(pkg, format string, options ...string) *Config {
	return &Config{Package: pkg, format: format, options: options,
		MaxAhead: NoLimit, MaxRollback: DefaultRollback, MaxWait: DefaultWait}
}

// Apply applies options in turn. An option that is nil, does not apply to the format or has an invalid value is an error.
func Apply[O ~func(*Config) error](c *Config, opts []O) error {
	for _, opt := range opts {
		if opt == nil {
			return fmt.Errorf("%s: nil Option", c.Package)
		}
		if err := opt(c); err != nil {
			return fmt.Errorf("%s: %w", c.Package, err)
		}
	}
	return nil
}

// Check returns an error if the option does not apply to the format. Only after it does Own have the type of the option's
// package.
func (c *Config) Check(name string) error {
	if !slices.Contains(c.options, name) {
		return fmt.Errorf("%s does not apply to %s", name, c.format)
	}
	return nil
}
