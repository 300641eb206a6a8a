package structcodec_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The cases here say what the driver promises of structs, in its documentation and in its own tests. Each expected
// value is written out, and is held against the driver as well as against plans.

func doc(t testing.TB, elements ...bson.E) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(append(bson.D{}, elements...))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestEncodedStructs(t *testing.T) {
	text := "x"
	bareTag := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Foo", Type: reflect.TypeFor[int32](), Tag: "other"},
	})).Elem().Interface()
	type inner struct {
		A int32 `bson:"a"`
	}
	for name, c := range map[string]struct {
		value any
		want  bson.D
	}{
		"lower-case names": {struct{ FooBar int32 }{1}, bson.D{{Key: "foobar", Value: int32(1)}}},
		"names": {struct {
			Foo int32 `bson:"other"`
		}{1}, bson.D{{Key: "other", Value: int32(1)}}},
		"a bare tag": {bareTag, bson.D{{Key: "other", Value: int32(0)}}},
		"skipped": {struct {
			Foo, Bar int32 `bson:"-"`
		}{1, 2}, bson.D{}},
		"not exported": {struct{ Foo, bar int32 }{1, 2}, bson.D{{Key: "foo", Value: int32(1)}}},
		"a small int":  {struct{ Foo int }{1}, bson.D{{Key: "foo", Value: int32(1)}}},
		"a large int":  {struct{ Foo int64 }{1 << 40}, bson.D{{Key: "foo", Value: int64(1 << 40)}}},
		"int64":        {struct{ Foo int64 }{1}, bson.D{{Key: "foo", Value: int64(1)}}},
		"minsize": {struct {
			Foo int64 `bson:",minsize"`
		}{1}, bson.D{{Key: "foo", Value: int32(1)}}},
		"uint32": {struct{ Foo uint32 }{1}, bson.D{{Key: "foo", Value: int64(1)}}},
		"uint16": {struct{ Foo uint16 }{1}, bson.D{{Key: "foo", Value: int32(1)}}},
		"omitempty": {struct {
			Foo string `bson:",omitempty"`
		}{}, bson.D{}},
		"omitempty of a struct": {struct {
			Foo inner `bson:",omitempty"`
		}{}, bson.D{{Key: "foo", Value: bson.D{{Key: "a", Value: int32(0)}}}}},
		"omitempty of a time": {struct {
			Foo time.Time `bson:",omitempty"`
		}{}, bson.D{}},
		"nil pointer": {struct{ Foo *string }{}, bson.D{{Key: "foo", Value: nil}}},
		"pointer":     {struct{ Foo *string }{&text}, bson.D{{Key: "foo", Value: "x"}}},
		"nil slice":   {struct{ Foo []string }{}, bson.D{{Key: "foo", Value: nil}}},
		"empty slice": {struct{ Foo []string }{[]string{}}, bson.D{{Key: "foo", Value: bson.A{}}}},
		"nil map":     {struct{ Foo map[string]int }{}, bson.D{{Key: "foo", Value: nil}}},
		"bytes":       {struct{ Foo []byte }{[]byte{1}}, bson.D{{Key: "foo", Value: bson.Binary{Data: []byte{1}}}}},
		"inline": {struct {
			In inner `bson:",inline"`
		}{inner{5}}, bson.D{{Key: "a", Value: int32(5)}}},
		"inline nil pointer": {struct {
			In *inner `bson:",inline"`
		}{}, bson.D{}},
		"inline map": {struct {
			Foo int32
			In  map[string]int64 `bson:",inline"`
			Bar int32
		}{1, map[string]int64{"x": 2}, 3}, bson.D{{Key: "foo", Value: int32(1)}, {Key: "bar", Value: int32(3)}, {Key: "x", Value: int64(2)}}},
		"nil inline map": {struct {
			In map[string]int `bson:",inline"`
		}{}, bson.D{}},
		"an inline map in an inline struct is ignored": {struct {
			In struct {
				A int32
				M map[string]int `bson:",inline"`
			} `bson:",inline"`
		}{}, bson.D{{Key: "a", Value: int32(0)}}},
		"the outer field wins": {struct {
			In inner `bson:",inline"`
			A  string
		}{inner{5}, "outer"}, bson.D{{Key: "a", Value: "outer"}}},
		"a time": {struct{ Foo time.Time }{time.UnixMilli(5)}, bson.D{{Key: "foo", Value: bson.DateTime(5)}}},
		"any":    {struct{ Foo, Bar any }{int32(1), nil}, bson.D{{Key: "foo", Value: int32(1)}, {Key: "bar", Value: nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			want := doc(t, c.want...)
			for _, reg := range both() {
				got, err := encode(reg, c.value, func(*bson.Encoder) {})
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("got %v and error %v, want %v", bson.Raw(got), err, want)
				}
			}
		})
	}
}

func both() []*bson.Registry {
	driver, plans := registries(registerCallers)
	return []*bson.Registry{driver, plans}
}

func TestDecodedStructs(t *testing.T) {
	type inner struct{ A, B int32 }
	type target struct {
		FooBar int32
		In     inner
		P      *inner
		S      []int32
		M      map[string]int32
		Any    any
		F      float32 `bson:"f,truncate"`
		Bytes  []byte
	}
	before := func() target {
		return target{FooBar: 9, In: inner{1, 2}, P: &inner{1, 2}, S: []int32{1, 2, 3}, M: map[string]int32{"a": 1}, Any: "x"}
	}
	for name, c := range map[string]struct {
		doc  bson.Raw
		want func(*target)
	}{
		"an empty document changes nothing": {doc(t), func(*target) {}},
		"names in another case":             {doc(t, bson.E{Key: "fooBar", Value: int32(1)}), func(v *target) { v.FooBar = 1 }},
		"unknown names are skipped":         {doc(t, bson.E{Key: "other", Value: bson.D{{Key: "a", Value: 1}}}), func(*target) {}},
		"the last of two elements":          {doc(t, bson.E{Key: "foobar", Value: 1}, bson.E{Key: "foobar", Value: 2}), func(v *target) { v.FooBar = 2 }},
		"null is zero": {
			doc(t, bson.E{Key: "foobar"}, bson.E{Key: "in"}, bson.E{Key: "p"}, bson.E{Key: "s"}, bson.E{Key: "m"}, bson.E{Key: "any"}),
			func(v *target) { *v = target{} },
		},
		"a struct keeps its other fields":  {doc(t, bson.E{Key: "in", Value: bson.D{{Key: "a", Value: 5}}}), func(v *target) { v.In.A = 5 }},
		"a pointer keeps its struct":       {doc(t, bson.E{Key: "p", Value: bson.D{{Key: "a", Value: 5}}}), func(v *target) { v.P.A = 5 }},
		"a slice is replaced":              {doc(t, bson.E{Key: "s", Value: bson.A{7}}), func(v *target) { v.S = []int32{7} }},
		"a map is extended":                {doc(t, bson.E{Key: "m", Value: bson.D{{Key: "b", Value: 2}}}), func(v *target) { v.M = map[string]int32{"a": 1, "b": 2} }},
		"numbers are converted":            {doc(t, bson.E{Key: "foobar", Value: 5.0}), func(v *target) { v.FooBar = 5 }},
		"truncate":                         {doc(t, bson.E{Key: "f", Value: 0.1}), func(v *target) { v.F = 0.1 }},
		"any receives the type of the map": {doc(t, bson.E{Key: "any", Value: bson.D{{Key: "a", Value: bson.A{1}}}}), func(v *target) { v.Any = bson.D{{Key: "a", Value: bson.A{int32(1)}}} }},
		"a string is bytes":                {doc(t, bson.E{Key: "bytes", Value: "x"}), func(v *target) { v.Bytes = []byte("x") }},
	} {
		t.Run(name, func(t *testing.T) {
			want := before()
			c.want(&want)
			for _, reg := range both() {
				got := before()
				if err := decodeStream(reg, c.doc, &got, func(*bson.Decoder) {}); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v and error %v, want %+v", got, err, want)
				}
			}
		})
	}
}

func TestInlineMaps(t *testing.T) {
	type target struct {
		Name  string
		Other map[string]int32 `bson:",inline"`
	}
	for _, reg := range both() {
		got := target{"old", map[string]int32{"x": 1}}
		raw := doc(t, bson.E{Key: "y", Value: 2}, bson.E{Key: "NAME", Value: "new"}, bson.E{Key: "z", Value: 3.0})
		want := target{"new", map[string]int32{"x": 1, "y": 2, "z": 3}}
		if err := decodeStream(reg, raw, &got, func(*bson.Decoder) {}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v and error %v, want %+v", got, err, want)
		}
		got = target{}
		err := decodeStream(reg, doc(t, bson.E{Key: "y", Value: "text"}), &got, func(*bson.Decoder) {})
		if de := new(bson.DecodeError); err == nil || errors.As(err, &de) || got.Other == nil {
			t.Errorf("got %+v and error %v, want an empty map and an error without a key", got, err)
		}
		_, err = encode(reg, target{Other: map[string]int32{"name": 1}}, func(*bson.Encoder) {})
		if err == nil || !strings.Contains(err.Error(), "Key name of inlined map conflicts with a struct field name") {
			t.Errorf("a key of a field: error %v", err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	type line struct{ Price int32 }
	type order struct {
		Lines  []line
		ByName map[string]line
		D      bson.D
		Small  int8
	}
	for name, c := range map[string]struct {
		doc  bson.Raw
		keys string
		text string
	}{
		"in a slice": {
			doc(t, bson.E{Key: "lines", Value: bson.A{bson.D{{Key: "price", Value: 1}}, bson.D{{Key: "price", Value: "x"}}}}),
			"lines.1.price", "cannot decode string into an integer type",
		},
		"in a map": {
			doc(t, bson.E{Key: "byname", Value: bson.D{{Key: "a", Value: bson.D{{Key: "PRICE", Value: true}, {Key: "price", Value: bson.A{}}}}}}),
			"byname.a.price", "cannot decode array into an integer type",
		},
		"a fraction": {doc(t, bson.E{Key: "small", Value: 1.5}), "small", "can only be truncated"},
		"overflow":   {doc(t, bson.E{Key: "small", Value: 128}), "small", "128 overflows int8"},
		"a scalar":   {doc(t, bson.E{Key: "lines", Value: 1}), "lines", "cannot decode 32-bit integer into a slice"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reg := range both() {
				err := decodeStream(reg, c.doc, new(order), func(*bson.Decoder) {})
				var de *bson.DecodeError
				if !errors.As(err, &de) || strings.Join(de.Keys(), ".") != c.keys || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %s at %s", err, c.text, c.keys)
				}
			}
		})
	}
}

// The result of decoding shares no memory with the document.
func TestDecodedValuesAreCopies(t *testing.T) {
	type target struct {
		B []byte
		D bson.Binary
		R bson.Raw
		V bson.RawValue
		A any
		S string
	}
	value := bson.Binary{Data: []byte{1, 2, 3}}
	raw := doc(t, bson.E{Key: "b", Value: value}, bson.E{Key: "d", Value: value}, bson.E{Key: "r", Value: bson.D{}},
		bson.E{Key: "v", Value: "x"}, bson.E{Key: "a", Value: value}, bson.E{Key: "s", Value: "text"})
	_, plans := registries(registerCallers)
	var got target
	if err := decodeMemory(plans, raw, &got, nil); err != nil {
		t.Fatal(err)
	}
	before := dump(reflect.ValueOf(got))
	clear(raw)
	if after := dump(reflect.ValueOf(got)); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
}

// A value in an interface that has no encoder is an error even if it would be omitted.
func TestEmptyValueWithoutEncoder(t *testing.T) {
	for i, reg := range both() {
		_, err := encode(reg, struct {
			A anything `bson:",omitempty"`
		}{uintptr(0)}, func(*bson.Encoder) {})
		if err == nil || err.Error() != "no encoder found for uintptr" {
			t.Errorf("registry %d: error %v", i, err)
		}
	}
}

// Null sets every scalar to zero.
func TestNullIntoScalars(t *testing.T) {
	g := &generator{rng: rand.New(rand.NewPCG(3, 3)), plain: true}
	driver, plans := registries(registerCallers)
	for _, typ := range scalars {
		wrapper := reflect.StructOf([]reflect.StructField{{Name: "A", Type: typ}})
		value := g.value(wrapper, 3)
		for _, null := range []any{nil, bson.Undefined{}} {
			raw := doc(t, bson.E{Key: "a", Value: null})
			want, got := reflect.New(wrapper), reflect.New(wrapper)
			want.Elem().Set(value)
			got.Elem().Set(value)
			wantErr, gotErr := decodeMemory(driver, raw, want.Interface(), nil), decodeMemory(plans, raw, got.Interface(), nil)
			if !same(want, got) || !sameError(wantErr, gotErr) {
				t.Errorf("%v into %v: got %s and error %v, want %s and %v", null, typ, dump(got), gotErr, dump(want), wantErr)
			}
		}
	}
}
