package bsoncodec_test

import (
	"errors"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// An []any that is decoded into again receives what an empty one receives, whatever binary values
// changed places.
func TestSliceOfAnyIsDecodedIntoAgain(t *testing.T) {
	other := bson.Binary{Subtype: 3, Data: octetsStandard}
	standard := bson.Binary{Subtype: 4, Data: octetsStandard}
	// Each row is one array after another, and what the second one gives.
	for _, tt := range []struct {
		name          string
		first, second bson.A
		want          []any
	}{
		{"a UUID for a Binary", bson.A{other, int32(1)}, bson.A{standard, int32(2)}, []any{testUUID, int32(2)}},
		{"a Binary for a UUID", bson.A{standard, int32(1)}, bson.A{other, int32(2)}, []any{other, int32(2)}},
		{"both", bson.A{standard, other}, bson.A{other, standard}, []any{other, testUUID}},
		{"null for a UUID", bson.A{standard}, bson.A{nil}, []any{nil}},
		{"a UUID for null", bson.A{nil}, bson.A{standard}, []any{testUUID}},
		{"text for a UUID", bson.A{standard}, bson.A{"x"}, []any{"x"}},
		{"shorter", bson.A{standard, other, nil}, bson.A{other}, []any{other}},
		{"longer", bson.A{other}, bson.A{standard, other, standard}, []any{testUUID, other, testUUID}},
		{"empty", bson.A{other, standard}, bson.A{}, []any{}},
		{"arrays", bson.A{bson.A{standard}}, bson.A{bson.A{other}}, []any{bson.A{other}}},
	} {
		reg := registry(t, uuidrep.Standard)
		first := marshal(t, bson.NewRegistry(), bson.D{{Key: "a", Value: tt.first}})
		second := marshal(t, bson.NewRegistry(), bson.D{{Key: "a", Value: tt.second}})
		var anys struct{ A []any }
		var as struct{ A bson.A }
		unmarshal(t, reg, first, &anys)
		unmarshal(t, reg, first, &as)
		full := anys.A[:len(anys.A)] // the array of before, which the caller may have elsewhere
		kept := append([]any(nil), full...)
		unmarshal(t, reg, second, &anys)
		unmarshal(t, reg, second, &as)
		if !reflect.DeepEqual(anys.A, tt.want) || !reflect.DeepEqual([]any(as.A), tt.want) {
			t.Errorf("%s: got %v and %v, want %v", tt.name, anys.A, as.A, tt.want)
		}
		for i := len(anys.A); i < len(full); i++ {
			if !reflect.DeepEqual(full[i], kept[i]) {
				t.Errorf("%s: element %d, which is not decoded, was %v and is %T", tt.name, i, kept[i], full[i])
			}
		}
	}
}

// An array of any receives what a slice does. The driver of version 2.9.3 panics if an element is nil.
func TestArrayOfAny(t *testing.T) {
	type pair [2]any
	type target struct {
		A pair
		M map[string][2]any
	}
	other := bson.Binary{Subtype: 3, Data: octetsStandard}
	standard := bson.Binary{Subtype: 4, Data: octetsStandard}
	document := func(a bson.A) []byte {
		return marshal(t, bson.NewRegistry(), bson.D{{Key: "a", Value: a}, {Key: "m", Value: bson.M{"k": a}}})
	}
	for _, reg := range []*bson.Registry{registry(t, uuidrep.Standard), func() *bson.Registry {
		reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans().Build()
		if err != nil {
			t.Fatal(err)
		}
		return reg
	}()} {
		var v target
		for _, tt := range []struct {
			a       bson.A
			want    pair
			wantMap [2]any
		}{
			{bson.A{standard, nil}, pair{testUUID, nil}, [2]any{testUUID, nil}},
			{bson.A{other}, pair{other, nil}, [2]any{other, nil}},
			{bson.A{nil, standard}, pair{nil, testUUID}, [2]any{nil, testUUID}},
			{bson.A{}, pair{nil, testUUID}, [2]any{}},
			{bson.A{"x", other}, pair{"x", other}, [2]any{"x", other}},
		} {
			unmarshal(t, reg, document(tt.a), &v)
			if !reflect.DeepEqual(v.A, tt.want) || !reflect.DeepEqual(v.M["k"], tt.wantMap) {
				t.Errorf("%v: got %v and %v, want %v and %v", tt.a, v.A, v.M["k"], tt.want, tt.wantMap)
			}
		}
		before := pair{testUUID, nil}
		v.A = before
		if err := decode(t, reg, document(bson.A{1, other, 3}), &v); err == nil || v.A != before {
			t.Errorf("three elements: error %v, the array is %v, want it as before", err, v.A)
		}
	}
}

// What is in the elements otherwise decides as in the driver.
func TestSliceOfAnyWithOtherElements(t *testing.T) {
	reg, stock := registry(t, uuidrep.Standard), bson.NewRegistry()
	raw := marshal(t, stock, bson.D{{Key: "a", Value: bson.A{int32(1), "x", bson.D{{Key: "k", Value: 1.5}}}}})
	for _, elements := range []func() []any{
		func() []any { return []any{int64(7)} }, func() []any { return []any{new(int)} }, func() []any { return []any{"x"} },
		func() []any { return []any{1, "x", bson.M{"old": 1}} }, func() []any { return []any{(*int)(nil)} }, func() []any { return []any{} },
		func() []any { return nil }, func() []any { return []any{1, 2} }, func() []any { return make([]any, 0, 8) },
	} {
		got, want := struct{ A []any }{elements()}, struct{ A []any }{elements()}
		err, wantErr := decode(t, reg, raw, &got), bsoncodec.Unmarshal(stock, raw, &want)
		if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%#v: got %#v, %v; want %#v, %v", elements(), got.A, err, want.A, wantErr)
		}
	}
}

// An error leaves the elements as they were.
func TestSliceOfAnyAfterAnError(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	raw := marshal(t, reg, bson.D{{Key: "a", Value: bson.A{testUUID, "x"}}})
	v := struct{ A []any }{[]any{bson.Binary{Data: []byte{1}}, 1, nil}}
	want := append([]any(nil), v.A...)
	if err := decode(t, reg, raw, &v); err == nil || !reflect.DeepEqual(v.A, want) {
		t.Errorf("got %v, %v; want %v and an error", v.A, err, want)
	}
}

// A caller's own decoder of []any or of slices stays, whether it is registered before Build or
// after it.
func TestSliceOfAnyWithTheCallersDecoder(t *testing.T) {
	refused := errors.New("refused")
	refuse := bson.ValueDecoderFunc(func(bson.DecodeContext, bson.ValueReader, reflect.Value) error { return refused })
	for name, own := range map[string]func(*bson.Registry){
		"type": func(reg *bson.Registry) { reg.RegisterTypeDecoder(reflect.TypeFor[[]any](), refuse) },
		"kind": func(reg *bson.Registry) { reg.RegisterKindDecoder(reflect.Slice, refuse) },
	} {
		late := registry(t, uuidrep.Standard)
		register(late, own)
		for when, reg := range map[string]*bson.Registry{
			"With": build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(own)), "after Build": late,
		} {
			var v struct{ A []any }
			raw := marshal(t, reg, bson.D{{Key: "a", Value: bson.A{1}}})
			if err := decode(t, reg, raw, &v); !errors.Is(err, refused) {
				t.Errorf("%s, %s: got %v, %v", name, when, v.A, err)
			}
		}
	}
}
