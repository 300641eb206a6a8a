package kinds

import (
	"fmt"
	"slices"
	"strings"
)

// Pair names values that are converted to the standard representation.
type Pair struct {
	From   string   `json:"from" bson:"from"`                         // name of a kind
	Fields []string `json:"fields,omitempty" bson:"fields,omitempty"` // sorted; all fields if empty
	// Trust has those of the fields, with the brackets of arrays, whose values a person vouches for; sorted.
	Trust []string `json:"trust,omitempty" bson:"trust,omitempty"`
}

func (p Pair) String() string { return fmt.Sprintf("from %s to %s", p.From, Standard) }

// Equal reports whether both are the same.
func (p Pair) Equal(o Pair) bool {
	return p.Alike(o) && slices.Equal(p.Fields, o.Fields) && slices.Equal(p.Trust, o.Trust)
}

// Alike reports whether both convert from one kind.
func (p Pair) Alike(o Pair) bool { return p.From == o.From }

// Task is what a conversion converts.
type Task struct {
	Collection string `json:"collection" bson:"collection"`
	Filter     string `json:"filter,omitempty" bson:"filter,omitempty"` // of the documents, in canonical extended JSON; empty for all
	Pairs      []Pair `json:"pairs" bson:"pairs,omitempty"`             // all kinds of values in one pass
	Into       string `json:"into,omitempty" bson:"into,omitempty"`     // name of the new collection; empty for a conversion in place
}

// Describe names the pairs: "from csharpLegacy and text to standard".
func Describe(pairs []Pair) string {
	var from []string
	for _, p := range pairs {
		if p.From != OfMalformed { // which stay
			from = append(from, p.From)
		}
	}
	switch {
	case len(pairs) == 0:
		return ""
	case len(from) == 0:
		return "of " + OfMalformed + " values, which stay"
	}
	return "from " + strings.Join(from, " and ") + " to " + Standard
}
