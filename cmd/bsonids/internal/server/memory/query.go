package memory

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// find returns the documents that a query selects.
func (s *Server) find(c *collection, command bson.Raw) (found []bson.Raw) {
	docs := slices.Clone(c.docs)
	if sort, ok := command.Lookup("sort").DocumentOK(); ok {
		slices.SortStableFunc(docs, func(a, b bson.Raw) int {
			for _, e := range elements(sort) {
				if n := compare(a.Lookup(e.Key()), b.Lookup(e.Key())); n != 0 {
					return n * int(e.Value().AsInt64())
				}
			}
			return 0
		})
	}
	limit, _ := command.Lookup("limit").AsInt64OK()
	for _, doc := range docs {
		if (limit == 0 || int64(len(found)) < max(limit, -limit)) && s.matches(doc, command.Lookup("filter")) {
			found = append(found, projected(doc, command.Lookup("projection")))
		}
	}
	return found
}

// projected returns the fields of a document that a projection selects, which may be absent: those with the paths and _id, or all
// but those with the paths.
func projected(doc bson.Raw, projection bson.RawValue) bson.Raw {
	if projection.Type != bson.TypeEmbeddedDocument || len(elements(projection.Document())) == 0 {
		return doc
	}
	only := false
	var paths [][]string
	for _, e := range elements(projection.Document()) {
		n, number := e.Value().AsInt64OK()
		only = only || e.Value().Type == bson.TypeBoolean && e.Value().Boolean() || number && n != 0
		paths = append(paths, strings.Split(e.Key(), "."))
	}
	if only {
		paths = append(paths, []string{"_id"})
	}
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		return doc // which is not valid
	}
	return marshal(selected(d, paths, only))
}

// selected returns a value with the paths only, or without them.
func selected(in any, paths [][]string, only bool) any {
	switch in := in.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range in {
			var below [][]string
			whole := false
			for _, p := range paths {
				if p[0] == e.Key {
					if whole = whole || len(p) == 1; len(p) > 1 {
						below = append(below, p[1:])
					}
				}
			}
			_, isDocument := e.Value.(bson.D)
			_, isArray := e.Value.(bson.A)
			switch nested := isDocument || isArray; {
			case whole && only, !whole && len(below) == 0 && !only, !nested && !whole && !only:
				out = append(out, e)
			case !whole && len(below) > 0 && nested:
				out = append(out, bson.E{Key: e.Key, Value: selected(e.Value, below, only)})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, v := range in {
			switch v.(type) {
			case bson.D, bson.A:
				out = append(out, selected(v, paths, only))
			default:
				if !only {
					out = append(out, v)
				}
			}
		}
		return out
	}
	return in
}

// compare orders values by type, and values of one type by their bytes, or numbers by size.
func compare(a, b bson.RawValue) int {
	if n := cmp.Compare(a.Type, b.Type); n != 0 {
		return n
	}
	if at, ok := a.DateTimeOK(); ok {
		return cmp.Compare(at, b.DateTime())
	}
	if n, ok := a.AsInt64OK(); ok {
		return cmp.Compare(n, b.AsInt64())
	}
	return bytes.Compare(a.Value, b.Value)
}

// matches reports whether a document matches a filter, which may be absent.
func (s *Server) matches(doc bson.Raw, filter bson.RawValue) bool {
	if filter.Type != bson.TypeEmbeddedDocument {
		return true
	}
	for _, e := range elements(filter.Document()) {
		some := func(f bson.RawValue) bool { return s.matches(doc, f) }
		switch key := e.Key(); {
		case key == "$and":
			if slices.ContainsFunc(values(e.Value()), func(f bson.RawValue) bool { return !some(f) }) {
				return false
			}
		case key == "$or":
			if !slices.ContainsFunc(values(e.Value()), some) {
				return false
			}
		case key == "$nor":
			if slices.ContainsFunc(values(e.Value()), some) {
				return false
			}
		case strings.HasPrefix(key, "$"):
			s.tb.Errorf("the server does not know the filter %s", filter)
			return false
		case !s.holds(doc.Lookup(strings.Split(key, ".")...), e.Value()):
			return false
		}
	}
	return true
}

// holds reports whether a value, which is zero if the document has none, meets a condition.
func (s *Server) holds(v, cond bson.RawValue) bool {
	ops, ok := cond.DocumentOK()
	if !ok || len(elements(ops)) == 0 || !strings.HasPrefix(first(ops).Key(), "$") {
		return equal(v, cond)
	}
	for _, op := range elements(ops) {
		is := func(w bson.RawValue) bool { return equal(v, w) }
		var met bool
		switch want := op.Value(); op.Key() {
		case "$eq":
			met = equal(v, want)
		case "$ne":
			met = !equal(v, want)
		case "$in":
			met = slices.ContainsFunc(values(want), is)
		case "$nin":
			met = !slices.ContainsFunc(values(want), is)
		case "$exists":
			met = (v.Type != 0) == want.Boolean()
		case "$gt":
			met = v.Type == want.Type && compare(v, want) > 0
		case "$lte":
			met = v.Type == want.Type && compare(v, want) <= 0
		case "$type":
			names := []bson.RawValue{want}
			if want.Type == bson.TypeArray {
				names = values(want)
			}
			met = slices.ContainsFunc(names, func(name bson.RawValue) bool { return v.Type != 0 && v.Type == types[name.StringValue()] })
		case "$not":
			met = !s.holds(v, want)
		default:
			s.tb.Errorf("the server does not know the condition %s", cond)
		}
		if !met {
			return false
		}
	}
	return true
}

// types has the names of types for $type, as in the manual of MongoDB.
var types = map[string]bson.Type{"double": 1, "string": 2, "object": 3, "array": 4, "binData": 5, "undefined": 6, "objectId": 7, "bool": 8, "date": 9, "null": 10,
	"regex": 11, "dbPointer": 12, "javascript": 13, "symbol": 14, "javascriptWithScope": 15, "int": 16, "timestamp": 17, "long": 18, "decimal": 19, "maxKey": 127}

// equal reports whether a value is equal to another, which for null includes no value, or is an array that has it.
func equal(v, want bson.RawValue) bool {
	if array, ok := v.ArrayOK(); ok && want.Type != bson.TypeArray {
		all, err := array.Values()
		return err == nil && slices.ContainsFunc(all, want.Equal)
	}
	return v.Equal(want) || v.Type == 0 && want.Type == bson.TypeNull
}

func elements(doc bson.Raw) []bson.RawElement {
	all, err := doc.Elements()
	if err != nil {
		panic(err)
	}
	return all
}

func first(doc bson.Raw) bson.RawElement { return elements(doc)[0] }

func values(array bson.RawValue) []bson.RawValue {
	all, err := array.Array().Values()
	if err != nil {
		panic(err)
	}
	return all
}

func marshal(doc any) bson.Raw {
	b, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}
