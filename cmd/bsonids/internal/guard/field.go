package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// maxNames is the maximum number of names in a path. The condition for a path has a case for each
// way in which documents and arrays of documents can be nested, so its size doubles with each name.
const maxNames = 8

// Field is a field that a validator can test: each name but the last leads to a document or to an
// array of documents, and the last one to a value or to an array of values.
type Field struct {
	names   []string
	pattern walk.Pattern
}

// ParseField parses the path of a field, with or without the brackets of arrays: items[].sku or
// items.sku. The error says why a validator cannot test the field.
func ParseField(path string) (Field, error) {
	if strings.Contains(path, "[][]") {
		return Field{}, fmt.Errorf("%s: an array in an array; a validator tests only the elements of the outer one", path)
	}
	p, err := walk.ParsePattern(path)
	if err != nil {
		return Field{}, err
	}
	f := Field{names: strings.Split(p.String(), "."), pattern: p}
	if f.names[0] == "_id" {
		return Field{}, fmt.Errorf("%s: _id cannot be converted in place, only into a new collection", path)
	}
	if len(f.names) > maxNames {
		return Field{}, fmt.Errorf("%s: more than %d names; the condition would be too large", path, maxNames)
	}
	for _, name := range f.names {
		switch {
		case name == "*":
			return Field{}, fmt.Errorf("%s: map keys; a validator has no condition for any name", path)
		case name[0] == '$':
			return Field{}, fmt.Errorf("%s: the name %s begins with a dollar sign, and a validator would take it for an operator", path, name)
		case strings.Trim(name, "0123456789") == "":
			return Field{}, fmt.Errorf("%s: the name %s is a number, and a validator would also take it for a position in an array", path, name)
		}
	}
	return f, nil
}

// Values are the values of a kind in a field.
type Values struct {
	Field Field
	Kind  kinds.Kind
}

// recorded returns the values as the record has them, sorted.
func recorded(values []Values) (all []record.Refused) {
	for _, v := range values {
		all = append(all, record.Refused{Path: v.Field.String(), From: v.Kind.Name, Subtype: v.Kind.Subtype})
	}
	slices.SortFunc(all, func(a, b record.Refused) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.From, b.From))
	})
	return all
}

// String returns the path without the brackets of arrays.
func (f Field) String() string { return strings.Join(f.names, ".") }
