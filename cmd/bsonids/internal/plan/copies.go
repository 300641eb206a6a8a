package plan

import (
	"slices"
	"strings"
)

// copies gives collections a new one that have values in _id to convert, and those that refer to one of these or
// are referred to by it, also by way of others: all of them are exchanged at one moment. It leaves the fields that
// cannot be converted in this way.
func (b *builder) copies(p *Plan) {
	for _, group := range p.Groups() {
		group = slices.DeleteFunc(group, func(st Step) bool { return st.Filter != "" }) // a copy has all documents
		if !slices.ContainsFunc(group, func(st Step) bool { return slices.ContainsFunc(FieldsOf(st.Pairs), InID) }) {
			continue
		}
		for _, st := range group {
			p.Collections[p.find(st.Entry())].Into = b.free(st.Collection + "_" + strings.ToLower(b.to.Name))
		}
	}
	for i := range p.Collections {
		if c := &p.Collections[i]; c.Into == "" {
			for j := range c.Fields {
				c.Fields[j].leaveUnusable(false)
			}
			c.overlaps()
		}
	}
}
