// Package rule says of each value of a document whether a conversion changes it, to what, or why it is
// left. It knows no server and no files: a conversion in place, of a copy or of a dump, its undo, and its
// proof all ask this package.
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

// Conversion describes which values of a collection are converted to the standard representation: by the
// first of its pairs that applies to a value. It is safe for concurrent use.
type Conversion []Pair

// Pair is a kind of values that are converted.
type Pair struct {
	From   kinds.Kind
	Fields []walk.Pattern // all fields if empty
	Judge  *decide.Judge  // decides for each value; nil converts all values
}

// standard is what all values become.
var standard = func() kinds.Kind {
	k, err := kinds.Parse(kinds.Standard)
	if err != nil {
		panic(err)
	}
	return k
}()

// ErrStandard is the error of a conversion of values that are standard already.
var ErrStandard = errors.New("the values are standard already")

// NewConversion returns the conversion of the values in fields, or of all values if fields is
// empty. The error is [ErrStandard].
func NewConversion(from kinds.Kind, fields []walk.Pattern) (Conversion, error) {
	if from == standard {
		return nil, ErrStandard
	}
	return Conversion{{From: from, Fields: fields}}, nil
}

// Compile returns the conversion that has the pairs. The error names what is wrong with one of them.
func Compile(pairs []kinds.Pair) (c Conversion, err error) {
	for _, p := range pairs {
		one, err := compile(p)
		if err != nil {
			return nil, err
		}
		c = append(c, one...)
	}
	return c, nil
}

func compile(p kinds.Pair) (Conversion, error) {
	from, err := kinds.Parse(p.From)
	if err != nil {
		return nil, err
	}
	var fields []walk.Pattern
	for _, field := range p.Fields {
		f, err := walk.ParsePattern(field)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	if from.NeedsField() && len(fields) == 0 {
		return nil, fmt.Errorf("from %s, the fields must be named, because a value that looks like a UUID may be something else in another field", from.Name)
	}
	c, err := NewConversion(from, fields)
	if err != nil {
		err = fmt.Errorf("%s: %w", p, err)
	}
	return c, err
}

// Pairs names the pairs.
func (c Conversion) Pairs() (pairs []kinds.Pair) {
	for _, p := range c {
		named := kinds.Pair{From: p.From.Name}
		for _, f := range p.Fields {
			named.Fields = append(named.Fields, f.String())
		}
		pairs = append(pairs, named)
	}
	return pairs
}

// Decide sets the judges by the decisions about the pairs.
func (c Conversion) Decide(decisions []decide.Decision) error {
	if len(decisions) != len(c) {
		return errors.New("it has no decision about the values")
	}
	for i := range c {
		c[i].Judge = decisions[i].Judge(c[i].From.Order)
	}
	return nil
}

// selects reports whether the pair applies to the field at the path.
func (p *Pair) selects(path *walk.Path) bool {
	return len(p.Fields) == 0 || slices.ContainsFunc(p.Fields, func(f walk.Pattern) bool { return f.Match(path) })
}

// structs reports whether the path is of a field in which documents of Go structs are converted.
func (c Conversion) structs(path *walk.Path) bool {
	return slices.ContainsFunc(c, func(p Pair) bool { return p.From.Form == kinds.Struct && p.selects(path) })
}

// ReachesID reports whether the conversion may change an _id.
func (c Conversion) ReachesID() bool {
	return slices.ContainsFunc(c, func(p Pair) bool {
		return len(p.Fields) == 0 || slices.ContainsFunc(p.Fields, func(f walk.Pattern) bool { return f.Top() == "_id" || f.Top() == "*" })
	})
}

// Projection returns a projection with the top-level fields of the conversion, or nil if whole
// documents must be read: a projection cannot name a field that has a dot in its name. A deeper
// projection would change array positions.
func (c Conversion) Projection() bson.D {
	var tops []string
	for _, p := range c {
		if len(p.Fields) == 0 {
			return nil
		}
		for _, f := range p.Fields {
			if f.Top() == "*" || f.Deep() || strings.HasPrefix(f.Top(), "$") {
				return nil
			}
			tops = append(tops, f.Top())
		}
	}
	slices.Sort(tops)
	var d bson.D
	for _, top := range slices.Compact(tops) {
		d = append(d, bson.E{Key: top, Value: 1})
	}
	return d
}
