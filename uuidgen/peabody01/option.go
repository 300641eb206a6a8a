package peabody01

import (
	"fmt"
	"time"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/uuidgen"
)

// options has the values of the options of this package.
type options struct {
	encoding    Encoding
	machine     uint64
	machineBits int
	machineSet  bool
}

const (
	defaultAhead    = time.Second // of version 6
	defaultRollback = time.Second // of versions 7 and 8
)

func newConfig(format string, opts []uuidgen.Option, apply ...string) (*idoption.Config, error) {
	c := idoption.New("peabody01", format, append(apply, "WithRandom", "WithMachineID", "WithMaxWait")...)
	c.Own, c.MaxAhead = new(options), defaultAhead
	if format != version6 {
		c.MaxRollback = defaultRollback
	}
	return c, idoption.Apply(c, opts)
}

// node returns the fixed bits of a node of that width, and the number of random bits below them.
func (o *options) node(width int) (machine uint64, random int, err error) {
	if !o.machineSet {
		return 0, width, nil
	}
	random = width - o.machineBits
	if o.machineBits < 1 || random < minRandomBits {
		return 0, 0, fmt.Errorf("peabody01: WithMachineID: %d bits, want 1 to %d: a node of %d bits has at least %d random ones",
			o.machineBits, width-minRandomBits, width, minRandomBits)
	}
	if o.machine>>o.machineBits != 0 {
		return 0, 0, fmt.Errorf("peabody01: WithMachineID: the id %#x is wider than %d bits", o.machine, o.machineBits)
	}
	return o.machine << random, random, nil
}

// WithMachineID puts id into the top bits of the node, right after the sequence. The makers in a
// cluster then make different UUIDs, and a value shows its maker: see MachineID of [V6], [V7] and
// [V8]. The width in bits is at least 1 and leaves at least 16 random bits in the node. The draft
// recommends 48 random bits and forbids a MAC address. An id that is wider is an error of the
// constructor. It applies to the versions of this package.
//
// It implements section 7 of the draft.
func WithMachineID(id uint64, bits int) uuidgen.Option {
	return func(c *idoption.Config) error {
		if err := c.Check("WithMachineID"); err != nil {
			return err
		}
		o := c.Own.(*options)
		o.machine, o.machineBits, o.machineSet = id, bits, true
		return nil
	}
}

// WithEncoding sets how version 7 writes parts of a second, [RoundUp] by default. It applies to
// version 7 of this package.
func WithEncoding(e Encoding) uuidgen.Option {
	return func(c *idoption.Config) error {
		if int(e) >= len(encodings) {
			return fmt.Errorf("WithEncoding: %v is not an encoding of sub-seconds", e)
		}
		if err := c.Check("WithEncoding"); err != nil {
			return err
		}
		c.Own.(*options).encoding = e
		return nil
	}
}
