package convert

import (
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Value converts a single value of a field if the conversion applies to it. The field has several
// names if it is not known which of them it has, and the value is converted if its judge knows one of
// them. ok is false if the conversion does not apply. Otherwise edit is the change, or left has the
// reason for which the value is not converted.
func (c Conversion) Value(fields []string, l walk.Leaf) (edit walk.Edit, left Left, ok bool) {
	if !c.From.Has(l) {
		return edit, left, false
	}
	fields = slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !c.SelectsField(f) })
	if len(fields) == 0 {
		return edit, left, false
	}
	var r ruling
	switch ok := c.rule(&r, nil, c.known(fields), l); {
	case !ok || r.same:
		return edit, left, false
	case r.reason != "":
		return edit, Left{Old: r.old.octets, Value: r.old.value, Reason: r.reason}, true
	}
	return c.edit(l.Offset, r.fresh, r.value), left, true
}

// Left returns a value as one that is left unchanged. ok is false if it is not a UUID that is stored
// as From says. The paths of the conversion do not matter.
func (c Conversion) Left(path string, l walk.Leaf, reason string) (left Left, ok bool) {
	c.Fields = nil
	v, ok := c.find(nil, l)
	return Left{Path: path, Old: v.octets, Value: v.value, Reason: reason}, ok && v.unfit == ""
}

// LeftWhole returns any value as one that is left unchanged.
func LeftWhole(path string, l walk.Leaf, reason string) Left {
	return Left{Path: path, Value: valueOf(l.Type, l.Value), Reason: reason}
}

// SelectsField is like Selects, for a name as walk.Path.AppendField writes it.
func (c Conversion) SelectsField(field string) bool {
	if len(c.Fields) == 0 {
		return true
	}
	for _, f := range c.Fields {
		if f.MatchField(field) {
			return true
		}
	}
	return false
}

// IsStruct reports whether the conversion applies to documents.
func (c Conversion) IsStruct() bool { return c.From.Form == kinds.Struct }
