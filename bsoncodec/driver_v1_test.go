package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	v1bson "github.com/bsonids/bsonids/bsoncodec/testdata/v1/bson"
	"github.com/bsonids/bsonids/bsoncodec/testdata/v1/bson/primitive"
	v1core "github.com/bsonids/bsonids/bsoncodec/testdata/v1/x/bsonx/bsoncore"
	"github.com/bsonids/bsonids/uuidrep"
)

// bsontypeType is the type of driver version 1 that its marshaling methods have.
type bsontypeType byte

// The types below have the methods of driver version 1, which is not imported: both with value and
// with pointer receivers, and around UUIDs in several places.
type v1Array [16]byte

type v1Embedded struct{ uuid.UUID }

type v1Private struct{ id *uuid.UUID }

type v1Deep struct {
	a struct{ m map[string][]uuid.NullUUID }
}

// v1Other is what a program writes that replaced bsontype.Type by bson.Type alone.
type v1Other struct{ ID [16]byte }

// v1EncodeOnly and v1DecodeOnly have one of the methods each.
type v1EncodeOnly struct{ ID uuid.UUID }

type v1DecodeOnly struct{ ID uuid.UUID }

// v1NoUUID and otherMethods hold no UUID, or have other methods of these names.
type v1NoUUID struct{ Name string }

// v1Recursive is within itself, and has no UUID either.
type v1Recursive struct {
	Name   string
	Next   *v1Recursive
	Short  [4]byte
	Counts [16]int32
}

type otherMethods struct{ ID uuid.UUID }

type recursive struct {
	Next *recursive
	ID   uuid.UUID
}

func wantV1Error(t *testing.T, err error, method string) {
	t.Helper()
	var e *bsoncodec.UnregisteredTypeError
	direction := "bsoncodec: cannot encode "
	if strings.HasPrefix(method, "Unmarshal") {
		direction = "cannot decode a value into "
	}
	if !errors.As(err, &e) || !strings.Contains(err.Error(), method) || !strings.Contains(err.Error(), "version 1") || !strings.Contains(err.Error(), direction) {
		t.Errorf("got %v", err)
	}
}

// A type with a method of driver version 1 (bsontype.Type in place of byte), which version 2 does not call,
// is refused if it holds a UUID.
func TestMethodsOfDriverVersion1AreRefused(t *testing.T) {
	for name, reg := range map[string]*bson.Registry{
		"standard":            registry(t, uuidrep.Standard),
		"unspecified":         registry(t, uuidrep.Unspecified),
		"UnregisteredAsUUID":  build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsUUID()),
		"UnregisteredAsBytes": build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsBytes()),
	} {
		t.Run(name, func(t *testing.T) {
			wantV1MethodsRefused[v1Array](t, reg)
			wantV1MethodsRefused[v1Embedded](t, reg)
			wantV1MethodsRefused[v1Private](t, reg)
			wantV1MethodsRefused[v1Deep](t, reg)
			wantV1MethodsRefused[v1Other](t, reg)
		})
	}
}

func wantV1MethodsRefused[T any](t *testing.T, reg *bson.Registry) {
	t.Helper()
	var v T
	for _, doc := range strangers(v) {
		if reflect.TypeOf(doc).Kind() == reflect.Struct && reflect.TypeOf(doc).NumField() == 0 {
			continue
		}
		raw, err := encode(t, reg, doc)
		if raw != nil {
			t.Errorf("%T: got %v", doc, bson.Raw(raw))
		}
		wantV1Error(t, err, "MarshalBSONValue() (byte, []byte, error)")
	}
	for _, value := range []any{uuidrep.NewBinary(testUUID), bson.D{}, "x", nil} {
		raw := marshal(t, reg, bson.M{"v": value})
		wantV1Error(t, decode(t, reg, raw, new(struct{ V T })), "UnmarshalBSONValue(byte, []byte) error")
		raw = marshal(t, reg, bson.M{"v": bson.A{value}})
		wantV1Error(t, decode(t, reg, raw, new(struct{ V []T })), "UnmarshalBSONValue(byte, []byte) error")
	}
}

// A type with one method of driver version 1 is refused in the direction of that method, and not in the
// other.
func TestMethodsOfDriverVersion1EachDirectionByItself(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	_, err := encode(t, reg, v1EncodeOnly{})
	wantV1Error(t, err, "MarshalBSONValue")
	var e v1EncodeOnly
	unmarshal(t, reg, marshal(t, reg, bson.M{"id": testUUID}), &e)
	raw := marshal(t, reg, v1DecodeOnly{testUUID})
	wantStored(t, raw, 4, octetsStandard, "id")
	wantV1Error(t, decode(t, reg, raw, new(v1DecodeOnly)), "UnmarshalBSONValue")
	if e.ID != testUUID {
		t.Errorf("got %v", e)
	}
}

// The options of the client do not let such a type pass.
func TestMethodsOfDriverVersion1WithOptions(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	opts := bsoncodec.Options{OmitZeroStruct: true, UseJSONStructTags: true, ZeroStructs: true}
	_, err := bsoncodec.Marshal(reg, struct{ V v1Embedded }{v1Embedded{testUUID}}, opts)
	wantV1Error(t, err, "MarshalBSONValue")
	wantV1Error(t, bsoncodec.Unmarshal(reg, marshal(t, reg, bson.M{"v": bson.M{}}), new(struct{ V v1Embedded }), opts), "UnmarshalBSONValue")
}

// What is not meant stays the driver's: a struct without a UUID, methods of another form, a type
// with a codec.
func TestOtherMethodsAreTheDrivers(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, v := range []any{v1NoUUID{"x"}, &v1NoUUID{"x"}, v1Recursive{Name: "x", Next: &v1Recursive{}}, otherMethods{}, recursive{ID: testUUID, Next: &recursive{}}} {
		raw := marshal(t, reg, v)
		p := reflect.New(reflect.Indirect(reflect.ValueOf(v)).Type())
		unmarshal(t, reg, raw, p.Interface())
		if !reflect.DeepEqual(p.Elem().Interface(), reflect.Indirect(reflect.ValueOf(v)).Interface()) {
			t.Errorf("%T: got %v, want %v", v, p.Elem(), v)
		}
	}
	v1, array := reflect.TypeFor[v1Embedded](), reflect.TypeFor[v1Array]()
	reg = build(t, bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).RegisterUUIDType(array).With(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(v1, stringEncoder("mine"))
	}))
	raw := marshal(t, reg, bson.M{"v": v1Embedded{}, "a": v1Array(testUUID)})
	wantStored(t, raw, 3, octetsJava, "a")
	if raw.Lookup("v").StringValue() != "mine" {
		t.Errorf("got %v", raw)
	}
	reg = build(t, bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).RegisterBytesType(array))
	if raw := marshal(t, reg, bson.M{"a": v1Array(testUUID)}); !bytes.Contains(raw, append([]byte{0}, octetsStandard...)) {
		t.Errorf("got %v", raw)
	}
}

func (v1Array) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1Array) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (v1Embedded) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1Embedded) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (*v1Private) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1Private) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (v1Deep) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1Deep) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (v1Other) MarshalBSONValue() (bson.Type, []byte, error) { panic("called") }

func (*v1Other) UnmarshalBSONValue(t bson.Type, b []byte) error { panic("called") }

func (v1EncodeOnly) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1DecodeOnly) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (v1Recursive) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1Recursive) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (v1NoUUID) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

func (*v1NoUUID) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (otherMethods) MarshalBSONValue() ([]byte, error) { panic("called") }

func (*otherMethods) UnmarshalBSONValue(b []byte) error { panic("called") }

var _, _ = v1Private{}.id, v1Deep{}.a // which reflection alone reads

// The types of driver version 1 are refused, with the type of version 2 that takes their place. The test of the same name
// in package integration has every type.
func TestTypesOfDriverVersion1AreRefused(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	wantV1TypeRefused(t, reg, primitive.ObjectID{1}, "bson.ObjectID")
	wantV1TypeRefused(t, reg, primitive.Binary{Subtype: 4, Data: make([]byte, 16)}, "bson.Binary")
	wantV1TypeRefused(t, reg, primitive.D{{Key: "a", Value: 1}}, "bson.D")
	wantV1TypeRefused(t, reg, primitive.DateTime(1), "bson.DateTime")
	wantV1TypeRefused(t, reg, primitive.Symbol("a"), "bson.Symbol")
	wantV1TypeRefused(t, reg, primitive.JavaScript("a"), "bson.JavaScript")
	wantV1TypeRefused(t, reg, primitive.Timestamp{T: 1}, "bson.Timestamp")
	wantV1TypeRefused(t, reg, primitive.MinKey{}, "bson.MinKey")
	wantV1TypeRefused(t, reg, v1bson.Raw{5, 0, 0, 0, 0}, "bson.Raw")
	wantV1TypeRefused(t, reg, v1bson.RawElement{1}, "bson.RawElement")
	wantV1TypeRefused(t, reg, v1bson.RawValue{}, "bson.RawValue")
	wantV1TypeRefused(t, reg, v1core.Document{5, 0, 0, 0, 0}, "bson.Raw")
	wantV1TypeRefused(t, reg, v1core.Array{5, 0, 0, 0, 0}, "bson.RawArray")
	wantV1TypeRefused(t, reg, v1core.Element{1}, "bson.RawElement")
	wantV1TypeRefused(t, reg, v1core.Value{}, "bson.RawValue")

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

func wantV1TypeRefused[T any](t *testing.T, reg *bson.Registry, v T, name string) {
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
