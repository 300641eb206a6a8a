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
	changes    []Change    // of the edits, except for those of ids
	ids        []walk.Edit // those of values in _id
	inID       []Change
	idTooLarge bool // the converted _id makes the document too large
	left       []Left
	values     int // that were converted in the bytes of doc
}

// NewRewriter returns a Rewriter for the conversion.
func NewRewriter(c Conversion) *Rewriter {
	r := &Rewriter{conversion: c, sameSize: !slices.ContainsFunc(c, func(p Pair) bool { return !p.From.IsBinary() || !p.To.IsBinary() })}
	r.visit = r.value
	return r
}

// Document converts the values of doc, in its own bytes if their size does not change. It returns the
// converted document, the number of converted values, and those that it left as they are, which are
// valid until the next call. The error wraps walk.ErrCorrupt; doc may then be converted in part.
func (r *Rewriter) Document(doc []byte) (out []byte, values int, left []Left, err error) {
	r.doc, r.left, r.values, r.edits, r.changes = doc, r.left[:0], 0, r.edits[:0], r.changes[:0]
	r.ids, r.inID, r.idTooLarge = r.ids[:0], r.inID[:0], false
	if err := r.conversion.Walk(doc, r.visit); err != nil || len(r.edits) == 0 {
		return doc, r.values, r.left, err
	}
	if out, err = walk.Splice(doc, r.edits); err != nil {
		return doc, 0, r.left, err
	}
	if !outgrows(len(doc), len(out)-len(doc)) {
		return out, len(r.edits), r.left, nil
	}
	// What else is in a document does not decide what becomes of its _id, by which its copy is found.
	for _, ch := range r.changes {
		r.left = append(r.left, ch.Left(tooLarge))
	}
	if out, err = walk.Splice(doc, r.ids); err != nil || !outgrows(len(doc), len(out)-len(doc)) {
		return out, len(r.ids), r.left, err
	}
	for _, ch := range r.inID {
		r.left = append(r.left, ch.Left(tooLarge))
	}
	r.idTooLarge = true
	return doc, 0, r.left, nil
}

// value converts a value if it is to be converted.
func (r *Rewriter) value(path *walk.Path, l walk.Leaf) error {
	v := &r.ruling
	if !r.conversion.Rule(v, path, l) || v.Same {
		return nil
	}
	switch {
	case v.Reason != "":
		r.left = append(r.left, v.change().Left(v.Reason))
	case !r.sameSize:
		e := v.fresh.edit(l.Offset)
		r.edits = append(r.edits, e)
		if path.Top() == "_id" {
			r.ids, r.inID = append(r.ids, e), append(r.inID, v.change())
		} else {
			r.changes = append(r.changes, v.change())
		}
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
