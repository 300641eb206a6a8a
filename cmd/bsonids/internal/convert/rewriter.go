package convert

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewriter converts documents one after the other, including the values in _id. It is not safe for
// concurrent use.
type Rewriter struct {
	// Each, which may be nil, is called for each value that is converted.
	Each func(Change)

	conversion Conversion
	counts     map[string]*int64
	visit      func(*walk.Path, walk.Leaf) error
	doc        []byte
	edits      []walk.Edit
	changes    []Change // of the edits
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

// inPlace reports whether a converted value has the size of the old one.
func (c Conversion) inPlace() bool { return c.From.IsBinary() && c.To.IsBinary() }

// Document converts the values of doc, in its own bytes if their size does not change. It returns the
// converted document, the number of converted values, and those that it left as they are, which are
// valid until the next call. The error wraps walk.ErrCorrupt; doc may then be converted in part.
func (r *Rewriter) Document(doc []byte) (out []byte, values int, left []Left, err error) {
	r.doc, r.left, r.values, r.edits, r.changes = doc, r.left[:0], 0, r.edits[:0], r.changes[:0]
	if r.conversion.inPlace() {
		err = walk.Document(doc, r.visit)
		return doc, r.values, r.left, err
	}
	err = r.conversion.edits(doc, func(e walk.Edit, ch Change) {
		r.edits, r.changes = append(r.edits, e), append(r.changes, ch)
	}, func(l Left) { r.left = append(r.left, l) })
	if err != nil || len(r.edits) == 0 {
		return doc, 0, r.left, err
	}
	out, err = walk.Splice(doc, r.edits)
	if len(out) > maxDocument && len(out) > len(doc) {
		for _, ch := range r.changes {
			r.left = append(r.left, ch.left("the converted document would be larger than 16 MiB, which no server stores"))
		}
		return doc, 0, r.left, err
	}
	for i := range r.changes {
		r.name = append(r.name[:0], r.changes[i].Field...)
		r.count()
		if r.Each != nil {
			r.Each(r.changes[i])
		}
	}
	return out, r.values, r.left, err
}

// maxDocument is the maximum size of a document on a server, in bytes.
const maxDocument = 16 << 20

// value converts a value if it is to be converted, and its size does not change.
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
	r.count()
	if r.Each != nil {
		r.Each(Change{Path: path.Dotted(), Field: string(r.name), Old: old, New: fresh})
	}
	return nil
}

// count counts a value of the field r.name.
func (r *Rewriter) count() {
	r.values++
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

// Wants calls visit for each value in doc that the conversion applies to, whatever its judge says.
// Values that are not UUIDs are left out. The Reason of what visit gets is empty. The error wraps
// walk.ErrCorrupt.
func (c Conversion) Wants(doc bson.Raw, visit func(Left)) error {
	return c.walk(doc, func(path *walk.Path, l walk.Leaf) error {
		if v, ok := c.find(path, l); ok && v.unfit == "" {
			visit(Left{Path: path.Dotted(), Old: v.octets, Value: v.value})
		}
		return nil
	})
}
