package duplicates

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// raw returns a document or a value of it as BSON.
func raw(tb testing.TB, doc any) bson.Raw {
	tb.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func fromJSON(tb testing.TB, text string) (doc bson.Raw) {
	tb.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), true, &doc); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return doc
}

// The keys of documents are those of MongoDB: where its own tests of its key generator (BtreeKeyGeneratorTest) have a case, the
// keys are theirs.
func TestKeys(t *testing.T) {
	for _, tt := range []struct{ field, doc, keys, sparse string }{
		{"a", `{"a":1}`, `1`, `1`},
		{"a", `{"b":1}`, `null`, ``},
		{"a", `{"a":null}`, `null`, `null`},
		{"a", `{"a":[]}`, `undefined`, `undefined`},
		{"a", `{"a":[1,2,1]}`, `1 2 1`, `1 2 1`},
		{"a", `{"a":[1,[2,3]]}`, `1 [2,3]`, `1 [2,3]`}, // the array as a whole
		{"a", `{"a":{"b":1}}`, `{"b":1}`, `{"b":1}`},
		{"a.b", `{"a":{"b":1}}`, `1`, `1`},
		{"a.b", `{"a":{"b":[1,2]}}`, `1 2`, `1 2`},
		{"a.b", `{"a":[{"b":1},{"b":2}]}`, `1 2`, `1 2`},
		{"a.b", `{"a":[{"b":1},{"c":2}]}`, `1 null`, `1`},
		{"a.b", `{"a":[{"b":[1,2]},{"b":3}]}`, `1 2 3`, `1 2 3`},
		{"a.b", `{"a":[1,{"b":2}]}`, `null 2`, `2`},
		{"a.b", `{"a":[[{"b":1}]]}`, `null`, ``}, // an array in an array is not searched
		{"a.b", `{"a":[]}`, `null`, ``},
		{"a.b", `{"a":5}`, `null`, ``},
		{"a.b", `{}`, `null`, ``},
		{"a.b", `{"a.b":1}`, `null`, ``}, // a name with a dot is no path
		{"a.b", `{"a":[1,2]}`, `null null`, ``},
		{"a.b", `{"a":[{"b":[2]}]}`, `2`, `2`},
		{"a.b.c", `{"a":[1,2,{"b":{"c":[3,4]}}]}`, `null null 3 4`, `3 4`},
		{"a.b.c", `{"a":[{"b":[{"c":1},{"c":[2]}]},{"b":{"c":3}}]}`, `1 2 3`, `1 2 3`},
	} {
		for sparse, want := range map[bool]string{false: tt.keys, true: tt.sparse} {
			i := &index{paths: [][]string{strings.Split(tt.field, ".")}, sparse: sparse}
			var got []string
			i.keys(fromJSON(t, tt.doc), func(v bson.RawValue) {
				if v.Type == bson.TypeUndefined {
					got = append(got, "undefined")
					return
				}
				b, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(b), `{"v":`), "}"))
			})
			if strings.Join(got, " ") != want {
				t.Errorf("%s of %s, sparse %v: %q, want %q", tt.field, tt.doc, sparse, got, want)
			}
		}
	}
}

// Indexes that are not counted are named with the reason, and those that are not unique are not named.
func TestParse(t *testing.T) {
	for spec, want := range map[string]string{
		`{"name":"i","key":{"a":1}}`:                                                                      "no",
		`{"name":"i","key":{"a":1},"unique":false}`:                                                       "no",
		`{"name":"i","key":{"a":1},"unique":true}`:                                                        "",
		`{"name":"i","key":{"a.b":-1},"unique":1}`:                                                        "",
		`{"name":"i","key":{"a":1},"unique":true,"sparse":true}`:                                          "",
		`{"name":"i","key":{"a":1},"unique":true,"collation":{"locale":"simple"}}`:                        "",
		`{"name":"i","key":{"a":1,"b":1},"unique":true}`:                                                  "it is compound",
		`{"name":"i","key":{"a":1},"unique":true,"partialFilterExpression":{"a":{"$exists":true}}}`:       "it is partial",
		`{"name":"i","key":{"a":1},"unique":true,"collation":{"locale":"en","strength":2}}`:               "it has a collation",
		`{"name":"i","key":{"a":"hashed"},"unique":true}`:                                                 "its type is a special one",
		`{"name":"i","key":{"a.0":1},"unique":true}`:                                                      "it names a position of an array",
		`{"name":"i","key":{"a":1,"b":1},"unique":true,"partialFilterExpression":{"a":1},"sparse":false}`: "it is compound",
	} {
		i, reason := parse(fromJSON(t, spec))
		if i == nil {
			reason = "no"
		} else if i.name != "i" || i.sparse != strings.Contains(spec, `"sparse":true`) {
			t.Errorf("%s: %+v", spec, i)
		}
		if reason != want {
			t.Errorf("%s: %q, want %q", spec, reason, want)
		}
	}
}

// Two fields are related if one of them is in the other one.
func TestRelated(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"a", "a", true}, {"a", "a.b", true}, {"a.b", "a", true}, {"a.b", "a.c", false}, {"a", "ab", false}, {"*.id", "a.id", true}, {"*.id", "a.x", false}, {"a.*", "a", true}} {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			if related(strings.Split(pair[0], "."), strings.Split(pair[1], ".")) != tt.want {
				t.Errorf("%q", pair)
			}
		}
	}
	if !slices.ContainsFunc([][]string{{}}, func(all []string) bool { return related(all, []string{"a"}) }) {
		t.Error("a pair without fields is about all")
	}
}
