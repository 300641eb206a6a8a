package bsoncodec_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

func TestEncodeAsString(t *testing.T) {
	text := testUUID.String()
	for _, r := range allRepresentations {
		reg := build(t, bsoncodec.NewRegistryBuilder(r).EncodeAsString().RegisterUUIDType(reflect.TypeFor[orderID]()).
			RegisterUUIDType(reflect.TypeFor[textID]()))
		in := newEverywhere()
		for _, v := range []any{in, &in} {
			raw := marshal(t, reg, v)
			for _, path := range [][]string{
				{"_id", "in"}, {"field"}, {"pointer"}, {"pointers"}, {"slice", "0"}, {"ptrslice", "0"}, {"array", "0"},
				{"nested", "0", "0"}, {"map", "k"}, {"any"}, {"d", "k"}, {"m", "k", "0"}, {"a", "0"}, {"a", "1", "k"},
				{"valid"}, {"nullptr"}, {"nulls", "0"}, {"order"}, {"orderptr"}, {"orders", "0"}, {"textkeys", text}, {"in"}, {"inlined"},
			} {
				if s, ok := raw.Lookup(path...).StringValueOK(); !ok || s != text {
					t.Errorf("%v, %v: got %v", r, path, raw.Lookup(path...))
				}
			}
			var back everywhere
			unmarshal(t, reg, raw, &back)
			// What any receives is a string: nothing tells it from other strings.
			want := newEverywhere()
			want.Any, want.D, want.M = text, bson.D{{Key: "k", Value: text}}, bson.M{"k": bson.A{text}}
			want.A = bson.A{text, bson.D{{Key: "k", Value: text}}}
			if !reflect.DeepEqual(back, want) {
				t.Errorf("%v: got %+v\nwant %+v", r, back, want)
			}
		}
	}
}

// Binary values are read as without the option.
func TestEncodeAsStringReadsBinaries(t *testing.T) {
	for _, tt := range table {
		reg := build(t, bsoncodec.NewRegistryBuilder(tt.rep).EncodeAsString().AlsoDecodeString())
		b := bson.Binary{Subtype: tt.subtype, Data: tt.octets}
		raw := marshal(t, reg, bson.M{"v": b, "any": b, "s": bson.A{b, testUUID, strings.ToUpper(testUUID.String())}})
		var d struct {
			V   uuid.UUID
			Any any
			S   []uuid.UUID
		}
		unmarshal(t, reg, raw, &d)
		if d.V != testUUID || d.Any != testUUID || !reflect.DeepEqual(d.S, []uuid.UUID{testUUID, testUUID, testUUID}) {
			t.Errorf("%v: got %v", tt.rep, d)
		}
		if err := decode(t, reg, marshal(t, reg, bson.M{"v": "x"}), &d); err == nil {
			t.Errorf("%v: x was decoded", tt.rep)
		}
	}
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Unspecified).EncodeAsString())
	var d struct{ V uuid.UUID }
	err := decode(t, reg, marshal(t, reg, bson.M{"v": bson.Binary{Subtype: 4, Data: octetsStandard}}), &d)
	if !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
	if _, err := bsoncodec.NewRegistryBuilder(uuidrep.Unspecified).EncodeAsString().AlsoDecodeSubtype0().Build(); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
}

func TestEncodeZeroAsNull(t *testing.T) {
	type doc struct {
		U uuid.UUID
		P *uuid.UUID
		S []uuid.UUID
		A [1]uuid.UUID
		M map[string]uuid.UUID
		I any
		O orderID
		N uuid.NullUUID
		K map[uuid.UUID]int32
	}
	var zero uuid.UUID
	in := doc{P: &zero, S: []uuid.UUID{{}, testUUID}, M: map[string]uuid.UUID{"k": {}}, I: zero, N: uuid.NullUUID{Valid: true}, K: map[uuid.UUID]int32{{}: 1}}
	for _, b := range []*bsoncodec.RegistryBuilder{
		bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy), bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).EncodeAsString(),
	} {
		reg := build(t, b.EncodeZeroAsNull().RegisterUUIDType(reflect.TypeFor[orderID]()))
		for _, v := range []any{in, &in} {
			raw := marshal(t, reg, v)
			for _, path := range [][]string{{"u"}, {"p"}, {"s", "0"}, {"a", "0"}, {"m", "k"}, {"i"}, {"o"}} {
				if v := raw.Lookup(path...); v.Type != bson.TypeNull {
					t.Errorf("%v: got %v", path, v)
				}
			}
			for _, path := range [][]string{{"s", "1"}, {"n"}, {"k", uuid.Nil.String()}} {
				if v := raw.Lookup(path...); v.Type == bson.TypeNull || v.Type == 0 {
					t.Errorf("%v: got %v", path, v)
				}
			}
			var out doc
			unmarshal(t, reg, raw, &out)
			want := in
			want.P, want.I = nil, nil
			if !reflect.DeepEqual(out, want) {
				t.Errorf("got %v, want %v", out, want)
			}
		}
	}
	// Without a representation a zero UUID is null, and another one is refused.
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Unspecified).EncodeZeroAsNull())
	if v := marshal(t, reg, bson.M{"v": uuid.Nil}).Lookup("v"); v.Type != bson.TypeNull {
		t.Errorf("got %v", v)
	}
	if _, err := encode(t, reg, bson.M{"v": []uuid.UUID{{}, testUUID}}); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
	// The option is off by default.
	checkStored(t, marshal(t, registry(t, uuidrep.Standard), bson.M{"v": uuid.Nil}), 4, make([]byte, 16), "v")
}
