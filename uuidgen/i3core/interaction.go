package i3core

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/stock"
	"github.com/bsonids/bsonids/uuidgen"
)

const formatInteraction = "legacy interaction id"

// Interaction is the fields of a legacy interaction id, version 0xC: a decimal number of ten digits
// that the last group of the text shows, as in xxxxxxxx-xxxx-cxxx-xxxx-001234567890. Without random
// bits it is unresolved: a component that asks the issuer about a number makes such an id. It is a
// plain value, safe to copy.
//
//	memory  0–7 little-endian     8–9 big-endian    10       11–15
//	        version:4 random:60   10:2 random:14    flags:8  ten decimal digits, high nibble first
//
// It is "Legacy Interaction Id UUID Format" of the document. Byte 10 is "reserved (0)" in its
// drawing and "flags" in its table; here it is flags, and every value is read.
type Interaction struct {
	Random60 uint64 // bytes 0–7
	Random14 uint16 // bytes 8–9
	Flags    byte   // the issuer's; zero by default
	Number   uint64 // 0 to 9999999999
}

const maxInteraction = 9_999_999_999

// NewInteraction returns a resolved interaction id with that number and flags; its random bits, of
// which 74 are drawn, are never all zero. A number above 9999999999 is a [*uuidgen.FieldError]; a random
// source that fails is an error. The one option for it is [uuidgen.WithRandom]; another is an error. An
// unresolved interaction id is an Interaction{Number: n}.
func NewInteraction(number uint64, flags byte, opts ...uuidgen.Option) (Interaction, error) {
	c, _, err := newConfig(formatInteraction, opts, "WithRandom")
	if err != nil {
		return Interaction{}, err
	}
	f := Interaction{Flags: flags, Number: number}
	if err := f.validate(); err != nil {
		return Interaction{}, err
	}
	random := c.Random
	if random == nil {
		random = stock.Source
	}
	var s stock.Stock
	s.Start(random)
	r60, r14, err := draw(&s, 1<<60-1, 1<<14-1)
	if err != nil {
		return Interaction{}, err
	}
	f.Random60, f.Random14 = r60, uint16(r14)
	return f, nil
}

// Resolved reports whether any random bit is set.
func (f Interaction) Resolved() bool { return f.Random60 != 0 || f.Random14 != 0 }

// validate returns a [*uuidgen.FieldError] for a field that is wider than its bits, and for a number of
// more than ten digits.
func (f Interaction) validate() error {
	if err := fits(formatInteraction, "random (60 bits)", f.Random60, 60); err != nil {
		return err
	}
	if err := fits(formatInteraction, "random (14 bits)", uint64(f.Random14), 14); err != nil {
		return err
	}
	if f.Number > maxInteraction {
		return fieldError(formatInteraction, "digits", f.Number, "a number of at most ten decimal digits")
	}
	return nil
}

// UUID puts the fields together. A field that is wider than its bits, and a number of more than ten
// digits, is a [*uuidgen.FieldError].
func (f Interaction) UUID() (uuid.UUID, error) {
	if err := f.validate(); err != nil {
		return uuid.Nil, err
	}
	i := ietf{low: f.Random60, mid: f.Random14}
	i.node[0] = f.Flags
	for n, at := f.Number, len(i.node)-1; at > 0; at-- {
		i.node[at] = byte(n/10%10<<4 | n%10)
		n /= 100
	}
	return i.join(versionCall), nil
}

// DecodeInteraction returns the fields of u. NULL is [ErrNull]; another version or variant, and a
// digit above 9, is a [*uuidgen.FieldError].
func DecodeInteraction(u uuid.UUID) (Interaction, error) {
	i, err := split(u, formatInteraction, versionCall)
	if err != nil {
		return Interaction{}, err
	}
	f := Interaction{Random60: i.low, Random14: i.mid, Flags: i.node[0]}
	for digit := 9; digit >= 0; digit-- {
		d := i.node[5-digit/2] >> (digit % 2 * 4) & 0xF
		if d > 9 {
			return Interaction{}, fieldError(formatInteraction, fmt.Sprintf("digit%d", digit), uint64(d), "0 to 9")
		}
		f.Number = f.Number*10 + uint64(d)
	}
	return f, nil
}
