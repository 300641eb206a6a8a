package rule

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewriter converts documents one after the other, including the values in _id. It is not safe for
// concurrent use.
type Rewriter struct {
	conversion Conversion
	sameSize   bool // every converted value has the size of the old one
	visit      func(*walk.Path, walk.Leaf) error
	ruling     Ruling
	doc        []byte
	edits      []walk.Edit
	left       []Left
	values     int // that were converted in the bytes of doc
}

// NewRewriter returns a Rewriter for the conversion.
func NewRewriter(c Conversion) *Rewriter {
	r := &Rewriter{conversion: c, sameSize: !slices.ContainsFunc(c, func(p Pair) bool { return !p.From.IsBinary() })}
	r.visit = r.value
	return r
}

// Document converts the values of doc, in its own bytes if their size does not change. It returns the
// converted document, the number of converted values, and those that it left as they are, which are
// valid until the next call. The error wraps walk.ErrCorrupt; doc may then be converted in part.
func (r *Rewriter) Document(doc []byte) (out []byte, values int, left []Left, err error) {
	r.doc, r.left, r.values, r.edits = doc, r.left[:0], 0, r.edits[:0]
	if err := r.conversion.Walk(doc, r.visit); err != nil || len(r.edits) == 0 {
		return doc, r.values, r.left, err
	}
	if out, err = walk.Splice(doc, r.edits); err != nil {
		return doc, 0, r.left, err
	}
	return out, len(r.edits), r.left, nil
}

// value converts a value if it is to be converted.
func (r *Rewriter) value(path *walk.Path, l walk.Leaf) error {
	v := &r.ruling
	if !r.conversion.Rule(v, path, l) {
		return nil
	}
	switch {
	case v.Reason != "":
		r.left = append(r.left, v.change().Left(v.Reason))
	case !r.sameSize:
		r.edits = append(r.edits, v.fresh.edit(l.Offset))
	default:
		_, _, offset, _ := l.Binary()
		r.doc[offset] = v.fresh.Subtype
		copy(r.doc[offset+1:], v.fresh.Octets[:])
		r.values++
	}
	return nil
}

// Wants calls visit for each value in doc that the conversion would change, whatever its judge says.
// Values that are not UUIDs are left out. The Reason of what visit gets is empty, and the path is valid
// until it returns. The error wraps walk.ErrCorrupt.
func (c Conversion) Wants(doc bson.Raw, visit func(*walk.Path, Left)) error {
	c = slices.Clone(c)
	for i := range c {
		c[i].Judge = nil
	}
	return c.each(doc, new(Ruling), func(r *Ruling) error {
		if r.Reason == "" {
			visit(r.path, r.change().Left(""))
		}
		return nil
	})
}
