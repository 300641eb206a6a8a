package rule

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Ruling is what the rule says about a value that a conversion applies to.
type Ruling struct {
	Field  []byte   // the name of the field, valid until the next call
	Octets [16]byte // the UUID of the value, in the order of its kind
	// Reason says why the value is left. It is empty if the value is converted.
	Reason string

	pair  *Pair
	path  *walk.Path // valid until visit returns
	leaf  walk.Leaf
	fresh Value // the new value
	name  [128]byte
}

// Rule decides about one value: whether it is converted, to what, or why it is left. Every way to convert
// or to prove a conversion asks it, and nothing else does. ok is false if the conversion does not apply to
// the value.
func (c Conversion) Rule(r *Ruling, path *walk.Path, l walk.Leaf) (ok bool) {
	for i := range c {
		p := &c[i]
		if p.From.Form == kinds.Binary && l.Type != bson.TypeBinary { // most values
			continue
		}
		if !p.From.Has(l) || !p.selects(path) {
			continue
		}
		old := p.read(l)
		r.pair, r.path, r.leaf, r.Octets, r.fresh = p, path, l, old.octets, p.fresh(old)
		r.Field = path.AppendField(r.name[:0])
		r.Reason = p.judge(r.Field, &old)
		return true
	}
	return false
}

// judge returns the reason for which a value of the field is not converted, or "".
func (p *Pair) judge(field []byte, v *located) string {
	switch {
	case v.unfit != "":
		return v.unfit
	case p.From.Form == kinds.Binary:
		return p.Judge.Value(field, v.octets)
	}
	return p.Judge.Formed(field, kinds.Spelled{UUID: v.octets, Certain: v.certain})
}

// each calls visit, in the order of the document, for each value of doc that is converted or left.
func (c Conversion) each(doc []byte, r *Ruling, visit func(*Ruling) error) error {
	return c.Walk(doc, func(path *walk.Path, l walk.Leaf) error {
		if !c.Rule(r, path, l) {
			return nil
		}
		return visit(r)
	})
}

// Old returns the value.
func (r *Ruling) Old() Value {
	if r.pair.From.Form == kinds.Binary {
		return Value{Subtype: r.pair.From.Subtype, Octets: r.Octets}
	}
	return ValueOf(r.leaf.Type, r.leaf.Value)
}

// change returns the change of the value, also if it is left.
func (r *Ruling) change() Change {
	return Change{Path: r.path.Dotted(), Old: r.Old(), New: r.fresh}
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

// located is a value that a pair applies to.
type located struct {
	octets [16]byte // in the order of From
	// certain and null are as in kinds.Spelled. If unfit is not empty, it says why the value is not a
	// UUID; the conversion never converts it.
	certain, null bool
	unfit         string
}

// read reads a value that From may have.
func (p *Pair) read(l walk.Leaf) located {
	if p.From.Form == kinds.Binary {
		_, data, _, _ := l.Binary()
		return located{octets: [16]byte(data)}
	}
	s, reason, _ := p.From.Form.Parse(l)
	return located{octets: s.UUID, certain: s.Certain, null: s.Null, unfit: reason}
}

// Makes reports whether the conversion would make the new value of the change of the old one, whatever a judge
// says. The change is of a list or a log, and has the path of the value.
func (c Conversion) Makes(ch Change) bool {
	old := leafOf(ch.Old)
	for i := range c {
		if p := &c[i]; p.From.Has(old) && p.has(ch.Path) && p.fresh(p.read(old)) == ch.New {
			return true
		}
	}
	return false
}

// Fresh returns what the conversion would make of a value, whatever a judge says. ok is false if no pair applies to it.
func (c Conversion) Fresh(old Value) (fresh Value, ok bool) {
	l := leafOf(old)
	for i := range c {
		if p := &c[i]; p.From.Has(l) {
			of := p.read(l)
			return p.fresh(of), of.unfit == ""
		}
	}
	return fresh, false
}

// IsAbout reports whether one of the pairs applies to the value at a path with array positions, whatever a judge says.
func (c Conversion) IsAbout(path string, v Value) bool {
	l := leafOf(v)
	return slices.ContainsFunc(c, func(p Pair) bool { return p.From.Has(l) && p.has(path) })
}

// has reports whether the pair applies to the field at a path with array positions.
func (p *Pair) has(path string) bool {
	for _, f := range p.Fields {
		if f.MatchDotted(path) {
			return true
		}
	}
	return len(p.Fields) == 0
}

// fresh returns the converted value.
func (p *Pair) fresh(v located) Value {
	if v.null {
		return Null
	}
	return Value{Subtype: standard.Subtype, Octets: p.From.Order.Permute(v.octets)}
}

// UUID returns the UUID of a value that the conversion may change, in the order of its kind. ok is false if it
// changes no such value, or if the value is no UUID.
func (c Conversion) UUID(v Value) (u [16]byte, ok bool) {
	l := leafOf(v)
	for i := range c {
		if p := &c[i]; p.From.Has(l) {
			of := p.read(l)
			return of.octets, of.unfit == ""
		}
	}
	return u, false
}

// Misread reports whether a value is what another order of bytes makes of the old value of a change.
func (ch Change) Misread(now Value) bool {
	if ch.Old.Other != "" || now.Other != "" || now.Subtype != ch.New.Subtype || now == ch.New {
		return false
	}
	return slices.ContainsFunc(kinds.All(), func(k kinds.Kind) bool {
		return k.IsBinary() && k.Subtype == ch.Old.Subtype && k.Order.Permute(ch.Old.Octets) == now.Octets
	})
}
