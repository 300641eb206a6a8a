package i3core

import (
	"errors"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/uuidgen"
)

// options has the values of the options of this package.
type options struct {
	custom     *byte
	version    *byte
	dbms       DBMS
	timestamps func() uint64
}

func newConfig(format string, opts []uuidgen.Option, apply ...string) (*idoption.Config, *options, error) {
	c, o := idoption.New("i3core", "the "+format+" format", apply...), new(options)
	c.Own = o
	return c, o, idoption.Apply(c, opts)
}

// own is an option of this package.
func own(name string, set func(*options)) uuidgen.Option {
	return func(c *idoption.Config) error {
		if err := c.Check(name); err != nil {
			return err
		}
		set(c.Own.(*options))
		return nil
	}
}

// WithCustom sets the custom byte of UUIDs of the random or notifier format. The default is a random
// one in the random format, and zero in the notifier format.
func WithCustom(custom byte) uuidgen.Option {
	return own("WithCustom", func(o *options) { o.custom = &custom })
}

// WithVersion sets the version, 4 bits, of UUIDs of the sequential format, which needs it: the document
// does not give the number. A number chosen here does not make the UUIDs those of i3core.
func WithVersion(version byte) uuidgen.Option {
	return own("WithVersion", func(o *options) { o.version = &version })
}

// WithDBMS sets the database in whose order the UUIDs of the sequential format are to ascend,
// [DBMSBinary] by default. MongoDB is DBMSBinary.
func WithDBMS(d DBMS) uuidgen.Option {
	return own("WithDBMS", func(o *options) { o.dbms = d })
}

// WithTimestamps makes a generator of the sequential format take its timestamps, 56 bits, from next,
// which it calls from one goroutine at a time. The default is microseconds since
// 2000-01-01T00:00:00Z: the document gives neither unit nor epoch. [Sequential.Time] and the functions
// that take instants do not fit other timestamps. [uuidgen.WithMaxRollback] and
// [uuidgen.Generator.Ahead] take their unit as a microsecond. With [uuidgen.WithClock] it is an error.
func WithTimestamps(next func() uint64) uuidgen.Option {
	if next == nil {
		return func(*idoption.Config) error { return errors.New("WithTimestamps: nil function") }
	}
	return own("WithTimestamps", func(o *options) { o.timestamps = next })
}
