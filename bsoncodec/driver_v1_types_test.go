package bsoncodec_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	v1bson "github.com/bsonids/bsonids/bsoncodec/testdata/v1/bson"
	"github.com/bsonids/bsonids/bsoncodec/testdata/v1/bson/primitive"
	v1core "github.com/bsonids/bsonids/bsoncodec/testdata/v1/x/bsonx/bsoncore"
	"github.com/bsonids/bsonids/uuidrep"
)

// The types of driver version 1 are refused, with the type of version 2 that takes their place. The test of the same name
// in package integration has every type.
func TestTypesOfDriverVersion1AreRefused(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	testV1Type(t, reg, primitive.ObjectID{1}, "bson.ObjectID")
	testV1Type(t, reg, primitive.Binary{Subtype: 4, Data: make([]byte, 16)}, "bson.Binary")
	testV1Type(t, reg, primitive.D{{Key: "a", Value: 1}}, "bson.D")
	testV1Type(t, reg, primitive.DateTime(1), "bson.DateTime")
	testV1Type(t, reg, primitive.Symbol("a"), "bson.Symbol")
	testV1Type(t, reg, primitive.JavaScript("a"), "bson.JavaScript")
	testV1Type(t, reg, primitive.Timestamp{T: 1}, "bson.Timestamp")
	testV1Type(t, reg, primitive.MinKey{}, "bson.MinKey")
	testV1Type(t, reg, v1bson.Raw{5, 0, 0, 0, 0}, "bson.Raw")
	testV1Type(t, reg, v1bson.RawElement{1}, "bson.RawElement")
	testV1Type(t, reg, v1bson.RawValue{}, "bson.RawValue")
	testV1Type(t, reg, v1core.Document{5, 0, 0, 0, 0}, "bson.Raw")
	testV1Type(t, reg, v1core.Array{5, 0, 0, 0, 0}, "bson.RawArray")
	testV1Type(t, reg, v1core.Element{1}, "bson.RawElement")
	testV1Type(t, reg, v1core.Value{}, "bson.RawValue")

	// What both versions store alike, and keys, are as in the driver.
	stock := bson.NewRegistry()
	for _, v := range []any{
		primitive.M{"m": primitive.M{"a": primitive.A{int32(1), "x"}}}, bson.M{"o": v1bson.Other{"x"}}, bson.M{"c": v1core.Other{"y"}},
		map[string]map[primitive.ObjectID]int32{"m": {{1}: 1}},
	} {
		if got, want := marshal(t, reg, v), marshal(t, stock, v); got.String() != want.String() {
			t.Errorf("%T: got %v, want %v", v, got, want)
		}
	}
}

func testV1Type[T any](t *testing.T, reg *bson.Registry, v T, name string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		var e *bsoncodec.UnregisteredTypeError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "use "+name+" of go.mongodb.org/mongo-driver/v2/bson") {
			t.Errorf("%T: got %v", v, err)
		}
	}
	type named struct{ V T }
	type inline struct {
		In named `bson:",inline"`
	}
	for _, doc := range []any{
		bson.M{"v": v}, bson.D{{Key: "v", Value: &v}}, bson.D{{Key: "a"}, {Key: "b"}, {Key: "c"}, {Key: "v", Value: v}}, named{v}, &named{v},
		inline{named{v}}, struct{ V any }{v}, struct{ V []T }{[]T{v}}, struct{ V [1]T }{[1]T{v}}, map[string]T{"v": v}, bson.M{"v": bson.A{v}},
		struct{ V *T }{&v}, v,
	} {
		for range 2 { // the second time the registry has met the type
			_, err := encode(t, reg, doc)
			if check(err); !strings.Contains(err.Error(), "cannot encode") {
				t.Errorf("%T: got %v", doc, err)
			}
		}
	}
	_, err := bsoncodec.MarshalValue(reg, v)
	check(err)
	if k := reflect.TypeFor[T]().Kind(); k != reflect.Struct && k != reflect.Array {
		return // the driver reads text, numbers and slices
	}
	for _, value := range []any{bson.ObjectID{}, bson.D{}, nil, bson.A{}} {
		err := decode(t, reg, marshal(t, bson.NewRegistry(), bson.D{{Key: "v", Value: value}}), new(named))
		if check(err); !strings.Contains(err.Error(), "cannot decode a value into") {
			t.Errorf("%T: got %v", v, err)
		}
		check(decode(t, reg, marshal(t, bson.NewRegistry(), bson.D{{Key: "v", Value: bson.A{value}}}), new(struct{ V []T })))
	}
}
