package integration

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	v1bson "go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	v1core "go.mongodb.org/mongo-driver/x/bsonx/bsoncore"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The types of driver version 1 are refused, with the type of version 2 that takes their place, in every place of a
// document. This module has driver version 1, because FerretDB needs it.
func TestTypesOfDriverVersion1AreRefused(t *testing.T) {
	d128, err := primitive.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*bsoncodec.RegistryBuilder{
		bsoncodec.NewRegistryBuilder(uuidrep.Standard), bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans(),
		bsoncodec.NewRegistryBuilder(uuidrep.Unspecified).UnregisteredAsBytes(),
	} {
		reg, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		refused(t, reg, primitive.NewObjectID(), "bson.ObjectID")
		refused(t, reg, primitive.Binary{Subtype: 4, Data: make([]byte, 16)}, "bson.Binary")
		refused(t, reg, primitive.D{{Key: "a", Value: 1}}, "bson.D")
		refused(t, reg, primitive.D{}, "bson.D")
		refused(t, reg, primitive.E{Key: "a", Value: 1}, "bson.E")
		refused(t, reg, primitive.DateTime(1), "bson.DateTime")
		refused(t, reg, d128, "bson.Decimal128")
		refused(t, reg, primitive.Timestamp{T: 1}, "bson.Timestamp")
		refused(t, reg, primitive.Regex{Pattern: "a"}, "bson.Regex")
		refused(t, reg, primitive.JavaScript("a"), "bson.JavaScript")
		refused(t, reg, primitive.Symbol("a"), "bson.Symbol")
		refused(t, reg, primitive.CodeWithScope{}, "bson.CodeWithScope")
		refused(t, reg, primitive.DBPointer{}, "bson.DBPointer")
		refused(t, reg, primitive.MinKey{}, "bson.MinKey")
		refused(t, reg, primitive.MaxKey{}, "bson.MaxKey")
		refused(t, reg, primitive.Null{}, "bson.Null")
		refused(t, reg, primitive.Undefined{}, "bson.Undefined")
		refused(t, reg, v1bson.Raw{5, 0, 0, 0, 0}, "bson.Raw")
		refused(t, reg, v1bson.RawValue{}, "bson.RawValue")
		refused(t, reg, v1bson.RawElement{}, "bson.RawElement")
		refused(t, reg, v1core.Document{5, 0, 0, 0, 0}, "bson.Raw")
		refused(t, reg, v1core.Value{}, "bson.RawValue")

		// M and A are maps and slices to both versions.
		raw, err := bsoncodec.Marshal(reg, primitive.M{"m": primitive.M{"a": primitive.A{int32(1), "x"}}})
		if want, _ := bson.Marshal(bson.M{"m": bson.M{"a": bson.A{int32(1), "x"}}}); err != nil || !bytes.Equal(raw, want) {
			t.Errorf("got %v, %v", bson.Raw(raw), err)
		}
		// As a key of a map, an ObjectID is its text.
		id := primitive.NewObjectID()
		raw, err = bsoncodec.Marshal(reg, map[string]map[primitive.ObjectID]int32{"m": {id: 1}})
		if err != nil || bson.Raw(raw).Lookup("m", id.Hex()).Type != bson.TypeInt32 {
			t.Errorf("got %v, %v", bson.Raw(raw), err)
		}
	}
}

func refused[T any](t *testing.T, reg *bson.Registry, v T, name string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		var e *bsoncodec.UnregisteredTypeError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "use "+name+" of go.mongodb.org/mongo-driver/v2/bson") {
			t.Errorf("%T: got %v", v, err)
		}
	}
	type named struct{ V T }
	for _, doc := range []any{
		bson.M{"v": v}, bson.D{{Key: "v", Value: &v}}, bson.D{{Key: "a"}, {Key: "b"}, {Key: "c"}, {Key: "v", Value: v}}, named{v}, &named{v}, struct{ V any }{v},
		struct{ V []T }{[]T{v}}, struct{ V [1]T }{[1]T{v}}, map[string]T{"v": v}, bson.M{"v": bson.A{v}}, struct{ V *T }{&v},
		struct {
			V T `bson:"v,minsize"`
		}{v}, v,
	} {
		for _, opts := range [][]bsoncodec.Options{nil, {{NilMapAsEmpty: true}}} {
			_, err := bsoncodec.Marshal(reg, doc, opts...)
			check(err)
		}
	}
	_, err := bsoncodec.MarshalValue(reg, v)
	check(err)
	if k := reflect.TypeFor[T]().Kind(); k != reflect.Struct && k != reflect.Array {
		return // the driver reads text, numbers and slices
	}
	for _, value := range []any{bson.ObjectID{}, bson.D{}, nil} {
		raw, err := bson.Marshal(bson.D{{Key: "v", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		check(bsoncodec.Unmarshal(reg, raw, new(named)))
	}
}

// What can be decoded into types of driver version 1 that are refused on encoding only: no value is lost or becomes another
// one. The BSON type that such a type stands for in version 1 is an error.
func TestTypesOfDriverVersion1KeepWhatTheyRead(t *testing.T) {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	text, number := []any{"x", bson.Symbol("x"), bson.Binary{Data: []byte("x")}, bson.Binary{Subtype: 2, Data: []byte("x")}}, []any{int32(7), int64(7), 7.0}
	octets := append([]any{bson.A{int32('x')}}, text[:1]...)
	octets = append(octets, text[2:]...)
	others := []any{
		bson.ObjectID{1}, bson.D{}, bson.D{{Key: "x", Value: 1}}, bson.A{"x"}, bson.A{bson.D{{Key: "key", Value: "k"}, {Key: "value", Value: 1}}},
		bson.JavaScript("x"), bson.CodeWithScope{Code: "x", Scope: bson.D{}}, 7.5, bson.DateTime(7), bson.Timestamp{T: 7}, bson.Regex{Pattern: "x"},
		bson.DBPointer{}, bson.NewDecimal128(0, 7), bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.MinKey{}, bson.MaxKey{},
	}
	kept(t, reg, primitive.DateTime(7), number, others, text, []any{bson.A{}})
	kept(t, reg, primitive.JavaScript("x"), text, others, number, []any{bson.A{}, true})
	kept(t, reg, primitive.Symbol("x"), text, others, number, []any{bson.A{}, true})
	kept(t, reg, primitive.D{}, []any{bson.A{}}, others, number, text, []any{true})
	kept(t, reg, v1bson.Raw("x"), octets, others, number, []any{true})
	kept(t, reg, v1bson.RawElement("x"), octets, others, number, []any{true})
	kept(t, reg, v1core.Document("x"), octets, others, number, []any{true})
	kept(t, reg, v1core.Array("x"), octets, others, number, []any{true})
	kept(t, reg, v1core.Element("x"), octets, others, number, []any{true})
	for _, target := range []any{new(v1bson.Raw), new(v1core.Document), new(primitive.D)} {
		if err := bsoncodec.Unmarshal(reg, []byte{5, 0, 0, 0, 0}, target); err == nil {
			t.Errorf("a document was decoded into a %T", target)
		}
	}
}

// kept checks that each of values is decoded as want, null as zero, and that each of refused is an error.
func kept[T any](t *testing.T, reg *bson.Registry, want T, values []any, refused ...[]any) {
	t.Helper()
	decode := func(value any) (struct{ V T }, error) {
		raw, err := bson.Marshal(bson.D{{Key: "v", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		read := struct{ V T }{want}
		return read, bsoncodec.Unmarshal(reg, raw, &read)
	}
	for _, value := range values {
		if read, err := decode(value); err != nil || !reflect.DeepEqual(read.V, want) {
			t.Errorf("%T %v: got %#v, %v, want %#v", value, value, read.V, err, want)
		}
	}
	if read, err := decode(nil); err != nil || !reflect.ValueOf(read.V).IsZero() {
		t.Errorf("null: got %#v, %v", read.V, err)
	}
	for _, values := range refused {
		for _, value := range values {
			if read, err := decode(value); err == nil {
				t.Errorf("%T %v was decoded into %#v", value, value, read.V)
			}
		}
	}
}
