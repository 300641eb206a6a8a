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
		at, copied := []int(nil), false
		for _, w := range group {
			for i, c := range p.Collections {
				if c.Name == w.Collection && c.Filter == "" { // a copy has all documents
					at = append(at, i)
					copied = copied || slices.ContainsFunc(c.Fields, convertsID)
				}
			}
		}
		for _, i := range at {
			if c := &p.Collections[i]; copied {
				b.copy(c)
			}
		}
	}
	for i := range p.Collections {
		if c := &p.Collections[i]; c.Into == "" {
			for j := range c.Fields {
				c.Fields[j].leaveUnusable(false)
			}
		}
	}
}

// copy gives a collection a new one.
func (b *builder) copy(c *Collection) { c.Into = b.free(c.Name + "_" + strings.ToLower(b.to.Name)) }

// convertsID reports whether the field is in _id, and converted.
func convertsID(f Field) bool {
	_, ok := f.Decision.From()
	return ok && InID(f.Path)
}
