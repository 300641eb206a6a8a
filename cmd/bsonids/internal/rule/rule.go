package rule

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Ruling is what the rule says about a value that a conversion applies to.
type Ruling struct {
	Field  []byte   // the name of the field, valid until the next call
	Octets [16]byte // the bytes of the value, in the order of From
	// Same is set if the new value is the old one, which is neither converted nor left.
	Same bool
	// Reason says why the value is left. It is empty if the value is converted.
	Reason string

	path  *walk.Path // valid until visit returns
	leaf  walk.Leaf
	old   located
	fresh [16]byte // the new bytes
	value Value    // the new value if it is not binary
	name  [128]byte
}

// Rule decides about one value: whether it is converted, to what, or why it is left. Every way to convert
// or to prove a conversion asks it, and nothing else does. ok is false if the conversion does not apply to
// the value.
func (c *Conversion) Rule(r *Ruling, path *walk.Path, l walk.Leaf) (ok bool) {
	if c.From.Form == kinds.Binary && l.Type != bson.TypeBinary { // most values
		return false
	}
	if !c.From.Has(l) || !c.Selects(path) {
		return false
	}
	r.path, r.leaf, r.old, r.Reason = path, l, c.read(l), ""
	r.Octets = r.old.octets
	r.fresh, r.value = c.fresh(r.old)
	if r.Same = c.SameSubtype() && r.fresh == r.Octets; r.Same {
		return true
	}
	r.Field = path.AppendField(r.name[:0])
	r.Reason = c.judge(r.Field, &r.old)
	return true
}

// judge returns the reason for which a value of the field is not converted, or "".
func (c *Conversion) judge(field []byte, v *located) string {
	switch {
	case v.unfit != "":
		return v.unfit
	case c.From.Form == kinds.Binary:
		return c.Judge.Value(field, v.octets)
	}
	return c.Judge.Formed(field, kinds.Spelled{UUID: v.octets, Certain: v.certain})
}

// each calls visit, in the order of the document, for each value of doc that is converted or left.
func (c *Conversion) each(doc []byte, r *Ruling, visit func(*Ruling) error) error {
	return c.Walk(doc, func(path *walk.Path, l walk.Leaf) error {
		if !c.Rule(r, path, l) || r.Same {
			return nil
		}
		return visit(r)
	})
}

// change returns the change of the value, also if it is left.
func (r *Ruling) change() Change {
	return Change{Path: r.path.Dotted(), Field: string(r.Field), Old: r.old.octets, OldValue: r.old.value, New: r.fresh, NewValue: r.value}
}

// onlyCopied returns why an update cannot change the value in its document, or "".
func (r *Ruling) onlyCopied(doc bson.Raw) string {
	if err := r.path.Addressable(); err != nil {
		return err.Error()
	}
	if r.path.Repeated(doc) {
		return "a field name occurs twice in the document, and an update changes only the first one: " + r.path.Dotted()
	}
	return ""
}

// tooLarge is why the values of a document are left.
const tooLarge = "the converted document would be larger than 16 MiB, which no server stores"

// maxDocument is the maximum size of a document on a server, in bytes.
const maxDocument = 16 << 20

// outgrows reports whether a document of size bytes would be too large with the edits.
func outgrows(size, growth int) bool { return growth > 0 && size+growth > maxDocument }

// takes reports whether a value of the field that has the bytes, which are those of a binary value, is
// converted.
func (c *Conversion) takes(field []byte, octets [16]byte) bool {
	return c.judge(field, &located{octets: octets}) == ""
}

// Made reports whether the bytes of a binary value of the field may be what the conversion made of
// another value.
func (c *Conversion) Made(field []byte, octets [16]byte) bool {
	return !c.leaves(field) && c.takes(field, c.From.Order.Permute(c.To.Order.Permute(octets)))
}

// leaves reports whether the conversion converts no value of the field.
func (c *Conversion) leaves(field []byte) bool { return c.Judge.Leaves(field) }

// located is a value that a conversion applies to.
type located struct {
	octets [16]byte // in the order of From
	value  Value
	// certain and null are as in kinds.Spelled. If unfit is not empty, it says why the value is not a
	// UUID; the conversion never converts it.
	certain, null bool
	unfit         string
}

// read reads a value that From may have. It copies one that is not binary.
func (c *Conversion) read(l walk.Leaf) located {
	if c.From.Form == kinds.Binary {
		_, data, _, _ := l.Binary()
		return located{octets: [16]byte(data)}
	}
	s, reason, _ := c.From.Form.Parse(l)
	return located{octets: s.UUID, certain: s.Certain, null: s.Null, value: ValueOf(l.Type, l.Value), unfit: reason}
}

// Fresh returns what the conversion makes of the old value that a Change or a Left has.
func (c *Conversion) Fresh(octets [16]byte, v Value) ([16]byte, Value) {
	if v == "" {
		return c.fresh(located{octets: octets})
	}
	return c.fresh(c.read(walk.Leaf{Type: bson.Type(v[0]), Value: []byte(v[1:])}))
}

// find returns the value if the conversion applies to it, whatever the judge says.
func (c *Conversion) find(p *walk.Path, l walk.Leaf) (v located, ok bool) {
	if !c.From.Has(l) || !c.Selects(p) {
		return v, false
	}
	return c.read(l), true
}

// octets converts the bytes of a value from From to To.
func (c *Conversion) octets(old [16]byte) [16]byte {
	return c.To.Order.Permute(c.From.Order.Permute(old))
}

// fresh returns the converted value.
func (c *Conversion) fresh(v located) ([16]byte, Value) {
	octets := c.octets(v.octets)
	switch {
	case v.null:
		return octets, Null
	case c.To.Form == kinds.Text:
		return octets, textOf(octets)
	}
	return octets, ""
}

// edit returns the change of the value at the offset of its document to the converted one.
func (c *Conversion) edit(offset int, octets [16]byte, value Value) walk.Edit {
	if value != "" {
		raw := value.Raw()
		return walk.Edit{Offset: offset, Type: raw.Type, Value: raw.Value}
	}
	b := append(make([]byte, 0, 21), 16, 0, 0, 0, c.To.Subtype)
	return walk.Edit{Offset: offset, Type: bson.TypeBinary, Value: append(b, octets[:]...)}
}
