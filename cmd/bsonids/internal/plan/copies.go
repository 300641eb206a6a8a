package plan

import (
	"fmt"
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
					copied = copied || c.idKind() != ""
				}
			}
		}
		for _, i := range at {
			if c := &p.Collections[i]; copied {
				b.copy(c, p.copyKind(*c))
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

// idKind returns the kind of the first values in _id that are converted, or an empty string. Those that are the
// same in every order count last.
func (c Collection) idKind() (symmetric string) {
	for _, f := range c.Fields {
		kind, ok := f.Decision.From()
		switch {
		case !ok || !InID(f.Path):
		case !f.symmetric():
			return kind
		case symmetric == "":
			symmetric = kind
		}
	}
	return symmetric
}

// copyKind returns the kind that a copy of the collection is converted from: that of _id, or else that of a field
// by which it refers to another collection, or else that of the first field.
func (p *Plan) copyKind(c Collection) string {
	if kind := c.idKind(); kind != "" {
		return kind
	}
	first := ""
	for _, f := range c.Fields {
		kind, ok := f.Decision.From()
		if !ok {
			continue
		}
		if slices.ContainsFunc(p.References, func(r Reference) bool { return r.names(c.Name, f) }) {
			return kind
		}
		if first == "" {
			first = kind
		}
	}
	return first
}

// names reports whether an end of the reference is the field.
func (r Reference) names(collection string, f Field) bool {
	return slices.ContainsFunc([]int{0, 1}, func(i int) bool {
		return r.Between[i] == collection && len(r.Fields) == 2 && Plain(r.Fields[i]) == f.Plain()
	})
}

// copy gives a collection a new one, into which its values are converted from the kind.
func (b *builder) copy(c *Collection, kind string) {
	c.Into = b.free(c.Name + "_" + strings.ToLower(b.to.Name))
	for i := range c.Fields {
		f := &c.Fields[i]
		if from, ok := f.Decision.From(); ok && from != kind {
			f.Decision = Leave
			f.Comment = append(f.Comment, fmt.Sprintf("left, because the collection is copied, and a copy converts from %s only: convert this field from %s in %s later", kind, from, c.Into))
		}
	}
}
