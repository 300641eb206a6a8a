package convert

import "slices"

// Identity identifies a conversion. The state file, the undo log and the command line must agree on
// it.
type Identity struct {
	Database   string   `json:"database"`
	Collection string   `json:"collection"`
	From       string   `json:"from"`
	To         string   `json:"to"`
	Fields     []string `json:"fields,omitempty"`
	Into       string   `json:"into,omitempty"`
	Part       string   `json:"part,omitempty"`
	Query      string   `json:"query,omitempty"` // canonical extended JSON
}

// Equal reports whether both are the same conversion.
func (i Identity) Equal(o Identity) bool {
	same := slices.Equal(i.Fields, o.Fields)
	i.Fields, o.Fields = nil, nil
	return same && i.same(o)
}

func (i Identity) same(o Identity) bool {
	return i.Database == o.Database && i.Collection == o.Collection && i.From == o.From && i.To == o.To && i.Into == o.Into && i.Part == o.Part && i.Query == o.Query
}

func (i Identity) details() string {
	s := ""
	for _, f := range i.Fields {
		s += ", field " + f
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
