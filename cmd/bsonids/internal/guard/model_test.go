package guard

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// This file has a model of the part of MongoDB's query language that a guard uses, after the pages
// on the comparison order of BSON types, on querying arrays, and on $elemMatch, $type and $not of
// its manual. TestModel holds it to what MongoDB's own tests expect.

// compareBinary compares two encoded binary values: by length, then by subtype, then byte by byte.
func compareBinary(a, b []byte) int {
	return cmp.Or(cmp.Compare(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)), cmp.Compare(a[4], b[4]), bytes.Compare(a[5:], b[5:]))
}

// compare compares two values of a type. ok is false if a range of the one does not apply to the
// other, because their types differ.
func compare(a, b bson.RawValue) (n int, ok bool) {
	switch {
	case a.Type != b.Type:
		return 0, false
	case a.Type == bson.TypeBinary:
		return compareBinary(a.Value, b.Value), true
	case a.Type == bson.TypeInt32:
		return cmp.Compare(a.Int32(), b.Int32()), true
	}
	return 0, false
}

// matches reports whether the document matches the query.
func matches(query bson.Raw, doc bson.Raw) bool {
	every, err := query.Elements()
	if err != nil {
		panic(err)
	}
	return !slices.ContainsFunc(every, func(e bson.RawElement) bool { return !matchesOne(e, doc) })
}

func matchesOne(e bson.RawElement, doc bson.Raw) bool {
	any := func() bool {
		return slices.ContainsFunc(elements(e.Value()), func(q bson.RawValue) bool { return matches(q.Value, doc) })
	}
	switch e.Key() {
	case "$or":
		return any()
	case "$nor":
		return !any()
	case "$and":
		return !slices.ContainsFunc(elements(e.Value()), func(q bson.RawValue) bool { return !matches(q.Value, doc) })
	}
	return matchesPath(strings.Split(e.Key(), "."), e.Value().Document(), doc)
}

// matchesPath applies each operator to the path on its own: two operators may be met by two
// different elements of an array.
func matchesPath(names []string, operators bson.Raw, doc bson.Raw) bool {
	ops, err := operators.Elements()
	if err != nil {
		panic(err)
	}
	for _, op := range ops {
		reached := reach(doc, names)
		ok := false
		switch op.Key() {
		case "$not":
			ok = !matchesPath(names, op.Value().Document(), doc)
		case "$elemMatch":
			ok = slices.ContainsFunc(reached, func(v bson.RawValue) bool { return applies(op, v) })
		default:
			for _, v := range reached {
				ok = ok || applies(op, v)
				if v.Type == bson.TypeArray {
					ok = ok || slices.ContainsFunc(elements(v), func(v bson.RawValue) bool { return applies(op, v) })
				}
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// applies applies an operator to one value, without looking into arrays unless it is $elemMatch.
func applies(op bson.RawElement, v bson.RawValue) bool {
	switch op.Key() {
	case "$gte", "$gt", "$lte", "$lt":
		n, ok := compare(v, op.Value())
		return ok && (n == 0 && strings.HasSuffix(op.Key(), "e") || n > 0 && op.Key()[1] == 'g' || n < 0 && op.Key()[1] == 'l')
	case "$type":
		return v.Type == map[string]bson.Type{"array": bson.TypeArray, "int": bson.TypeInt32, "string": bson.TypeString}[op.Value().StringValue()]
	case "$in":
		return slices.ContainsFunc(elements(op.Value()), func(e bson.RawValue) bool {
			pattern, _ := e.Regex()
			switch v.Type {
			case bson.TypeString:
				// PCRE2 (pcre2pattern, "circumflex and dollar"): a dollar sign matches at the end, and before a
				// newline at the end. Go has no assertion that no character follows, and says that the text ends.
				pattern = strings.NewReplacer("$", `\n?\z`, `(?![\s\S])`, `\z`).Replace(pattern)
				return regexp.MustCompile(pattern).MatchString(v.StringValue())
			case bson.TypeRegex: // equal, as a value
				return v.Equal(e)
			}
			return false
		})
	case "$elemMatch":
		if v.Type != bson.TypeArray {
			return false
		}
		ops, err := op.Value().Document().Elements()
		if err != nil {
			panic(err)
		}
		if first := ops[0].Key(); first[0] != '$' || first == "$and" || first == "$or" || first == "$nor" {
			return slices.ContainsFunc(elements(v), func(v bson.RawValue) bool {
				return (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) && matches(op.Value().Document(), v.Value)
			})
		}
		return slices.ContainsFunc(elements(v), func(v bson.RawValue) bool {
			return !slices.ContainsFunc(ops, func(op bson.RawElement) bool { return !applies(op, v) })
		})
	}
	panic(op.Key())
}

// reach returns the values at a path. It enters the documents in an array, and takes a number for a
// position in an array, too.
func reach(doc bson.Raw, names []string) []bson.RawValue {
	v, err := doc.LookupErr(names[0])
	switch {
	case err != nil:
		return nil
	case len(names) == 1:
		return []bson.RawValue{v}
	case v.Type == bson.TypeEmbeddedDocument:
		return reach(v.Value, names[1:])
	case v.Type != bson.TypeArray:
		return nil
	}
	var all []bson.RawValue
	for _, e := range elements(v) {
		if e.Type == bson.TypeEmbeddedDocument {
			all = append(all, reach(e.Value, names[1:])...)
		}
	}
	if _, err := strconv.Atoi(names[1]); err == nil {
		all = append(all, reach(v.Value, names[1:])...)
	}
	return all
}

func elements(v bson.RawValue) []bson.RawValue {
	values, err := bson.Raw(v.Value).Values()
	if err != nil {
		panic(err)
	}
	return values
}

func parse(t testing.TB, text string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return document(d)
}

// The queries, documents and results are those of MongoDB's tests jstests/core/query/elemmatch/
// elemmatch_value.js and jstests/core/query/type/type_array.js.
func TestModel(t *testing.T) {
	nested := []string{`{"a":5}`, `{"a":[5]}`, `{"a":[3,7]}`, `{"a":[[5]]}`, `{"a":[[3,7]]}`, `{"a":[[[5]]]}`, `{"a":[[[3,7]]]}`, `{"a":{"b":5}}`, `{"a":{"b":[5]}}`,
		`{"a":{"b":[3,7]}}`, `{"a":[{"b":5}]}`, `{"a":[{"b":3},{"b":7}]}`, `{"a":[{"b":[5]}]}`, `{"a":[{"b":[3,7]}]}`, `{"a":[[{"b":5}]]}`, `{"a":[[{"b":3},{"b":7}]]}`,
		`{"a":[[{"b":[5]}]]}`, `{"a":[[{"b":[3,7]}]]}`}
	arrays := []string{`{"a":[1,2,3]}`, `{"a":[1,"foo",3]}`, `{"a":[]}`, `{"a":[[]]}`, `{"a":[[[]]]}`, `{"a":1}`, `{"a":"foo"}`}
	for _, tt := range []struct {
		query string
		docs  []string
		want  []int
	}{
		{`{"a":{"$elemMatch":{"$lt":6,"$gt":4}}}`, nested, []int{1}},
		{`{"a.b":{"$elemMatch":{"$lt":6,"$gt":4}}}`, nested, []int{8, 12}},
		{`{"a":{"$elemMatch":{"$elemMatch":{"$lt":6,"$gt":4}}}}`, nested, []int{3}},
		{`{"a":{"$elemMatch":{"$type":"int"}}}`, nested, []int{1, 2}},
		{`{"a":{"$elemMatch":{"$type":"array"}}}`, nested, []int{3, 4, 5, 6, 14, 15, 16, 17}},
		{`{"a":{"$elemMatch":{"b":{"$lt":6,"$gt":4}}}}`, nested, []int{10, 12, 13}},
		{`{"a":{"$elemMatch":{"b":{"$elemMatch":{"$lt":6,"$gt":4}}}}}`, nested, []int{12}},
		{`{"a":{"$elemMatch":{"$elemMatch":{"b":{"$lt":6,"$gt":4}}}}}`, nested, []int{14, 16, 17}},
		{`{"a":{"$type":"int"}}`, arrays, []int{0, 1, 5}},
		{`{"a":{"$type":"array"}}`, arrays, []int{0, 1, 2, 3, 4}},
		{`{"a.0":{"$type":"array"}}`, arrays, []int{3, 4}},
		{`{"a.0.0":{"$type":"array"}}`, arrays, []int{4}},
	} {
		var got []int
		for i, doc := range tt.docs {
			if matches(parse(t, tt.query), parse(t, doc)) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.query, got, tt.want)
		}
	}
}

// The manual: "MongoDB sorts BinData in the following order: first, the length or size of the data;
// then, by the BSON one-byte subtype; finally, by the data, performing a byte-by-byte comparison."
func TestBinaryOrder(t *testing.T) {
	at := func(subtype byte, data ...byte) bson.RawValue {
		typ, value, err := bson.MarshalValue(bson.Binary{Subtype: subtype, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return bson.RawValue{Type: typ, Value: value}
	}
	order := []bson.RawValue{at(0x80, 9), at(0, 1, 0xff), at(3, 0, 0), at(3, 0, 1), at(3, 0xff, 0xff), at(4, 0, 0), at(0, 0, 0, 0)}
	for i, a := range order {
		for j, b := range order {
			if n, ok := compare(a, b); !ok || n != cmp.Compare(i, j) {
				t.Errorf("%v and %v: %d", a, b, n)
			}
		}
	}
}
