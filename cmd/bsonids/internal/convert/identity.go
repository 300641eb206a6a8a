package convert

import (
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Identity identifies a conversion. The state file, the undo log and the command line must agree on
// it.
type Identity struct {
	Database   string       `json:"database"`
	Collection string       `json:"collection"`
	Pairs      []kinds.Pair `json:"pairs"`
	Into       string       `json:"into,omitempty"`
	Part       string       `json:"part,omitempty"`
	Query      string       `json:"query,omitempty"` // canonical extended JSON
}

// Equal reports whether both are the same conversion.
func (i Identity) Equal(o Identity) bool {
	return slices.EqualFunc(i.Pairs, o.Pairs, kinds.Pair.Equal) && i.Database == o.Database && i.Collection == o.Collection && i.Into == o.Into && i.Part == o.Part && i.Query == o.Query
}

// String describes the conversion.
func (i Identity) String() string {
	s := i.Database + "." + i.Collection + " " + kinds.Describe(i.Pairs)
	for _, p := range i.Pairs {
		for _, f := range p.Fields {
			s += ", field " + f
		}
	}
	if i.Into != "" {
		s += ", into " + i.Into
	}
	if i.Query != "" {
		s += ", query " + i.Query
	}
	if i.Part != "" {
		s += ", part " + i.Part
	}
	return s
}
