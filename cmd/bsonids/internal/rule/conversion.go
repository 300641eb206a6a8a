// Package rule says of each value of a document whether a conversion changes it, to what, or why it is
// left. It knows no server and no files: a conversion in place, of a copy or of a dump, its undo, its
// proof and its guard all ask this package.
package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Conversion describes which values are converted, and to what. It is safe for concurrent use.
type Conversion struct {
	From, To kinds.Kind
	Fields   []walk.Pattern // all fields if empty
	Judge    *decide.Judge  // decides for each value; nil converts all values
}

// The errors of NewConversion.
var (
	ErrSameKind  = errors.New("the two representations are the same")
	ErrToGeneric = errors.New("cannot convert to subtype 0, because it does not mark a value as a UUID")
	ErrToStruct  = errors.New("cannot convert to documents of Go structs; bsonids undo restores them")
)

// NewConversion returns the conversion of the values in fields, or of all values if fields is
// empty. The error is [ErrSameKind], [ErrToGeneric] or [ErrToStruct].
func NewConversion(from, to kinds.Kind, fields []walk.Pattern) (Conversion, error) {
	switch {
	case !to.Target && to.IsBinary():
		return Conversion{}, ErrToGeneric
	case !to.Target:
		return Conversion{}, ErrToStruct
	case from.Name == to.Name:
		return Conversion{}, ErrSameKind
	}
	return Conversion{From: from, To: to, Fields: fields}, nil
}

// SameSubtype reports whether the old and the new values have the same subtype. If so, nothing in a
// document distinguishes a converted value from an unconverted one.
func (c Conversion) SameSubtype() bool { return c.From.Subtype == c.To.Subtype }

// Alike says of a conversion within one subtype why it asks for more than others.
func (c Conversion) Alike() string {
	return fmt.Sprintf("from %s to %s, the old and the new values have subtype %d", c.From.Name, c.To.Name, c.To.Subtype)
}

// Selects reports whether the conversion applies to the field at the path.
func (c Conversion) Selects(p *walk.Path) bool {
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

// MergesIDs reports whether the conversion may turn different _ids into the same one, so that an old
// _id cannot be derived from a new one.
func (c Conversion) MergesIDs() bool {
	return !c.From.IsBinary() && (len(c.Fields) == 0 || slices.ContainsFunc(c.Fields, func(f walk.Pattern) bool { return f.Top() == "_id" || f.Top() == "*" }))
}

// Projection returns a projection with the top-level fields of the conversion, or nil if whole
// documents must be read: a projection cannot name a field that has a dot in its name. A deeper
// projection would change array positions.
func (c Conversion) Projection() bson.D {
	var tops []string
	for _, f := range c.Fields {
		if f.Top() == "*" || f.Deep() || strings.HasPrefix(f.Top(), "$") {
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
