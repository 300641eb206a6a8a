// Package convert changes UUIDs in a collection from one representation to another, so that it can be stopped at any
// moment and never overwrites what another program wrote.
package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

// Kind is how a UUID is stored: a binary subtype and a byte order. It is a plain value, safe to copy.
type Kind struct {
	Name    string
	Subtype byte
	order   uuidrep.Representation
}

// generic is what Go programs write without a codec.
const generic = "generic"

// ParseKind returns the kind that s names: a representation, or generic for subtype 0 in network order.
func ParseKind(s string) (Kind, error) {
	if strings.EqualFold(s, generic) {
		return Kind{Name: generic, Subtype: bson.TypeBinaryGeneric, order: uuidrep.Standard}, nil
	}
	r, err := uuidrep.Parse(s)
	if err != nil || r == uuidrep.Unspecified {
		return Kind{}, fmt.Errorf("%q is not a representation: standard, csharpLegacy, javaLegacy, pythonLegacy, or generic for subtype 0", s)
	}
	subtype, err := r.Subtype()
	return Kind{Name: r.String(), Subtype: subtype, order: r}, err
}

// Conversion is what is to become of which values. It is safe for concurrent use.
type Conversion struct {
	From, To Kind
	Fields   []walk.Pattern // all fields where empty
}

// NewConversion checks that from and to go together.
func NewConversion(from, to string, fields []string) (Conversion, error) {
	var c Conversion
	var err error
	if c.From, err = ParseKind(from); err != nil {
		return c, fmt.Errorf("--from: %w", err)
	}
	if c.To, err = ParseKind(to); err != nil {
		return c, fmt.Errorf("--to: %w", err)
	}
	if c.To.Name == generic {
		return c, fmt.Errorf("--to %s: subtype 0 doesn't say that a value is a UUID; nothing is converted to it", generic)
	}
	if c.From.Name == c.To.Name {
		return c, fmt.Errorf("--from and --to are both %s", c.From.Name)
	}
	for _, f := range fields {
		p, err := walk.ParsePattern(f)
		if err != nil {
			return c, fmt.Errorf("--field: %w", err)
		}
		c.Fields = append(c.Fields, p)
	}
	return c, nil
}

// SameSubtype reports whether a converted value looks like one that is not: both have subtype 3.
func (c Conversion) SameSubtype() bool { return c.From.Subtype == c.To.Subtype }

// octets converts from From to To.
func (c Conversion) octets(old [16]byte) [16]byte {
	return c.To.order.Permute(c.From.order.Permute(old))
}

// wants reports whether the conversion is about the value, and where its subtype stands in the document.
func (c Conversion) wants(p *walk.Path, l walk.Leaf) (octets [16]byte, offset int, ok bool) {
	subtype, data, offset, ok := l.Binary()
	if !ok || subtype != c.From.Subtype || len(data) != 16 || !c.selects(p) {
		return octets, 0, false
	}
	return [16]byte(data), offset, true
}

func (c Conversion) selects(p *walk.Path) bool {
	if len(c.Fields) == 0 {
		return true
	}
	for _, f := range c.Fields {
		if f.Match(p) {
			return true
		}
	}
	return false
}

// Projection returns what to read of each document: the top-level fields that the conversion is about. Deeper
// projections would renumber arrays. It is nil for everything.
func (c Conversion) Projection() bson.D {
	var tops []string
	for _, f := range c.Fields {
		if f.Top() == "*" || strings.HasPrefix(f.Top(), "$") {
			return nil
		}
		tops = append(tops, f.Top())
	}
	slices.Sort(tops)
	var d bson.D
	for _, top := range slices.Compact(tops) {
		d = append(d, bson.E{Key: top, Value: 1})
	}
	return d
}
