package duplicates

import (
	"crypto/sha256"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// index is a unique index.
type index struct {
	name, field string     // field is that of an index of one field
	paths       [][]string // of its fields
	sparse      bool
	number      uint64 // of those of the collection
}

// parse returns a unique index, or nil if it is not unique. reason says why its keys are not counted; it is empty if
// they are.
func parse(raw bson.Raw) (i *index, reason string) {
	if !truth(raw.Lookup("unique")) {
		return nil, ""
	}
	i = &index{sparse: truth(raw.Lookup("sparse"))}
	i.name, _ = raw.Lookup("name").StringValueOK()
	key, _ := raw.Lookup("key").DocumentOK()
	fields, _ := key.Elements()
	special, positions := false, false
	for _, f := range fields {
		i.field = f.Key()
		path := strings.Split(i.field, ".")
		i.paths = append(i.paths, path)
		special = special || f.Value().Type == bson.TypeString || slices.Contains(path, "$**")
		positions = positions || slices.ContainsFunc(path, func(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" })
	}
	_, err := raw.LookupErr("partialFilterExpression")
	locale, _ := raw.Lookup("collation", "locale").StringValueOK()
	switch {
	case len(fields) != 1:
		return i, "it is compound"
	case err == nil:
		return i, "it is partial"
	case locale != "" && locale != "simple":
		return i, "it has a collation"
	case special:
		return i, "its type is a special one"
	case positions:
		return i, "it names a position of an array"
	}
	return i, ""
}

// truth reads a value as servers read an option.
func truth(v bson.RawValue) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	n, ok := v.AsFloat64OK()
	return ok && n != 0
}

// changes reports whether one of the conversions changes values that have keys in the index. In place, values in _id are not
// changed.
func (c Collection) changes(i *index) bool {
	return slices.ContainsFunc(i.paths, func(path []string) bool {
		return slices.ContainsFunc(c.Parts, func(p Part) bool {
			return slices.ContainsFunc(p.Conversion, func(pair rule.Pair) bool {
				return slices.ContainsFunc(namesOf(pair), func(field []string) bool { return related(field, path) && (c.Copied || path[0] != "_id") })
			})
		})
	})
}

// namesOf returns the names of the fields of a pair.
func namesOf(p rule.Pair) (fields [][]string) {
	for _, f := range p.Fields {
		fields = append(fields, strings.Split(f.String(), "."))
	}
	if fields == nil {
		fields = [][]string{{}} // everything
	}
	return fields
}

// related reports whether one of two fields is in the other one, or is the other one. A name may be *, which is any.
func related(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != "*" && b[i] != "*" {
			return false
		}
	}
	return true
}

// mayMerge reports whether different keys of the index may become the same one. They do not if all values that are
// converted at a path are stored in one way, and no value there is stored as converted ones are: a conversion then keeps
// different values different.
func (c Collection) mayMerge(i *index) bool {
	if c.Scan == nil || c.Scan.Overflow {
		return true
	}
	for _, p := range c.Parts {
		several := func(pair rule.Pair) bool { // it has several spellings of one UUID
			return !pair.From.IsBinary() && pair.From.Form != kinds.Malformed && slices.ContainsFunc(namesOf(pair), func(field []string) bool { return related(field, i.paths[0]) })
		}
		if len(p.Query) > 0 || slices.ContainsFunc(p.Conversion, several) { // of documents that no part selects, nothing is known
			return true
		}
	}
	ways := make(map[string]map[kinds.Stored]bool) // in which values at a path are stored: those that are converted, and those like converted ones
	for _, f := range c.Scan.Fields {
		path := strings.ReplaceAll(f.Path, "[]", "")
		if !related(strings.Split(path, "."), i.paths[0]) {
			continue
		}
		if ways[path] == nil {
			ways[path] = make(map[kinds.Stored]bool)
		}
		for _, stored := range append(c.converts(path), kinds.Subtype4) {
			if f.Counts.Of(stored) > 0 {
				ways[path][stored] = true
			}
		}
		if len(ways[path]) > 1 {
			return true
		}
	}
	return false
}

// converts returns how the values of a field are stored that are converted.
func (c Collection) converts(field string) (stored []kinds.Stored) {
	for _, p := range c.Parts {
		for _, pair := range p.Conversion {
			named := len(pair.Fields) == 0 || slices.ContainsFunc(pair.Fields, func(f walk.Pattern) bool { return f.MatchField(field) })
			if named && pair.From.Form != kinds.Malformed {
				stored = append(stored, pair.From.Stored())
			}
		}
	}
	return stored
}

// keys calls f for each key that the index has for the document, which MongoDB makes in this way: each element of an array has
// one, an empty array has undefined, and a field that is missing has null, or none if the index is sparse.
func (i *index) keys(doc bson.Raw, f func(bson.RawValue)) {
	i.under(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, i.paths[0], f)
}

// under calls f for each key that a value has, of which the fields with the names in path are the rest of the path.
func (i *index) under(v bson.RawValue, path []string, f func(bson.RawValue)) {
	missing := func() {
		if !i.sparse {
			f(bson.RawValue{Type: bson.TypeNull})
		}
	}
	array, isArray := v.ArrayOK()
	elements, _ := array.Values()
	switch {
	case v.Type == 0:
		missing()
	case len(path) == 0 && !isArray:
		f(v)
	case len(path) == 0 && len(elements) == 0:
		f(bson.RawValue{Type: bson.TypeUndefined})
	case len(path) == 0:
		for _, e := range elements {
			f(e)
		}
	case v.Type == bson.TypeEmbeddedDocument:
		i.under(bson.Raw(v.Value).Lookup(path[0]), path[1:], f)
	case len(elements) > 0:
		for _, e := range elements {
			if e.Type != bson.TypeEmbeddedDocument { // nor does an array in an array have fields
				missing()
				continue
			}
			i.under(e, path, f)
		}
	default:
		missing()
	}
}

// hash returns the first half of the SHA-256 of b.
func hash(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:])
}
