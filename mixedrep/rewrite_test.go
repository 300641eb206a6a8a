package mixedrep

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	u1 = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	u2 = uuid.MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
)

func registry(t testing.TB, r uuidrep.Representation) *bson.Registry {
	t.Helper()
	reg, err := bsoncodec.NewRegistry(r)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// rewrite returns what a Collection that writes write and also matches also sends for a.
func rewrite(t testing.TB, a *argument, write, also uuidrep.Representation) (bson.Raw, error) {
	t.Helper()
	reg := registry(t, write)
	register(reg, registry(t, also))
	return encode(bson.EncodeContext{Registry: reg}, a)
}

// in returns the binary values of us in both representations, as uuidrep converts them.
func in(us ...uuid.UUID) bson.A {
	var a bson.A
	for _, u := range us {
		java, err := uuidrep.NewBinaryWithRepresentation(u, uuidrep.JavaLegacy)
		if err != nil {
			panic(err)
		}
		a = append(a, java, uuidrep.NewBinary(u))
	}
	return a
}

type (
	d = bson.D
	a = bson.A
)

var explicit = uuidrep.NewBinary(u1)

// The filters that match u in both representations.
var covered = map[string]struct{ filter, want any }{
	"no UUID":           {d{{Key: "a", Value: 1}, {Key: "b", Value: d{{Key: "$gt", Value: "x"}}}}, d{{Key: "a", Value: 1}, {Key: "b", Value: d{{Key: "$gt", Value: "x"}}}}},
	"empty":             {d{}, d{}},
	"a value":           {d{{Key: "a", Value: u1}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"a pointer":         {d{{Key: "a", Value: &u1}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"a map":             {bson.M{"a": u1}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"a struct":          {struct{ A uuid.UUID }{u1}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"explicit":          {d{{Key: "a", Value: explicit}, {Key: "b", Value: u1}}, d{{Key: "a", Value: explicit}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"a field type":      {d{{Key: "a", Value: uuidrep.StandardUUID{UUID: u1}}, {Key: "b", Value: u1}}, d{{Key: "a", Value: explicit}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"$eq":               {d{{Key: "a", Value: d{{Key: "$eq", Value: u1}}}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"$ne":               {d{{Key: "a", Value: d{{Key: "$ne", Value: u1}}}}, d{{Key: "a", Value: d{{Key: "$nin", Value: in(u1)}}}}},
	"$in":               {d{{Key: "a", Value: d{{Key: "$in", Value: a{u1, "x", u2, nil}}}}}, d{{Key: "a", Value: d{{Key: "$in", Value: append(append(in(u1), "x"), append(in(u2), nil)...)}}}}},
	"$in of []UUID":     {d{{Key: "a", Value: d{{Key: "$in", Value: []uuid.UUID{u1, u2}}}}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1, u2)}}}}},
	"$nin":              {d{{Key: "a", Value: d{{Key: "$nin", Value: a{u1}}}}}, d{{Key: "a", Value: d{{Key: "$nin", Value: in(u1)}}}}},
	"$not":              {d{{Key: "a", Value: d{{Key: "$not", Value: d{{Key: "$eq", Value: u1}}}}}}, d{{Key: "a", Value: d{{Key: "$not", Value: d{{Key: "$in", Value: in(u1)}}}}}}},
	"$not $all":         {d{{Key: "a", Value: d{{Key: "$not", Value: d{{Key: "$all", Value: a{u1}}}}}}}, d{{Key: "a", Value: d{{Key: "$not", Value: d{{Key: "$in", Value: in(u1)}}}}}}},
	"$exists beside":    {d{{Key: "a", Value: d{{Key: "$exists", Value: true}, {Key: "$ne", Value: u1}}}}, d{{Key: "a", Value: d{{Key: "$exists", Value: true}, {Key: "$nin", Value: in(u1)}}}}},
	"$elemMatch values": {d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$eq", Value: u1}}}}}}, d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$in", Value: in(u1)}}}}}}},
	"$elemMatch fields": {d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "b", Value: u1}, {Key: "c", Value: 1}}}}}}, d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}, {Key: "c", Value: 1}}}}}}},
	"$elemMatch $or":    {d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$or", Value: a{d{{Key: "b", Value: u1}}}}}}}}}, d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$or", Value: a{d{{Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}}}}}}}}},
	"$and $or $nor": {
		d{{Key: "$and", Value: a{d{{Key: "$or", Value: a{d{{Key: "a", Value: u1}}, d{{Key: "b", Value: 1}}}}}, d{{Key: "$nor", Value: a{d{{Key: "c", Value: u2}}}}}}}},
		d{{Key: "$and", Value: a{d{{Key: "$or", Value: a{d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}, d{{Key: "b", Value: 1}}}}}, d{{Key: "$nor", Value: a{d{{Key: "c", Value: d{{Key: "$in", Value: in(u2)}}}}}}}}}},
	},
	"$all": {
		d{{Key: "a", Value: d{{Key: "$all", Value: a{u1, u2}}}}},
		d{{Key: "$and", Value: a{d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u2)}}}}}}},
	},
	"$all of more": {
		d{{Key: "x", Value: 1}, {Key: "a", Value: d{{Key: "$all", Value: a{u1, "y"}}, {Key: "$size", Value: 2}}}},
		d{{Key: "$and", Value: a{d{{Key: "x", Value: 1}, {Key: "a", Value: d{{Key: "$all", Value: a{"y"}}, {Key: "$size", Value: 2}}}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}}}},
	},
	"$all $elemMatch": {
		d{{Key: "a", Value: d{{Key: "$all", Value: a{d{{Key: "$elemMatch", Value: d{{Key: "b", Value: u1}}}}}}}}},
		d{{Key: "a", Value: d{{Key: "$all", Value: a{d{{Key: "$elemMatch", Value: d{{Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}}}}}}}},
	},
	"$eq and $in": {
		d{{Key: "a", Value: d{{Key: "$in", Value: a{1}}, {Key: "$eq", Value: u1}}}},
		d{{Key: "$and", Value: a{d{{Key: "a", Value: d{{Key: "$in", Value: a{1}}}}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}}}},
	},
	"an empty document": {d{{Key: "a", Value: d{}}, {Key: "b", Value: u1}}, d{{Key: "a", Value: d{}}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"an empty $all":     {d{{Key: "a", Value: d{{Key: "$all", Value: a{}}}}, {Key: "b", Value: u1}}, d{{Key: "a", Value: d{{Key: "$all", Value: a{}}}}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"$or in $elemMatch beside a field": {
		d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$nor", Value: a{d{{Key: "b", Value: u1}}}}, {Key: "$and", Value: a{d{{Key: "c", Value: 1}}}}}}}}},
		d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$nor", Value: a{d{{Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}}}, {Key: "$and", Value: a{d{{Key: "c", Value: 1}}}}}}}}},
	},
	// The octets of this string are those of a document {$gt: 1}, too.
	"a string":             {d{{Key: "a", Value: "\x10$gt\x00\x01\x00\x00\x00\x00xyz"}, {Key: "b", Value: u1}}, d{{Key: "a", Value: "\x10$gt\x00\x01\x00\x00\x00\x00xyz"}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"the same field twice": {d{{Key: "a", Value: u1}, {Key: "a", Value: u2}}, d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}, {Key: "a", Value: d{{Key: "$in", Value: in(u2)}}}}},
	"a DBRef":              {d{{Key: "a", Value: d{{Key: "$ref", Value: "c"}, {Key: "$id", Value: 1}}}, {Key: "b", Value: u1}}, d{{Key: "a", Value: d{{Key: "$ref", Value: "c"}, {Key: "$id", Value: 1}}}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
	"a regular expression": {d{{Key: "a", Value: bson.Regex{Pattern: "x"}}, {Key: "b", Value: u1}}, d{{Key: "a", Value: bson.Regex{Pattern: "x"}}, {Key: "b", Value: d{{Key: "$in", Value: in(u1)}}}}},
}

func TestFilters(t *testing.T) {
	for name, c := range covered {
		t.Run(name, func(t *testing.T) {
			got, err := rewrite(t, &argument{value: c.filter}, uuidrep.JavaLegacy, uuidrep.Standard)
			if err != nil {
				t.Fatal(err)
			}
			want, err := bson.Marshal(c.want)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, bson.Raw(want))
			}
		})
	}
}

// Where a UUID cannot be matched twice, nothing is sent, and the path says what it is about.
func TestRefusals(t *testing.T) {
	for path, filter := range map[string]any{
		"a.$gt":              d{{Key: "a", Value: d{{Key: "$gt", Value: u1}}}},
		"a.$lte":             d{{Key: "a", Value: d{{Key: "$lte", Value: u1}}}},
		"a":                  d{{Key: "a", Value: d{{Key: "b", Value: u1}}}},
		"b":                  d{{Key: "b", Value: a{u1}}},
		"c":                  d{{Key: "c", Value: []uuid.UUID{u1}}},
		"a.$eq":              d{{Key: "a", Value: d{{Key: "$eq", Value: d{{Key: "b", Value: u1}}}}}},
		"a.$in.1":            d{{Key: "a", Value: d{{Key: "$in", Value: a{1, d{{Key: "b", Value: u1}}}}}}},
		"$expr":              d{{Key: "$expr", Value: d{{Key: "$eq", Value: a{"$a", u1}}}}},
		"$jsonSchema":        d{{Key: "$jsonSchema", Value: d{{Key: "enum", Value: a{u1}}}}},
		"$unknown":           d{{Key: "$unknown", Value: u1}},
		"$or.0.a.$gt":        d{{Key: "$or", Value: a{d{{Key: "a", Value: d{{Key: "$gt", Value: u1}}}}}}},
		"a.$not":             d{{Key: "a", Value: d{{Key: "$not", Value: d{{Key: "$all", Value: a{u1, u2}}}}}}},
		"a.$elemMatch":       d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "$all", Value: a{u1, u2}}}}}}},
		"d.$in":              d{{Key: "d", Value: d{{Key: "$in", Value: u1}}}},
		"d.$nin":             d{{Key: "d", Value: d{{Key: "$nin", Value: u1}}}},
		"d.$all":             d{{Key: "d", Value: d{{Key: "$all", Value: u1}}}},
		"d.$not":             d{{Key: "d", Value: d{{Key: "$not", Value: u1}}}},
		"d.$elemMatch":       d{{Key: "d", Value: d{{Key: "$elemMatch", Value: u1}}}},
		"$nor.0":             d{{Key: "$nor", Value: a{u1}}},
		"d.$all.0":           d{{Key: "d", Value: d{{Key: "$all", Value: a{d{{Key: "$all", Value: a{u1}}}}}}}},
		"d.$all.1.$gt":       d{{Key: "d", Value: d{{Key: "$all", Value: a{1, d{{Key: "$gt", Value: u1}}}}}}},
		"e":                  d{{Key: "e", Value: d{{Key: "$ref", Value: "c"}, {Key: "$id", Value: u1}}}},
		"f":                  d{{Key: "f", Value: d{{Key: "$id", Value: u1}}}},
		"g":                  d{{Key: "g", Value: d{{Key: "$db", Value: u1}}}},
		"a.$all.0":           d{{Key: "a", Value: d{{Key: "$all", Value: a{a{u1}}}}}},
		"$and":               d{{Key: "$and", Value: u1}},
		"a.$not.$unknown":    d{{Key: "a", Value: d{{Key: "$not", Value: d{{Key: "$unknown", Value: u1}}}}}},
		"a.$elemMatch.b.$lt": d{{Key: "a", Value: d{{Key: "$elemMatch", Value: d{{Key: "b", Value: d{{Key: "$lt", Value: u1}}}}}}}},
	} {
		_, err := rewrite(t, &argument{value: filter}, uuidrep.JavaLegacy, uuidrep.Standard)
		var uncovered *UncoveredError
		if !errors.As(err, &uncovered) || uncovered.Path != path {
			t.Errorf("%v: got the error %v, want one at %s", filter, err, path)
		} else if strings.Contains(err.Error(), u1.String()) {
			t.Errorf("the error shows the UUID: %v", err)
		}
	}
}

// A UUID in the scope of code is told from a value that encodes differently each time, and code without one is written
// as it is.
func TestScopeOfCode(t *testing.T) {
	code := func(scope any) bson.CodeWithScope { return bson.CodeWithScope{Code: "this.a == u", Scope: scope} }
	for path, filter := range map[string]any{
		"$where":   d{{Key: "$where", Value: code(d{{Key: "u", Value: u1}})}},
		"a":        d{{Key: "a", Value: code(d{{Key: "u", Value: a{d{{Key: "u", Value: u1}}}}})}},
		"b":        d{{Key: "b", Value: code(d{{Key: "u", Value: code(d{{Key: "v", Value: u1}})}})}},
		"c.$in.1":  d{{Key: "c", Value: d{{Key: "$in", Value: a{1, code(d{{Key: "u", Value: u1}})}}}}},
		"$or.0.$x": d{{Key: "$or", Value: a{d{{Key: "$x", Value: code(bson.M{"u": u1, "v": 1, "w": 2})}}}}},
	} {
		_, err := rewrite(t, &argument{value: filter}, uuidrep.JavaLegacy, uuidrep.Standard)
		var uncovered *UncoveredError
		if !errors.As(err, &uncovered) || uncovered.Path != path || !strings.Contains(uncovered.Reason, "scope of code") {
			t.Errorf("%v: got the error %v, want one at %s", filter, err, path)
		}
	}
	filter := d{{Key: "a", Value: u1}, {Key: "$where", Value: code(d{{Key: "u", Value: explicit}})}}
	got, err := rewrite(t, &argument{value: filter}, uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	_, scope := got.Lookup("$where").CodeWithScope()
	if subtype, data := scope.Lookup("u").Binary(); subtype != 4 || !bytes.Equal(data, u1[:]) {
		t.Errorf("got %v", got)
	}
}

func TestUpserts(t *testing.T) {
	var uncovered *UncoveredError
	for _, c := range covered {
		got, err := rewrite(t, &argument{value: c.filter, upsert: true}, uuidrep.JavaLegacy, uuidrep.Standard)
		written, _ := encode(bson.EncodeContext{Registry: registry(t, uuidrep.JavaLegacy)}, c.filter)
		other, _ := encode(bson.EncodeContext{Registry: registry(t, uuidrep.Standard)}, c.filter)
		if bytes.Equal(written, other) {
			if err != nil || !bytes.Equal(got, written) {
				t.Errorf("%v without a UUID: %v, %v", c.filter, got, err)
			}
		} else if !errors.As(err, &uncovered) {
			t.Errorf("%v: the error is %v", c.filter, err)
		}
	}
}

func TestStages(t *testing.T) {
	both := d{{Key: "a", Value: d{{Key: "$in", Value: in(u1)}}}}
	for name, c := range map[string]struct{ stage, want d }{
		"$match":       {d{{Key: "$match", Value: d{{Key: "a", Value: u1}}}}, d{{Key: "$match", Value: both}}},
		"$facet":       {d{{Key: "$facet", Value: d{{Key: "x", Value: a{d{{Key: "$match", Value: d{{Key: "a", Value: u1}}}}, d{{Key: "$count", Value: "n"}}}}}}}, d{{Key: "$facet", Value: d{{Key: "x", Value: a{d{{Key: "$match", Value: both}}, d{{Key: "$count", Value: "n"}}}}}}}},
		"$lookup":      {d{{Key: "$lookup", Value: d{{Key: "from", Value: "c"}, {Key: "pipeline", Value: a{d{{Key: "$match", Value: d{{Key: "a", Value: u1}}}}}}}}}, d{{Key: "$lookup", Value: d{{Key: "from", Value: "c"}, {Key: "pipeline", Value: a{d{{Key: "$match", Value: both}}}}}}}},
		"$unionWith":   {d{{Key: "$unionWith", Value: d{{Key: "coll", Value: "c"}, {Key: "pipeline", Value: a{d{{Key: "$match", Value: d{{Key: "a", Value: u1}}}}}}}}}, d{{Key: "$unionWith", Value: d{{Key: "coll", Value: "c"}, {Key: "pipeline", Value: a{d{{Key: "$match", Value: both}}}}}}}},
		"$graphLookup": {d{{Key: "$graphLookup", Value: d{{Key: "from", Value: "c"}, {Key: "restrictSearchWithMatch", Value: d{{Key: "a", Value: u1}}}}}}, d{{Key: "$graphLookup", Value: d{{Key: "from", Value: "c"}, {Key: "restrictSearchWithMatch", Value: both}}}}},
		"$geoNear":     {d{{Key: "$geoNear", Value: d{{Key: "query", Value: d{{Key: "a", Value: u1}}}}}}, d{{Key: "$geoNear", Value: d{{Key: "query", Value: both}}}}},
		"$unionWith of a name": {
			d{{Key: "$facet", Value: d{{Key: "x", Value: a{d{{Key: "$unionWith", Value: "c"}}, d{{Key: "$match", Value: d{{Key: "a", Value: u1}}}}}}}}},
			d{{Key: "$facet", Value: d{{Key: "x", Value: a{d{{Key: "$unionWith", Value: "c"}}, d{{Key: "$match", Value: both}}}}}}},
		},
		"$set": {d{{Key: "$set", Value: d{{Key: "a", Value: explicit}}}}, d{{Key: "$set", Value: d{{Key: "a", Value: explicit}}}}},
	} {
		got, err := rewrite(t, &argument{value: c.stage, role: stageRole}, uuidrep.JavaLegacy, uuidrep.Standard)
		want, _ := bson.Marshal(c.want)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %v, %v\nwant %v", name, got, err, bson.Raw(want))
		}
	}
	for path, stage := range map[string]d{
		"$set":                   {{Key: "$set", Value: d{{Key: "a", Value: u1}}}},
		"$group":                 {{Key: "$group", Value: d{{Key: "_id", Value: u1}}}},
		"$match.$expr":           {{Key: "$match", Value: d{{Key: "$expr", Value: d{{Key: "$eq", Value: a{"$a", u1}}}}}}},
		"$lookup.let":            {{Key: "$lookup", Value: d{{Key: "let", Value: d{{Key: "x", Value: u1}}}}}},
		"$graphLookup.startWith": {{Key: "$graphLookup", Value: d{{Key: "startWith", Value: u1}}}},
		"$geoNear.near":          {{Key: "$geoNear", Value: d{{Key: "near", Value: d{{Key: "x", Value: u1}}}}}},
		"$geoNear.query":         {{Key: "$geoNear", Value: d{{Key: "query", Value: u1}}}},
		"$facet.x.0":             {{Key: "$facet", Value: d{{Key: "x", Value: a{u1}}}}},
		"$match":                 {{Key: "$match", Value: u1}},
		"$facet":                 {{Key: "$facet", Value: u1}},
		"$facet.x.0.$set":        {{Key: "$facet", Value: d{{Key: "x", Value: a{d{{Key: "$set", Value: d{{Key: "a", Value: u1}}}}}}}}},
	} {
		_, err := rewrite(t, &argument{value: stage, role: stageRole}, uuidrep.JavaLegacy, uuidrep.Standard)
		var uncovered *UncoveredError
		if !errors.As(err, &uncovered) || uncovered.Path != path {
			t.Errorf("%v: got the error %v, want one at %s", stage, err, path)
		}
	}
}

func TestUpdates(t *testing.T) {
	for _, op := range []string{"$pull", "$pullAll", "$addToSet", "$min", "$max"} {
		_, err := rewrite(t, &argument{value: d{{Key: op, Value: d{{Key: "a", Value: u1}}}}, role: updateRole}, uuidrep.JavaLegacy, uuidrep.Standard)
		var uncovered *UncoveredError
		if !errors.As(err, &uncovered) || uncovered.Path != op {
			t.Errorf("%s: got the error %v", op, err)
		}
	}
	for _, update := range []d{
		{{Key: "$set", Value: d{{Key: "a", Value: u1}}}},
		{{Key: "$pull", Value: d{{Key: "a", Value: explicit}}}, {Key: "$push", Value: d{{Key: "b", Value: u1}}}},
	} {
		got, err := rewrite(t, &argument{value: update, role: updateRole}, uuidrep.JavaLegacy, uuidrep.Standard)
		want, _ := bsoncodec.Marshal(registry(t, uuidrep.JavaLegacy), update)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: got %v, %v, want it as the registry writes it", update, got, err)
		}
	}
}

func TestUpdatePipelines(t *testing.T) {
	for _, stage := range []d{
		{{Key: "$set", Value: d{{Key: "a", Value: u1}, {Key: "b", Value: d{{Key: "c", Value: a{u1}}}}}}},
		{{Key: "$set", Value: d{{Key: "a", Value: d{{Key: "$literal", Value: u1}}}}}},
		{{Key: "$replaceWith", Value: d{{Key: "a", Value: u1}, {Key: "b", Value: d{{Key: "$eq", Value: a{"$a", 1}}}}}}},
		{{Key: "$unset", Value: "a"}},
	} {
		got, err := rewrite(t, &argument{value: stage, role: updateStageRole}, uuidrep.JavaLegacy, uuidrep.Standard)
		want, _ := bsoncodec.Marshal(registry(t, uuidrep.JavaLegacy), stage)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: got %v, %v, want it as the registry writes it", stage, got, err)
		}
	}
}

func TestProjections(t *testing.T) {
	for _, c := range []struct{ projection, want d }{
		{
			d{{Key: "_id", Value: 0}, {Key: "l", Value: d{{Key: "$elemMatch", Value: d{{Key: "u", Value: u1}}}}}},
			d{{Key: "_id", Value: 0}, {Key: "l", Value: d{{Key: "$elemMatch", Value: d{{Key: "u", Value: d{{Key: "$in", Value: in(u1)}}}}}}}},
		},
		{
			d{{Key: "l", Value: d{{Key: "$elemMatch", Value: d{{Key: "$eq", Value: u1}}}}}, {Key: "n", Value: d{{Key: "$slice", Value: 2}}}},
			d{{Key: "l", Value: d{{Key: "$elemMatch", Value: d{{Key: "$in", Value: in(u1)}}}}}, {Key: "n", Value: d{{Key: "$slice", Value: 2}}}},
		},
	} {
		got, err := rewrite(t, &argument{value: c.projection, role: projectionRole}, uuidrep.JavaLegacy, uuidrep.Standard)
		want, _ := bson.Marshal(c.want)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %v, %v\nwant %v", got, err, bson.Raw(want))
		}
	}
}

// Maps have another order at each encoding.
func TestMapOrder(t *testing.T) {
	filter := bson.M{"a": u1, "b": u2, "c": 1, "d": bson.M{"$in": []uuid.UUID{u1}}, "e": bson.M{"x": 1, "y": 2}}
	for range 200 {
		got, err := rewrite(t, &argument{value: filter}, uuidrep.Standard, uuidrep.CSharpLegacy)
		if err != nil {
			t.Fatal(err)
		}
		for key, u := range map[string]uuid.UUID{"a": u1, "b": u2, "d": u1} {
			csharp, _ := uuidrep.NewBinaryWithRepresentation(u, uuidrep.CSharpLegacy)
			var values []bson.Binary
			if err := got.Lookup(key, "$in").Unmarshal(&values); err != nil {
				t.Fatal(err)
			}
			if want := []bson.Binary{uuidrep.NewBinary(u), csharp}; !reflect.DeepEqual(values, want) {
				t.Fatalf("%s: got %v, want %v", key, values, want)
			}
		}
	}
}

type unstable struct{ n *int }

func (u unstable) MarshalBSONValue() (byte, []byte, error) {
	*u.n++
	return byte(bson.TypeInt32), []byte{byte(*u.n), 0, 0, 0}, nil
}

func TestUnstableValue(t *testing.T) {
	if _, err := rewrite(t, &argument{value: d{{Key: "a", Value: unstable{new(int)}}}}, uuidrep.Standard, uuidrep.JavaLegacy); !errors.Is(err, errUnstable) {
		t.Errorf("got %v, want %v", err, errUnstable)
	}
}

// Two encodings of a map have their elements in two orders. Looking for each of these among all others took a minute.
func TestManyKeys(t *testing.T) {
	const n = 60_000
	filter, operators := bson.M{}, bson.M{}
	for i := range n {
		filter["k"+strconv.Itoa(i)] = u1
		operators["$k"+strconv.Itoa(i)] = i
	}
	operators["$ne"] = u1
	start := time.Now()
	for name, f := range map[string]bson.M{"fields": filter, "operators": {"a": operators}} {
		got, err := rewrite(t, &argument{value: f}, uuidrep.JavaLegacy, uuidrep.Standard)
		if err != nil {
			t.Fatal(name, err)
		}
		if name == "operators" {
			got = got.Lookup("a").Document()
		}
		es, err := got.Elements()
		if err != nil || len(es) != len(f) && len(es) != n+1 {
			t.Errorf("%s: got %d elements, %v", name, len(es), err)
		}
		if name == "operators" {
			continue
		}
		for _, e := range es {
			if values := e.Value().Document().Lookup("$in").Array(); e.Key() != "" && len(values) < 2*21 {
				t.Fatalf("%s: got %v", e.Key(), values)
			}
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("filters of %d keys took %v", n, took)
	}
}

// A key that occurs more than once is joined by its occurrence, also behind elements in another order.
func TestMembersByOccurrence(t *testing.T) {
	raw := func(d bson.D) bson.RawValue {
		b, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return document(b)
	}
	p := pair{
		raw(d{{Key: "z", Value: 0}, {Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "a", Value: 3}, {Key: "a", Value: 4}}),
		raw(d{{Key: "z", Value: 0}, {Key: "b", Value: 2}, {Key: "a", Value: 1}, {Key: "a", Value: 3}, {Key: "a", Value: 4}}),
	}
	ms, err := p.members()
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range ms {
		if m.written.Int32() != int32(i) || m.other.Int32() != int32(i) {
			t.Errorf("member %d is %v and %v", i, m.written, m.other)
		}
	}
	for _, other := range []bson.D{
		{{Key: "z", Value: 0}, {Key: "b", Value: 2}, {Key: "a", Value: 1}, {Key: "a", Value: 3}, {Key: "b", Value: 4}},
		{{Key: "z", Value: 0}, {Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "a", Value: 3}, {Key: "z", Value: 4}},
	} {
		if _, err := (pair{p.written, raw(other)}).members(); !errors.Is(err, errUnstable) {
			t.Errorf("%v: got %v", other, err)
		}
	}
}

// changing is encoded as the next of its values each time.
type changing struct {
	values []any
	n      *int
}

func (c changing) MarshalBSONValue() (byte, []byte, error) {
	v := c.values[*c.n%len(c.values)]
	*c.n++
	if err, ok := v.(error); ok {
		return 0, nil, err
	}
	t, data, err := bson.MarshalValue(v)
	return byte(t), data, err
}

// A value that is encoded in two ways is refused wherever it stands, and an error of encoding it again is returned.
func TestChangingValues(t *testing.T) {
	lost := errors.New("lost")
	for name, values := range map[string][]any{
		"more elements":    {d{{Key: "a", Value: 1}}, d{{Key: "a", Value: 1}, {Key: "b", Value: 2}}},
		"fewer elements":   {a{1, 2}, a{1}},
		"another type":     {a{1}, d{{Key: "0", Value: 1}}},
		"another key":      {d{{Key: "a", Value: 1}}, d{{Key: "b", Value: 1}}},
		"another value":    {d{{Key: "a", Value: "x"}}, d{{Key: "a", Value: "y"}}},
		"another scalar":   {1, 2},
		"deeper":           {d{{Key: "a", Value: a{d{{Key: "b", Value: 1}}}}}, d{{Key: "a", Value: a{d{{Key: "b", Value: 2}}}}}},
		"another code":     {bson.CodeWithScope{Code: "x", Scope: d{}}, bson.CodeWithScope{Code: "y", Scope: d{}}},
		"another scope":    {bson.CodeWithScope{Code: "x", Scope: d{{Key: "a", Value: 1}}}, bson.CodeWithScope{Code: "x", Scope: d{{Key: "a", Value: 2}}}},
		"a UUID first":     {explicit, 1},
		"a UUID then":      {1, explicit},
		"code first":       {bson.CodeWithScope{Code: "x", Scope: d{}}, 1},
		"code then":        {1, bson.CodeWithScope{Code: "x", Scope: d{}}},
		"an error first":   {lost, 1},
		"an error":         {1, lost},
		"an error at once": {lost},
	} {
		want := errUnstable
		if strings.Contains(name, "error") {
			want = lost
		}
		for place, filter := range map[string]func(v any) any{
			"a field":           func(v any) any { return d{{Key: "f", Value: v}} },
			"$expr":             func(v any) any { return d{{Key: "$expr", Value: v}} },
			"$in":               func(v any) any { return d{{Key: "f", Value: d{{Key: "$in", Value: a{u1, v}}}}} },
			"$all":              func(v any) any { return d{{Key: "f", Value: d{{Key: "$all", Value: a{u1, v}}}}} },
			"$not":              func(v any) any { return d{{Key: "f", Value: d{{Key: "$not", Value: d{{Key: "$eq", Value: v}}}}}} },
			"$elemMatch":        func(v any) any { return d{{Key: "f", Value: d{{Key: "$elemMatch", Value: d{{Key: "g", Value: v}}}}}} },
			"$or":               func(v any) any { return d{{Key: "$or", Value: a{d{{Key: "f", Value: v}}}}} },
			"all of $or":        func(v any) any { return d{{Key: "$or", Value: v}} },
			"one of $or":        func(v any) any { return d{{Key: "$or", Value: a{v}}} },
			"all of $in":        func(v any) any { return d{{Key: "f", Value: d{{Key: "$in", Value: v}}}} },
			"all of $all":       func(v any) any { return d{{Key: "f", Value: d{{Key: "$all", Value: v}}}} },
			"all of $not":       func(v any) any { return d{{Key: "f", Value: d{{Key: "$not", Value: v}}}} },
			"all of $elemMatch": func(v any) any { return d{{Key: "f", Value: d{{Key: "$elemMatch", Value: v}}}} },
			"an operator":       func(v any) any { return d{{Key: "f", Value: d{{Key: "$gt", Value: v}}}} },
			"$elemMatch in $all": func(v any) any {
				return d{{Key: "f", Value: d{{Key: "$all", Value: a{d{{Key: "$elemMatch", Value: v}}}}}}}
			},
		} {
			if _, err := rewrite(t, &argument{value: filter(changing{values, new(int)})}, uuidrep.JavaLegacy, uuidrep.Standard); !errors.Is(err, want) {
				t.Errorf("%s in %s: got %v, want %v", name, place, err, want)
			}
		}
		for _, stage := range []func(v any) any{
			func(v any) any { return d{{Key: "$set", Value: d{{Key: "f", Value: v}}}} }, func(v any) any { return d{{Key: "$set", Value: v}} },
			func(v any) any { return d{{Key: "$set", Value: d{{Key: "f", Value: d{{Key: "$eq", Value: v}}}}}} },
		} {
			if _, err := rewrite(t, &argument{value: stage(changing{values, new(int)}), role: updateStageRole}, uuidrep.JavaLegacy, uuidrep.Standard); !errors.Is(err, want) {
				t.Errorf("%s in the stage of an update: got %v, want %v", name, err, want)
			}
		}
	}
}

// A value that is malformed is refused wherever it stands, if it is not the same both times.
func TestMalformedValues(t *testing.T) {
	octets := []byte{7, 0, 0, 0, byte(bson.TypeInt32), 0, 0}
	malformed, list := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: octets}, bson.RawValue{Type: bson.TypeArray, Value: octets}
	for _, values := range [][]any{{malformed, d{}}, {d{}, malformed}, {list, a{}}, {a{}, list}, {malformed, list}} {
		for _, filter := range []func(v any) any{
			func(v any) any { return d{{Key: "f", Value: v}} }, func(v any) any { return d{{Key: "$or", Value: v}} },
			func(v any) any { return d{{Key: "f", Value: d{{Key: "$in", Value: v}}}} }, func(v any) any { return d{{Key: "f", Value: d{{Key: "$all", Value: v}}}} },
			func(v any) any { return d{{Key: "f", Value: d{{Key: "$not", Value: v}}}} }, func(v any) any { return d{{Key: "f", Value: d{{Key: "$elemMatch", Value: v}}}} },
		} {
			for role := filterRole; role <= valueRole; role++ {
				if role == updateRole {
					continue // which writes it
				}
				if got, err := rewrite(t, &argument{value: filter(changing{values, new(int)}), role: role}, uuidrep.JavaLegacy, uuidrep.Standard); err == nil {
					t.Errorf("role %d: %v and %v in %v gave %v", role, values[0], values[1], filter("…"), got)
				}
			}
		}
	}
}

// A registry that is not that of the collection does not encode an argument.
func TestForeignRegistry(t *testing.T) {
	if _, err := bson.Marshal(d{{Key: "a", Value: &argument{value: d{}}}}); !errors.Is(err, errForeignRegistry) {
		t.Errorf("got %v", err)
	}
}

// The encoder of arguments is for nothing else.
func TestArgumentCodecGuardsItsType(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, v := range []any{(*argument)(nil), 1, argument{}} {
		var e bson.ValueEncoderError
		if err := (&argumentCodec{reg}).EncodeValue(bson.EncodeContext{Registry: reg}, nil, reflect.ValueOf(v)); !errors.As(err, &e) {
			t.Errorf("%T: got %v", v, err)
		}
	}
}
