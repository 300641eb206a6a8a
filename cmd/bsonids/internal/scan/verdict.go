package scan

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Outcome is the kind of a verdict.
type Outcome int

// The outcomes.
const (
	Undecided Outcome = iota // the order cannot be determined
	Mixed                    // the values are in several orders
	Named                    // the values are in one order
)

// Verdict is the verdict about the byte order of the values of one subtype. Its text, for example
// in JSON, is the name of the order, "mixed" or "undetermined". Verdicts can be compared with ==.
type Verdict struct {
	Outcome Outcome
	Order   Order // if Outcome is Named
	Subtype byte  // if Outcome is Named
}

const (
	undecidedText = "undetermined"
	mixedText     = "mixed"
)

func named(o Order, subtype byte) Verdict { return Verdict{Outcome: Named, Order: o, Subtype: subtype} }

// String returns the name of the order, "mixed" or "undetermined".
func (v Verdict) String() string {
	switch v.Outcome {
	case Mixed:
		return mixedText
	case Named:
		return v.Order.Name(v.Subtype)
	}
	return undecidedText
}

// MarshalText returns the text of String.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText parses the text of MarshalText. It returns an error for any other text.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = Verdict{}
	switch string(text) {
	case undecidedText:
		return nil
	case mixedText:
		v.Outcome = Mixed
		return nil
	}
	for _, subtype := range []byte{bson.TypeBinaryGeneric, bson.TypeBinaryUUIDOld} {
		for o := range orders {
			if o.Name(subtype) == string(text) {
				*v = named(o, subtype)
				return nil
			}
		}
	}
	return fmt.Errorf("scan: %q is not a verdict", text)
}
