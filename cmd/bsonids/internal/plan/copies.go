package plan

import (
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// copies gives collections a new one that have values in _id to convert, and those that refer to one of these or
// are referred to by it, also by way of others: all of them are exchanged at one moment. It leaves the fields that
// cannot be converted in this way.
func (b *builder) copies(p *Plan) {
	for i := range p.Collections {
		p.Collections[i].stays(InID)
	}
	for _, group := range p.Groups() {
		group = slices.DeleteFunc(group, func(st Step) bool { return st.Filter != "" }) // a copy has all documents
		if !slices.ContainsFunc(group, func(st Step) bool { return slices.ContainsFunc(FieldsOf(st.Pairs), InID) }) {
			continue
		}
		for _, st := range group {
			c := &p.Collections[p.find(st.Entry())]
			if c.unexchangeable != "" {
				c.stays(func(string) bool { return true })
				continue
			}
			c.Into = b.free(st.Collection + "_" + kinds.Standard)
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

// stays leaves those fields of the collection that can be converted only in a copy, or together with copies, if a cutover
// cannot put a copy in its place.
func (c *Collection) stays(needs func(path string) bool) {
	if c.unexchangeable == "" {
		return
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Decision == Leave || f.Decision == List || !needs(f.Path) {
			continue
		}
		kind, ok := f.Decision.From()
		if !ok {
			kind = "X"
		}
		f.Decision = Leave
		f.comment("left: bsonids cutover cannot put a copy in the place of the collection: %s;", c.unexchangeable)
		if InID(f.Path) {
			f.comment("for a copy that you put there yourself, convert from %s, and add into and accepted: true to the collection", kind)
		} else {
			f.comment("it refers to collections that are copied; convert from %s converts it in place, before their cutover: then accept the references", kind)
		}
	}
}
