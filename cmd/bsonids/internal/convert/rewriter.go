package convert

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewriter converts documents where they are in memory, one after the other, including the values in
// _id. It is not safe for concurrent use.
type Rewriter struct {
	conversion Conversion
	counts     map[string]*int64
	visit      func(*walk.Path, walk.Leaf) error
	doc        []byte
	name       []byte
	left       []Left
	values     int
}

// NewRewriter returns a Rewriter for the conversion.
func NewRewriter(c Conversion) *Rewriter {
	r := &Rewriter{conversion: c, counts: make(map[string]*int64)}
	r.visit = r.value
	return r
}

// Document converts the values of doc in its own bytes. It returns the number of converted values,
// and those that it left as they are, which are valid until the next call. The error wraps
// walk.ErrCorrupt; doc may then be converted in part.
func (r *Rewriter) Document(doc []byte) (values int, left []Left, err error) {
	r.doc, r.left, r.values = doc, r.left[:0], 0
	err = walk.Document(doc, r.visit)
	return r.values, r.left, err
}

// value converts a value if it is to be converted.
func (r *Rewriter) value(path *walk.Path, l walk.Leaf) error {
	if l.Type != bson.TypeBinary {
		return nil
	}
	c := &r.conversion
	old, offset, ok := c.wants(path, l)
	if !ok {
		return nil
	}
	fresh := c.octets(old)
	if fresh == old && c.SameSubtype() {
		return nil
	}
	r.name = path.AppendField(r.name[:0])
	if reason := c.Judge.Value(r.name, old); reason != "" {
		r.left = append(r.left, Left{Path: path.Dotted(), Old: old, Reason: reason})
		return nil
	}
	r.doc[offset] = c.To.Subtype
	copy(r.doc[offset+1:], fresh[:])
	r.values++
	r.count()
	return nil
}

// count counts a value of the field r.name.
func (r *Rewriter) count() {
	n := r.counts[string(r.name)]
	if n == nil {
		name := string(r.name)
		if len(r.counts) >= maxNames {
			name = Others
		}
		if n = r.counts[name]; n == nil {
			n = new(int64)
			r.counts[name] = n
		}
	}
	*n++
}

// Fields returns the number of converted values by field.
func (r *Rewriter) Fields() Tally {
	t := make(Tally, len(r.counts))
	for name, n := range r.counts {
		t[name] = *n
	}
	return t
}

// Wants calls visit for each value in doc that the conversion applies to, whatever its judge says,
// with its path, the position of its subtype in doc, and its bytes. The error wraps
// walk.ErrCorrupt.
func (c Conversion) Wants(doc bson.Raw, visit func(path string, offset int, octets [16]byte)) error {
	return walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if old, offset, ok := c.wants(path, l); ok {
			visit(path.Dotted(), offset, old)
		}
		return nil
	})
}
