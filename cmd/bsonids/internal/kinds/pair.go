package kinds

import (
	"fmt"
	"slices"
)

// Pair names the values that are converted, and what they become.
type Pair struct {
	From   string   `json:"from" bson:"from"` // names of kinds
	To     string   `json:"to" bson:"to"`
	Fields []string `json:"fields,omitempty" bson:"fields,omitempty"` // sorted; all fields if empty
	// Trust has those of the fields, with the brackets of arrays, whose values a person vouches for; sorted.
	Trust []string `json:"trust,omitempty" bson:"trust,omitempty"`
}

func (p Pair) String() string { return fmt.Sprintf("from %s to %s", p.From, p.To) }

// Equal reports whether both are the same.
func (p Pair) Equal(o Pair) bool {
	return p.Alike(o) && slices.Equal(p.Fields, o.Fields) && slices.Equal(p.Trust, o.Trust)
}

// Alike reports whether both convert from one kind to the same one.
func (p Pair) Alike(o Pair) bool { return p.From == o.From && p.To == o.To }

// Subtypes returns those of the old and the new values, or what stands in their places. Both are 0 if a kind is not known.
func (p Pair) Subtypes() (from, to byte) {
	old, err := Parse(p.From)
	fresh, err2 := Parse(p.To)
	if err != nil || err2 != nil {
		return 0, 0
	}
	return old.Subtype, fresh.Subtype
}

// SameSubtype reports whether converted values have the same subtype as other values.
func (p Pair) SameSubtype() bool {
	from, to := p.Subtypes()
	return from == to
}

// Task is what a conversion converts.
type Task struct {
	Collection string `json:"collection" bson:"collection"`
	Filter     string `json:"filter,omitempty" bson:"filter,omitempty"` // of the documents, in canonical extended JSON; empty for all
	Pairs      []Pair `json:"pairs" bson:"pairs,omitempty"`             // all kinds of values in one pass
	Into       string `json:"into,omitempty" bson:"into,omitempty"`     // name of the new collection; empty for a conversion in place
}

// Describe names the pairs: "from csharpLegacy and text to standard".
func Describe(pairs []Pair) (text string) {
	for i, p := range pairs {
		switch {
		case i == 0:
			text = "from " + p.From
		case p.To == pairs[i-1].To:
			text += " and " + p.From
			continue
		default:
			text += " to " + pairs[i-1].To + ", from " + p.From
		}
	}
	if len(pairs) > 0 {
		text += " to " + pairs[len(pairs)-1].To
	}
	return text
}
