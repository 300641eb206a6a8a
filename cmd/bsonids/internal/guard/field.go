package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// maxNames is the maximum number of names in a path. The condition for a path has a case for each
// way in which documents and arrays of documents can be nested, so its size doubles with each name.
const maxNames = 8

// ParseField returns the path of a field without the brackets of arrays: items.sku of items[].sku. A
// validator can test the field if each name but the last leads to a document or to an array of documents, and
// the last one to a value or to an array of values. The error says why it cannot.
func ParseField(path string) (string, error) {
	if strings.Contains(path, "[][]") {
		return "", fmt.Errorf("%s: an array in an array; a validator tests only the elements of the outer one", path)
	}
	p, err := walk.ParsePattern(path)
	if err != nil {
		return "", err
	}
	names := strings.Split(p.String(), ".")
	if names[0] == "_id" {
		return "", fmt.Errorf("%s: _id cannot be converted in place, only into a new collection", path)
	}
	if len(names) > maxNames {
		return "", fmt.Errorf("%s: more than %d names; the condition would be too large", path, maxNames)
	}
	for _, name := range names {
		switch {
		case name == "*":
			return "", fmt.Errorf("%s: map keys; a validator has no condition for any name", path)
		case name[0] == '$':
			return "", fmt.Errorf("%s: the name %s begins with a dollar sign, and a validator would take it for an operator", path, name)
		case strings.Trim(name, "0123456789") == "":
			return "", fmt.Errorf("%s: the name %s is a number, and a validator would also take it for a position in an array", path, name)
		}
	}
	return p.String(), nil
}

// Sort sorts values, so that validators against the same values are equal.
func Sort(values []record.Refused) {
	slices.SortFunc(values, func(a, b record.Refused) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Subtype, b.Subtype))
	})
}
