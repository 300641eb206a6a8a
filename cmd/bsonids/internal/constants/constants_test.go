package constants

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// uuid is 00112233-4455-6677-8899-aabbccddeeff of a Java program, as extended JSON.
const (
	uuid = `{"$binary":{"base64":"d2ZVRDMiEQD/7t3Mu6qZiA==","subType":"03"}}`
	text = `"00112233-4455-6677-8899-aabbccddeeff"`
)

func parse(t *testing.T, s string) bson.RawValue {
	t.Helper()
	var doc bson.Raw
	s = strings.NewReplacer("UUID", uuid, "TEXT", text).Replace(s)
	if err := bson.UnmarshalExtJSON([]byte(`{"v":`+s+`}`), false, &doc); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return doc.Lookup("v")
}

// The field that a constant is compared with is that of the query, of the schema, or the only one among the arguments of an
// operator. Where a view has made the field, or several fields are there, it cannot be told.
func TestReplace(t *testing.T) {
	on := func(name, on, pipeline string) Definition {
		return Definition{Of: View, Name: name, On: on, Is: parse(t, pipeline)}
	}
	all := Definitions{
		on("recent", "orders", `[{"$sort": {"at": -1}}, {"$limit": 5}]`),
		on("renamed", "orders", `[{"$addFields": {"owner": "$user"}}]`),
		on("grouped", "orders", `[{"$group": {"_id": "$user"}}]`),
		on("loop", "loop", `[]`),
	}
	for _, tt := range []struct {
		of   Definition
		want string // the collection and the path of each constant, ? if it is not known
	}{
		// https://www.mongodb.com/docs/manual/reference/operator/query/
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"user": UUID, "n": 1}`)}, "c.user"},
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"$or": [{"a.b": {"$in": [UUID, null]}}, {"x": {"$not": {"$eq": UUID}}}]}`)}, "c.a.b c.x"},
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"items": {"$elemMatch": {"id": UUID}}, "tags": {"$elemMatch": {"$eq": UUID}}, "all": {"$all": [{"$elemMatch": {"k": UUID}}]}}`)}, "c.items.id c.tags c.all.k"},
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"g": {"$elemMatch": {"$or": [{"a": UUID}]}}, "h.0.i": UUID, "d": {"e": UUID}}`)}, "c.g.a c.h.i c.d.e"},
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"$expr": {"$or": [{"$eq": ["$user", UUID]}, {"$in": ["$$ROOT.b.c", [UUID, UUID]]}, {"$eq": ["$a", {"$ifNull": ["$b", UUID]}]}]}}`)}, "c.user c.b.c c.b.c c.b"},
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"$expr": {"$in": [UUID, ["$a", "$b"]]}}`)}, "?"},
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"$expr": {"$setIsSubset": [["$a"], {"$concatArrays": ["$b", [UUID]]}]}}`)}, "?"},
		// https://www.mongodb.com/docs/manual/reference/operator/query/jsonSchema/
		{Definition{Of: Validator, Name: "c", Is: parse(t, `{"$jsonSchema": {"description": TEXT, "properties": {"user": {"enum": [UUID, TEXT]}, "list": {"items": {"properties": {"id": {"anyOf": [{"enum": [UUID]}]}}}},
			"properties": {"bsonType": "object"}}, "patternProperties": {"^x": {"enum": [UUID]}}, "additionalProperties": {"enum": [UUID]}}}`)}, "c.user c.user c.list.id ? ?"},
		{Definition{Of: Index, Name: "c", Is: parse(t, `{"user": {"$eq": UUID}, "at": {"$gt": 5}, "short": {"$eq": {"$binary":{"base64":"AA==","subType":"03"}}}}`)}, "c.user"},
		// Pipelines.
		{on("v", "orders", `[{"$match": {"user": UUID}}, {"$project": {"user": 1}}, {"$match": {"user": UUID}}, {"$project": {"u": "$user"}}, {"$match": {"u": UUID}}]`), "orders.user orders.user ?"},
		{on("v", "recent", `[{"$match": {"user": UUID}}]`), "orders.user"},
		{on("v", "renamed", `[{"$match": {"owner": UUID, "user": UUID}}]`), "? orders.user"},
		{on("v", "grouped", `[{"$match": {"_id": UUID}}]`), "?"},
		{on("v", "loop", `[{"$match": {"a": UUID}}]`), "loop.a"},
		{on("v", "orders", `[{"$lookup": {"from": "users", "as": "of", "let": {"x": UUID}, "pipeline": [{"$match": {"key": UUID}}]}}, {"$match": {"of.key": UUID, "n": UUID}}]`), "? users.key ? orders.n"},
		{on("v", "orders", `[{"$unionWith": {"coll": "recent", "pipeline": [{"$match": {"a": UUID}}]}}, {"$match": {"a": UUID}}]`), "orders.a ?"},
		{on("v", "orders", `[{"$facet": {"x": [{"$match": {"a": UUID}}]}}, {"$match": {"x.a": UUID}}]`), "orders.a ?"},
		{on("v", "orders", `[{"$addFields": {"mine": {"$eq": ["$user", UUID]}}}]`), "orders.user"},
		{on("v", "orders", `[{"$graphLookup": {"from": "users", "startWith": "$u", "connectFromField": "a", "connectToField": "b", "as": "g", "restrictSearchWithMatch": {"k": UUID}}}]`), "users.k"},
	} {
		var got []string
		null := bson.RawValue{Type: bson.TypeNull}
		same := all.Replace(tt.of, func(c Constant) *bson.RawValue {
			if c.Path == "" {
				got = append(got, "?")
			} else {
				got = append(got, c.Collection+"."+c.Path)
			}
			return nil
		})
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.of.Is, got, tt.want)
		}
		if !same.Equal(tt.of.Is) {
			t.Errorf("%s became %s", tt.of.Is, same)
		}
		n := 0
		if replaced := all.Replace(tt.of, func(Constant) *bson.RawValue { n++; return &null }); n == 0 || replaced.Equal(tt.of.Is) {
			t.Errorf("%s: nothing is replaced", tt.of.Is)
		}
	}
}

// A validator that refuses the UUIDs of a subtype by their bounds, as docs/guarding.md has it, goes on doing so. One that asks for
// the subtype, or that has other UUIDs, has constants, and so has everything else that selects by bounds.
func TestReplaceBounds(t *testing.T) {
	const (
		first = `{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"03"}}`
		last  = `{"$binary":{"base64":"/////////////////////w==","subType":"03"}}`
	)
	for _, tt := range []struct {
		of   Of
		is   string
		want int
	}{
		{Validator, `{"$nor": [{"u": {"$gte": FIRST, "$lte": LAST, "$not": {"$type": "array"}}}, {"u": {"$elemMatch": {"$gte": FIRST, "$lte": LAST}}}]}`, 0},
		{Validator, `{"$and": [{"owner": UUID}, {"$nor": [{"items": {"$elemMatch": {"u": {"$gte": FIRST, "$lte": LAST}}}}]}]}`, 1},
		{Validator, `{"u": {"$not": {"$gte": FIRST, "$lte": LAST}}}`, 0},
		{Validator, `{"u": {"$gte": FIRST, "$lte": LAST}}`, 2},
		{Validator, `{"$nor": [{"u": {"$not": {"$gte": FIRST, "$lte": LAST}}}, {"u": {"$gt": FIRST}}, {"u": {"$lt": FIRST, "$gt": LAST}}]}`, 4},
		{Validator, `{"$nor": [{"u": FIRST}, {"u": {"$in": [LAST]}}, {"u": {"$gte": UUID}}]}`, 3},
		{Index, `{"u": {"$gte": FIRST, "$lte": LAST}}`, 2},
		{View, `[{"$match": {"$nor": [{"u": {"$gte": FIRST, "$lte": LAST}}]}}]`, 2},
	} {
		n := 0
		is := strings.NewReplacer("FIRST", first, "LAST", last).Replace(tt.is)
		(Definitions{}).Replace(Definition{Of: tt.of, Name: "c", On: "c", Is: parse(t, is)}, func(Constant) *bson.RawValue { n++; return nil })
		if n != tt.want {
			t.Errorf("%s %s: got %d, want %d", tt.of, tt.is, n, tt.want)
		}
	}
}

// What is not a definition stays as it is: damaged pipelines and queries, and values of other types.
func TestReplaceOdd(t *testing.T) {
	for _, s := range []string{`[1, null, {"$match": 5}, {"$lookup": 3}, {"$facet": []}, {"$geoNear": 1}, {"$project": 1}]`, `{"$and": 5, "$jsonSchema": [5], "$expr": 7, "a": {"$all": 3, "$elemMatch": 9}}`, `5`, `{}`, `[]`, `{"$jsonSchema": {"properties": 5, "patternProperties": 6}}`} {
		for _, of := range []Of{View, Validator} {
			is := parse(t, s)
			if got := (Definitions{}).Replace(Definition{Of: of, Is: is, On: "c"}, func(Constant) *bson.RawValue { return nil }); !got.Equal(is) {
				t.Errorf("%s became %s", is, got)
			}
		}
	}
}

// Filters are the same without their UUIDs if they differ in these alone.
func TestWithout(t *testing.T) {
	filter := func(v bson.Binary, n int) bson.RawValue {
		return kindstest.Marshal(t, bson.D{{Key: "f", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$eq", Value: v}}}, {Key: "n", Value: n}}}}).Lookup("f")
	}
	old, fresh, other := filter(kindstest.Value("javaLegacy"), 1), filter(kindstest.Value("standard"), 1), filter(kindstest.Value("standard"), 2)
	if !Without(old).Equal(Without(fresh)) || Without(old).Equal(Without(other)) || Without(old).Equal(old) {
		t.Errorf("%s, %s, %s", Without(old), Without(fresh), Without(other))
	}
	if v := kindstest.Marshal(t, bson.D{{Key: "v", Value: true}}).Lookup("v"); !Without(v).Equal(v) {
		t.Error(Without(v))
	}
}
