package scan

import (
	"fmt"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Outcome is the kind of a verdict.
type Outcome int

// The outcomes.
const (
	Undecided Outcome = iota // the order cannot be determined
	Mixed                    // the values are in several orders, or only a part of them is in one
	Named                    // the values are in one order
)

// Verdict is the verdict about the byte order of the values of one subtype. Its text, for example
// in JSON, is the name of the order, "mixed" or "undetermined". Verdicts can be compared with ==.
type Verdict struct {
	Outcome Outcome
	Order   string // the name of the order if Outcome is Named, see [kinds.NameOf]
}

const (
	undecidedText = "undetermined"
	mixedText     = "mixed"
)

// String returns the name of the order, "mixed" or "undetermined".
func (v Verdict) String() string {
	switch v.Outcome {
	case Mixed:
		return mixedText
	case Named:
		return v.Order
	}
	return undecidedText
}

// Convertible reports whether the verdict names a kind that can be converted.
func (v Verdict) Convertible() bool {
	_, err := kinds.Parse(v.Order)
	return v.Outcome == Named && err == nil
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
	for _, k := range decided {
		for _, o := range decided {
			if k.IsBinary() && kinds.NameOf(k.Subtype, o.Order) == string(text) {
				*v = Verdict{Named, string(text)}
				return nil
			}
		}
	}
	return fmt.Errorf("scan: %q is not a verdict", text)
}
