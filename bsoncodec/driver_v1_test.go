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
	"github.com/bsonids/bsonids/uuidrep"
)

// bsontypeType is the type of driver version 1 that its marshaling methods have.
type bsontypeType byte

// The types below have the methods of driver version 1, which is not imported: both with value and
// with pointer receivers, and around UUIDs in several places.
type v1Array [16]byte

func (v1Array) MarshalBSONValue() (bsontypeType, []byte, error)    { panic("called") }
func (*v1Array) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

type v1Embedded struct{ uuid.UUID }

func (v1Embedded) MarshalBSONValue() (bsontypeType, []byte, error)    { panic("called") }
func (*v1Embedded) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

type v1Private struct{ id *uuid.UUID }

func (*v1Private) MarshalBSONValue() (bsontypeType, []byte, error)   { panic("called") }
func (*v1Private) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

type v1Deep struct {
	a struct{ m map[string][]uuid.NullUUID }
}

func (v1Deep) MarshalBSONValue() (bsontypeType, []byte, error)    { panic("called") }
func (*v1Deep) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

// v1Other is what a program writes that replaced bsontype.Type by bson.Type alone.
type v1Other struct{ ID [16]byte }

func (v1Other) MarshalBSONValue() (bson.Type, []byte, error)    { panic("called") }
func (*v1Other) UnmarshalBSONValue(t bson.Type, b []byte) error { panic("called") }

// v1EncodeOnly and v1DecodeOnly have one of the methods each.
type v1EncodeOnly struct{ ID uuid.UUID }

func (v1EncodeOnly) MarshalBSONValue() (bsontypeType, []byte, error) { panic("called") }

type v1DecodeOnly struct{ ID uuid.UUID }

func (*v1DecodeOnly) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

// v1NoUUID and otherMethods hold no UUID, or have other methods of these names.
type v1NoUUID struct{ Name string }

// v1Recursive is within itself, and has no UUID either.
type v1Recursive struct {
	Name   string
	Next   *v1Recursive
	Short  [4]byte
	Counts [16]int32
}

func (v1Recursive) MarshalBSONValue() (bsontypeType, []byte, error)    { panic("called") }
func (*v1Recursive) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

func (v1NoUUID) MarshalBSONValue() (bsontypeType, []byte, error)    { panic("called") }
func (*v1NoUUID) UnmarshalBSONValue(t bsontypeType, b []byte) error { panic("called") }

type otherMethods struct{ ID uuid.UUID }

func (otherMethods) MarshalBSONValue() ([]byte, error)  { panic("called") }
func (*otherMethods) UnmarshalBSONValue(b []byte) error { panic("called") }

var _, _ = v1Private{}.id, v1Deep{}.a // which reflection alone reads

type recursive struct {
	Next *recursive
	ID   uuid.UUID
}

func checkV1(t *testing.T, err error, method string) {
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

func TestMethodsOfDriverVersion1AreRefused(t *testing.T) {
	for name, reg := range map[string]*bson.Registry{
		"standard":            registry(t, uuidrep.Standard),
		"unspecified":         registry(t, uuidrep.Unspecified),
		"UnregisteredAsUUID":  build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsUUID()),
		"UnregisteredAsBytes": build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsBytes()),
	} {
		t.Run(name, func(t *testing.T) {
			testV1[v1Array](t, reg)
			testV1[v1Embedded](t, reg)
			testV1[v1Private](t, reg)
			testV1[v1Deep](t, reg)
			testV1[v1Other](t, reg)
		})
	}
}

func testV1[T any](t *testing.T, reg *bson.Registry) {
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
		checkV1(t, err, "MarshalBSONValue() (byte, []byte, error)")
	}
	for _, value := range []any{uuidrep.NewBinary(testUUID), bson.D{}, "x", nil} {
		raw := marshal(t, reg, bson.M{"v": value})
		checkV1(t, decode(t, reg, raw, new(struct{ V T })), "UnmarshalBSONValue(byte, []byte) error")
		raw = marshal(t, reg, bson.M{"v": bson.A{value}})
		checkV1(t, decode(t, reg, raw, new(struct{ V []T })), "UnmarshalBSONValue(byte, []byte) error")
	}
}

func TestMethodsOfDriverVersion1EachDirectionByItself(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	_, err := encode(t, reg, v1EncodeOnly{})
	checkV1(t, err, "MarshalBSONValue")
	var e v1EncodeOnly
	unmarshal(t, reg, marshal(t, reg, bson.M{"id": testUUID}), &e)
	raw := marshal(t, reg, v1DecodeOnly{testUUID})
	checkStored(t, raw, 4, octetsStandard, "id")
	checkV1(t, decode(t, reg, raw, new(v1DecodeOnly)), "UnmarshalBSONValue")
	if e.ID != testUUID {
		t.Errorf("got %v", e)
	}
}

// The options of the client do not let such a type pass.
func TestMethodsOfDriverVersion1WithOptions(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	opts := bsoncodec.Options{OmitZeroStruct: true, UseJSONStructTags: true, ZeroStructs: true}
	_, err := bsoncodec.Marshal(reg, struct{ V v1Embedded }{v1Embedded{testUUID}}, opts)
	checkV1(t, err, "MarshalBSONValue")
	checkV1(t, bsoncodec.Unmarshal(reg, marshal(t, reg, bson.M{"v": bson.M{}}), new(struct{ V v1Embedded }), opts), "UnmarshalBSONValue")
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
	checkStored(t, raw, 3, octetsJava, "a")
	if raw.Lookup("v").StringValue() != "mine" {
		t.Errorf("got %v", raw)
	}
	reg = build(t, bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).RegisterBytesType(array))
	if raw := marshal(t, reg, bson.M{"a": v1Array(testUUID)}); !bytes.Contains(raw, append([]byte{0}, octetsStandard...)) {
		t.Errorf("got %v", raw)
	}
}
