package bsoncodec_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/bsoncodec/testdata/v1/bson/primitive"
	"github.com/bsonids/bsonids/uuidrep"
)

// Types for TestCheckPlans.
type (
	checkedOrder struct {
		ID       uuid.UUID `bson:"_id"`
		Customer *uuid.UUID
		Placed   time.Time
		Lines    []checkedLine
		ByName   map[string]checkedLine
		Any      any
		D        bson.D
		Self     *checkedOrder
	}
	checkedLine struct {
		Article string
		Count   int
	}
	checkedPrice struct{ Cents int64 }
	checkedMoney struct{ Amount, Tax checkedPrice }
	checkedSides struct {
		Lines []struct {
			Money checkedMoney
		}
	}
	checkedTwice struct {
		A int `bson:"x"`
		B int `bson:"x"`
	}
	checkedInner      struct{ A int }
	checkedDuplicates struct {
		A     int
		Inner checkedInner `bson:",inline"`
	}
	checkedInlineInt struct {
		A int `bson:",inline"`
	}
	checkedMaps       struct{ A, B map[string]int }
	checkedInlineKeys struct {
		A map[int]int `bson:",inline"`
	}
	checkedChannel      struct{ Order struct{ C chan int } }
	checkedInlineValues struct {
		A map[string]chan int `bson:",inline"`
	}
	checkedInlineIface struct {
		A any
		B map[string]int `bson:",inline"`
	}
	checkedDeep struct {
		In struct{ A int } `bson:",inline"`
	}
	checkedPointer struct {
		Deep *checkedDeep `bson:",inline"`
	}
	checkedTwoMaps struct {
		A map[string]int `bson:",inline"`
		B map[string]int `bson:",inline"`
	}
	checkedKeys    struct{ ByTime map[checkedKey]int }
	checkedKey     struct{ N int }
	checkedWrapper struct{ ID checkedID }
	checkedID      struct{ uuid.UUID }
	checkedBytes   []byte
	checkedE       []bson.E
	checkedDriver  struct {
		URL     *url.URL
		Numbers []json.Number
		Bytes   checkedBytes
		Anys    [2]any
		E       checkedE
		Scope   bson.CodeWithScope
	}
	checkedZero struct {
		A int "bson:\"a\x00b\""
	}
)

type checkedHook struct{ N int }

type checkedHookDocument struct{ N int }

// priceCodec is a codec of an application that takes no part in plans.
type priceCodec struct{}

// plannedPriceCodec takes part in plans, without options.
type plannedPriceCodec struct{ priceCodec }

// priceRegistry returns a registry with a codec for checkedPrice.
func priceRegistry(t *testing.T, codec interface {
	bson.ValueEncoder
	bson.ValueDecoder
}) *bson.Registry {
	t.Helper()
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[checkedPrice](), codec)
		reg.RegisterTypeDecoder(reflect.TypeFor[checkedPrice](), codec)
	}).Build()
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// CheckPlans names each part of a type that a codec, a method, an option or the driver has instead of a plan,
// and nothing else.
func TestCheckPlans(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	own := priceRegistry(t, priceCodec{})
	planned := priceRegistry(t, plannedPriceCodec{})
	without, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans().Build()
	if err != nil {
		t.Fatal(err)
	}
	structs, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		reg.RegisterKindEncoder(reflect.Struct, priceCodec{})
		reg.RegisterKindDecoder(reflect.Struct, priceCodec{})
	}).Build()
	if err != nil {
		t.Fatal(err)
	}
	anys, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		reg.RegisterTypeDecoder(reflect.TypeFor[any](), priceCodec{})
	}).Build()
	if err != nil {
		t.Fatal(err)
	}
	type fields struct{ Hook checkedHook }
	for _, tt := range []struct {
		name  string
		reg   *bson.Registry
		typ   reflect.Type
		opts  []bsoncodec.Options
		wants []string // each in the error, none if it is nil
	}{
		{name: "order", typ: reflect.TypeFor[checkedOrder]()},
		{name: "pointer", typ: reflect.TypeFor[*checkedOrder]()},
		{name: "slice", typ: reflect.TypeFor[[]checkedOrder]()},
		{name: "order with options", typ: reflect.TypeFor[checkedOrder](), opts: []bsoncodec.Options{{NilSliceAsEmpty: true, DefaultDocumentM: true}}},
		{name: "D", typ: reflect.TypeFor[bson.D]()}, {name: "M", typ: reflect.TypeFor[bson.M]()}, {name: "any", typ: reflect.TypeFor[any]()},
		{name: "scalar", typ: reflect.TypeFor[string]()}, {name: "UUID", typ: reflect.TypeFor[uuid.UUID]()},
		{name: "codec that takes part", reg: planned, typ: reflect.TypeFor[checkedSides]()},

		{name: "no plans", reg: without, typ: reflect.TypeFor[checkedOrder](), wants: []string{"WithoutPlans"}},
		{name: "driver's registry", reg: bson.NewRegistry(), typ: reflect.TypeFor[checkedOrder](), wants: []string{"make it with NewRegistry"}},
		{name: "own codec of structs", reg: structs, typ: reflect.TypeFor[checkedOrder](), wants: []string{
			"encoding bsoncodec_test.checkedOrder: it goes through its codec, bsoncodec_test.priceCodec",
			"decoding bsoncodec_test.checkedOrder: it goes through its codec, bsoncodec_test.priceCodec"}},
		{name: "own codec", reg: own, typ: reflect.TypeFor[checkedSides](), wants: []string{
			"encoding bsoncodec_test.checkedSides: the field lines.money.amount (bsoncodec_test.checkedPrice) goes through its codec, bsoncodec_test.priceCodec",
			"decoding bsoncodec_test.checkedSides: the field lines.money.amount (bsoncodec_test.checkedPrice) goes through its codec"}},
		{name: "own codec of the type", reg: own, typ: reflect.TypeFor[checkedPrice](), wants: []string{"encoding bsoncodec_test.checkedPrice: it goes through its codec"}},
		{name: "element", reg: own, typ: reflect.TypeFor[[]checkedPrice](), wants: []string{"an element (bsoncodec_test.checkedPrice) goes through its codec"}},
		{name: "codec without options", reg: planned, typ: reflect.TypeFor[checkedSides](), opts: []bsoncodec.Options{{NilMapAsEmpty: true, ZeroMaps: true}},
			wants: []string{"encoding bsoncodec_test.checkedSides: the field lines.money.amount (bsoncodec_test.checkedPrice) goes through its codec, " +
				"bsoncodec_test.plannedPriceCodec, which takes part in plans without options only", "decoding "}},
		{name: "hook", typ: reflect.TypeFor[fields](), wants: []string{"the field hook (bsoncodec_test.checkedHook) goes through its method MarshalBSONValue",
			"its method UnmarshalBSONValue"}},
		{name: "hook of documents", typ: reflect.TypeFor[checkedHookDocument](), wants: []string{"it goes through its method MarshalBSON", "its method UnmarshalBSON"}},
		{name: "two fields of a key", typ: reflect.TypeFor[checkedTwice](), wants: []string{`it is encoded by the driver: two fields have the key "x"`, "is decoded by the driver"}},
		{name: "duplicates", typ: reflect.TypeFor[checkedDuplicates]()},
		{name: "duplicates refused", typ: reflect.TypeFor[checkedDuplicates](), opts: []bsoncodec.Options{{ErrorOnInlineDuplicates: true}},
			wants: []string{`the key "a" is in an inline struct, too, and ErrorOnInlineDuplicates is set`}},
		{name: "inline int", typ: reflect.TypeFor[checkedInlineInt](), wants: []string{"A is inline and no struct or map"}},
		{name: "maps", typ: reflect.TypeFor[checkedMaps]()},
		{name: "two inline maps", typ: reflect.TypeFor[checkedTwoMaps](), wants: []string{"B is a second inline map"}},
		{name: "keys of an inline map", typ: reflect.TypeFor[checkedInlineKeys](), wants: []string{"the keys of A, an inline map, are not of type string"}},
		{name: "zero byte", typ: reflect.TypeFor[checkedZero](), wants: []string{"the key of A holds a zero byte"}},
		{name: "no codec", typ: reflect.TypeFor[checkedChannel](), wants: []string{
			"encoding bsoncodec_test.checkedChannel: the field order (struct { C chan int }) is encoded by the driver: c (chan int) has no codec",
			"decoding bsoncodec_test.checkedChannel: the field order.c (chan int) has no codec"}},
		{name: "inline map without codec", typ: reflect.TypeFor[checkedInlineValues](), wants: []string{"the values of A, an inline map, have no codec"}},
		{name: "inline map and interface", typ: reflect.TypeFor[checkedInlineIface](), wants: []string{
			"decoding bsoncodec_test.checkedInlineIface: it is decoded by the driver: a (interface {}) is beside B, an inline map"}},
		{name: "struct in inline pointer", typ: reflect.TypeFor[checkedPointer](), wants: []string{
			`decoding bsoncodec_test.checkedPointer: it is decoded by the driver: the key "a" is in an inline struct within an inline pointer`}},
		{name: "keys", typ: reflect.TypeFor[checkedKeys](), wants: []string{"decoding bsoncodec_test.checkedKeys: the field bytime (map[bsoncodec_test.checkedKey]int) goes through the driver's codec"}},
		{name: "keys that are UUIDs", typ: reflect.TypeFor[struct{ M map[orderID]int }](), wants: []string{
			"the field m (map[bsoncodec_test.orderID]int) goes through its codec, *structcodec.DocumentEncoder",
			"the field m (map[bsoncodec_test.orderID]int) goes through its codec, *structcodec.DocumentDecoder"}},
		{name: "refused keys", typ: reflect.TypeFor[struct{ M map[strangerID]int }](), wants: []string{
			"the field m (map[bsoncodec_test.strangerID]int) goes through its codec, *structcodec.DocumentEncoder",
			"the field m (map[bsoncodec_test.strangerID]int) goes through its codec, *structcodec.DocumentDecoder"}},
		{name: "ObjectID of driver version 1", typ: reflect.TypeFor[primitive.ObjectID](), wants: []string{
			"encoding primitive.ObjectID: it goes through its codec, *bsoncodec.arrayCodec", "decoding primitive.ObjectID: it goes through its codec, *bsoncodec.arrayCodec"}},
		{name: "driver's codecs", typ: reflect.TypeFor[checkedDriver](), wants: []string{
			"encoding bsoncodec_test.checkedDriver: the field url (url.URL) goes through the driver's codec",
			"encoding bsoncodec_test.checkedDriver: the field numbers (json.Number) goes through the driver's codec",
			"encoding bsoncodec_test.checkedDriver: the field scope (bson.CodeWithScope) goes through the driver's codec",
			"decoding bsoncodec_test.checkedDriver: the field url (url.URL) goes through the driver's codec",
			"decoding bsoncodec_test.checkedDriver: the field numbers (json.Number) goes through the driver's codec",
			"decoding bsoncodec_test.checkedDriver: the field bytes (bsoncodec_test.checkedBytes) goes through the driver's codec",
			"decoding bsoncodec_test.checkedDriver: the field anys ([2]interface {}) goes through the driver's codec",
			"decoding bsoncodec_test.checkedDriver: the field e (bsoncodec_test.checkedE) goes through the driver's codec",
			"decoding bsoncodec_test.checkedDriver: the field scope (bson.CodeWithScope) goes through the driver's codec"}},
		{name: "own codec of any and D", reg: anys, typ: reflect.TypeFor[bson.D](), wants: []string{
			"decoding bson.D: an element (interface {}) goes through its codec, bsoncodec_test.priceCodec"}},
		{name: "refused", typ: reflect.TypeFor[checkedWrapper](), wants: []string{
			"encoding bsoncodec_test.checkedWrapper: the field id (bsoncodec_test.checkedID) is encoded by the driver: its codec refuses the type"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := tt.reg
			if in == nil {
				in = reg
			}
			err := bsoncodec.CheckPlans(in, tt.typ, tt.opts...)
			if len(tt.wants) == 0 {
				if err != nil {
					t.Errorf("CheckPlans(%v) = %v, want nil", tt.typ, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("CheckPlans(%v) = nil, want an error", tt.typ)
			}
			for _, want := range tt.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("CheckPlans(%v) = %v\nwant it to contain %q", tt.typ, err, want)
				}
			}
		})
	}
}

// CheckPlans of no registry, of no type, of two Options and of a registry without plans is an error.
func TestCheckPlansOfWrongArguments(t *testing.T) {
	if err := bsoncodec.CheckPlans(nil, reflect.TypeFor[checkedOrder]()); !errors.Is(err, bson.ErrNilRegistry) {
		t.Errorf("without a registry: %v, want ErrNilRegistry", err)
	}
	reg := registry(t, uuidrep.Standard)
	if err := bsoncodec.CheckPlans(reg, nil); err == nil {
		t.Error("no error without a type")
	}
	if err := bsoncodec.CheckPlans(reg, reflect.TypeFor[checkedOrder](), bsoncodec.Options{}, bsoncodec.Options{}); err == nil {
		t.Error("no error for two Options")
	}
}

func (h checkedHook) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

func (h *checkedHook) UnmarshalBSONValue(t byte, data []byte) error { return nil }

func (h checkedHookDocument) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{}) }

func (h *checkedHookDocument) UnmarshalBSON(data []byte) error { return nil }

func (k checkedKey) MarshalKey() (string, error) { return "k", nil }

func (k *checkedKey) UnmarshalKey(key string) error { return nil }

func (priceCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	return vw.WriteInt64(v.Field(0).Int())
}

func (priceCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	n, err := vr.ReadInt64()
	v.Field(0).SetInt(n)
	return err
}

func (plannedPriceCodec) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	return bson.TypeNull, dst, nil
}

func (plannedPriceCodec) ReadValue(bson.Type, []byte, reflect.Value) error { return nil }

// A function of With that encodes with the registry before it has plans does not keep it from having them.
func TestPlansAfterUseInWith(t *testing.T) {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		if _, err := bsoncodec.Marshal(reg, struct{ N int }{1}); err != nil {
			t.Error(err)
		}
	}).Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := bsoncodec.CheckPlans(reg, reflect.TypeFor[struct{ ID uuid.UUID }]()); err != nil {
		t.Error(err)
	}
}
