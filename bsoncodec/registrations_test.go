package bsoncodec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// around has a UUID in every place that has a codec of this package.
type around struct {
	Value   uuid.UUID
	Pointer *uuid.UUID
	Slice   []uuid.UUID
	Array   [1]uuid.UUID
	Map     map[string]uuid.UUID
	Any     any
	D       bson.D
	A       []any
	Null    uuid.NullUUID
}

func newAround(u uuid.UUID) around {
	return around{u, &u, []uuid.UUID{u}, [1]uuid.UUID{u}, map[string]uuid.UUID{"u": u}, u, bson.D{{Key: "u", Value: u}}, []any{u}, uuid.NullUUID{UUID: u, Valid: true}}
}

// leaves calls f with each value in v that is not a document or an array.
func leaves(v bson.RawValue, f func(bson.RawValue)) {
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		values, _ := bson.RawArray(v.Value).Values()
		for _, v := range values {
			leaves(v, f)
		}
	default:
		f(v)
	}
}

// An encoder or a decoder that is registered for uuid.UUID after Build is obeyed everywhere.
func TestCodecOfUUIDsAfterBuild(t *testing.T) {
	for _, rep := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy} {
		reg := registry(t, rep)
		register(reg, func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[uuid.UUID](), bson.ValueEncoderFunc(
				func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return vw.WriteString("late") }))
		})
		n := 0
		leaves(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: marshal(t, reg, newAround(testUUID))}, func(v bson.RawValue) {
			n++
			if s, ok := v.StringValueOK(); !ok || s != "late" {
				t.Errorf("%v: value %d is written as %v", rep, n, v)
			}
		})
		if want := reflect.TypeFor[around]().NumField(); n != want {
			t.Errorf("%v: %d values were written, want %d", rep, n, want)
		}

		reg = registry(t, rep)
		raw := marshal(t, reg, newAround(testUUID))
		late := uuid.UUID{1, 2, 3}
		reg = registry(t, rep)
		register(reg, func(reg *bson.Registry) {
			reg.RegisterTypeDecoder(reflect.TypeFor[uuid.UUID](), bson.ValueDecoderFunc(
				func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
					val.Set(reflect.ValueOf(late))
					return vr.Skip()
				}))
		})
		var got around
		unmarshal(t, reg, raw, &got)
		if want := newAround(late); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %v, want %v", rep, got, want)
		}
	}
}

// Codecs of the kinds pointer and slice that are registered after Build are obeyed for UUIDs too.
func TestKindCodecsAfterBuild(t *testing.T) {
	skip := bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error { return vr.Skip() })
	text := bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return vw.WriteString("late") })
	type doc struct {
		Value   uuid.UUID
		Pointer *uuid.UUID
		Slice   []uuid.UUID
	}
	v := doc{testUUID, &testUUID, []uuid.UUID{testUUID}}
	raw := marshal(t, registry(t, uuidrep.Standard), v)
	for kind, key := range map[reflect.Kind]string{reflect.Pointer: "pointer", reflect.Slice: "slice"} {
		reg := registry(t, uuidrep.Standard)
		register(reg, func(reg *bson.Registry) {
			reg.RegisterKindEncoder(kind, text)
			reg.RegisterKindDecoder(kind, skip)
		})
		got := marshal(t, reg, v)
		for _, name := range []string{"value", "pointer", "slice"} {
			if s, ok := got.Lookup(name).StringValueOK(); (name == key) != (ok && s == "late") {
				t.Errorf("%v: %s is written as %v", kind, name, got.Lookup(name))
			}
		}
		var back doc
		unmarshal(t, reg, raw, &back)
		if back.Value != testUUID || (key == "pointer") != (back.Pointer == nil || *back.Pointer == uuid.Nil) || (key == "slice") != (back.Slice == nil) {
			t.Errorf("%v: got %+v", kind, back)
		}
	}
}

// What is registered after Build and before the first use is obeyed as if it were registered by With, by everything that
// a hook or a codec of a kind can meet.
func TestRegisteredAfterBuildOrByWith(t *testing.T) {
	text := bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
		return vw.WriteString("called for " + v.Type().String())
	})
	skip := bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
		v.SetZero()
		return vr.Skip()
	})
	register := map[string]func(*bson.Registry){
		"Stringer":       func(reg *bson.Registry) { reg.RegisterInterfaceEncoder(reflect.TypeFor[fmt.Stringer](), text) },
		"json.Marshaler": func(reg *bson.Registry) { reg.RegisterInterfaceEncoder(reflect.TypeFor[json.Marshaler](), text) },
		"any type":       func(reg *bson.Registry) { reg.RegisterInterfaceEncoder(reflect.TypeFor[interface{ Other() }](), text) },
		"json.Unmarshaler": func(reg *bson.Registry) {
			reg.RegisterInterfaceDecoder(reflect.TypeFor[json.Unmarshaler](), skip)
		},
		"bson.D":    func(reg *bson.Registry) { reg.RegisterTypeEncoder(reflect.TypeFor[bson.D](), text) },
		"D decoder": func(reg *bson.Registry) { reg.RegisterTypeDecoder(reflect.TypeFor[bson.D](), skip) },
		"bson.A":    func(reg *bson.Registry) { reg.RegisterTypeDecoder(reflect.TypeFor[bson.A](), skip) },
		"type map": func(reg *bson.Registry) {
			reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, reflect.TypeFor[bson.M]())
		},
	}
	for _, k := range []reflect.Kind{
		reflect.Slice, reflect.Map, reflect.Array, reflect.Struct, reflect.Pointer, reflect.String, reflect.Int32, reflect.Int64, reflect.Float64,
		reflect.Bool,
	} {
		register["kind encoder "+k.String()] = func(reg *bson.Registry) { reg.RegisterKindEncoder(k, text) }
		register["kind decoder "+k.String()] = func(reg *bson.Registry) { reg.RegisterKindDecoder(k, skip) }
	}
	type inner struct{ N int32 }
	type target struct {
		D     bson.D
		M     bson.M
		A     bson.A
		Any   any
		P     *inner
		S     []inner
		Ss    []string
		Array [1]int64
		Map   map[string]inner
		B     bool
		F     float64
		ID    bson.ObjectID
		PD    *bson.D
	}
	d := bson.D{{Key: "s", Value: "x"}, {Key: "d", Value: bson.D{{Key: "n", Value: int32(1)}}}, {Key: "i", Value: int64(1)}, {Key: "b", Value: true}, {Key: "f", Value: 1.5}}
	value := target{d, bson.M{"x": d}, bson.A{d}, d, &inner{1}, []inner{{2}}, []string{"y"}, [1]int64{3}, map[string]inner{"z": {4}}, true, 1.5, bson.ObjectID{1}, &d}
	raw := marshal(t, bson.NewRegistry(), value)
	for name, f := range register {
		byWith := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(f))
		late := registry(t, uuidrep.Standard)
		f(late)
		without := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans().With(f))
		for _, v := range []any{value, bson.D{{Key: "x", Value: value}}, bson.M{"x": d}, d, map[string]any{"d": &d}, []any{d}} {
			want, wantErr := bsoncodec.MarshalValue(without, v)
			for i, reg := range []*bson.Registry{byWith, late} {
				if got, err := bsoncodec.MarshalValue(reg, v); fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
					t.Errorf("%s, registry %d, %T: got %v and %v, want %v and %v", name, i, v, got, err, want, wantErr)
				}
			}
			wantDoc, wantErr := bsoncodec.Marshal(without, v)
			for i, reg := range []*bson.Registry{byWith, late} {
				if got, err := bsoncodec.Marshal(reg, v); fmt.Sprint(err) != fmt.Sprint(wantErr) || string(got) != string(wantDoc) {
					t.Errorf("%s, registry %d, %T: got %v and %v, want %v and %v", name, i, v, bson.Raw(got), err, bson.Raw(wantDoc), wantErr)
				}
			}
		}
		for _, typ := range []reflect.Type{reflect.TypeFor[target](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](), reflect.TypeFor[any]()} {
			want := reflect.New(typ)
			wantErr := bsoncodec.Unmarshal(without, raw, want.Interface())
			for i, reg := range []*bson.Registry{byWith, late} {
				got := reflect.New(typ)
				if err := bsoncodec.Unmarshal(reg, raw, got.Interface()); fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got.Interface(), want.Interface()) {
					t.Errorf("%s, registry %d, %v:\n got %+v and %v\nwant %+v and %v", name, i, typ, got, err, want, wantErr)
				}
			}
		}
	}
}

// early and later are two types with the same fields; the codec of early is registered when it was met already.
type (
	early string
	later string
)

// places has a value in every place of a document.
type places[T ~string] struct {
	Field   T
	Pointer *T
	Slice   []T
	Array   [1]T
	Map     map[string]T
	Any     any
	D       bson.D
	M       bson.M
	A       bson.A
	In      struct{ F T } `bson:",inline"`
	Nested  struct{ N []map[string]T }
	Rest    withRest[T]
}

// An inline map is not decoded by plans beside a field of an interface type.
type withRest[T ~string] struct {
	Rest map[string]T `bson:",inline"`
}

func newPlaces[T ~string](v T) places[T] {
	return places[T]{
		v, &v, []T{v}, [1]T{v}, map[string]T{"x": v}, v, bson.D{{Key: "x", Value: v}}, bson.M{"x": v}, bson.A{v}, struct{ F T }{v},
		struct{ N []map[string]T }{[]map[string]T{{"x": v}}}, withRest[T]{map[string]T{"rest": v}},
	}
}

// A codec that is registered after the first use is obeyed for the types that plans meet after that, and not for those that
// they have met, in every place.
func TestRegisteredAfterFirstUse(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	twins.Delete(reg) // the driver's codecs and its Encoder look up some codecs each time
	register := func(typ reflect.Type) {
		reg.RegisterTypeEncoder(typ, bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			return vw.WriteString("late")
		}))
		reg.RegisterTypeDecoder(typ, bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			v.SetString("late")
			return vr.Skip()
		}))
	}
	check := func(when string, raw bson.Raw, want string) {
		t.Helper()
		n := 0
		leaves(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}, func(v bson.RawValue) {
			if s, ok := v.StringValueOK(); !ok || s != want {
				t.Errorf("%s: value %d is written as %v", when, n, v)
			}
			n++
		})
		if n < 12 {
			t.Errorf("%s: %d values", when, n)
		}
	}
	first := marshal(t, reg, newPlaces(early("first")))
	check("first use", first, "first")
	var v places[early]
	unmarshal(t, reg, first, &v)

	register(reflect.TypeFor[early]())
	check("met", marshal(t, reg, newPlaces(early("first"))), "first")
	check("met, in a new type", marshal(t, reg, struct{ In places[early] }{newPlaces(early("first"))}), "first")
	check("met, in a document", marshal(t, reg, bson.D{{Key: "a", Value: early("first")}, {Key: "b", Value: newPlaces(early("first"))}, {Key: "c", Value: early("first")}, {Key: "d", Value: early("first")}}), "first")
	for _, raw := range []bson.Raw{first} {
		var got places[early]
		unmarshal(t, reg, raw, &got)
		if got.Field != "first" || *got.Pointer != "first" || got.Slice[0] != "first" || got.Array[0] != "first" || got.Map["x"] != "first" ||
			got.In.F != "first" || got.Nested.N[0]["x"] != "first" || got.Rest.Rest["rest"] != "first" {
			t.Errorf("met: got %+v", got)
		}
	}

	register(reflect.TypeFor[later]())
	check("not met", marshal(t, reg, newPlaces(later("first"))), "late")
	var got places[later]
	unmarshal(t, reg, first, &got)
	if got.Field != "late" || *got.Pointer != "late" || got.Slice[0] != "late" || got.Array[0] != "late" || got.Map["x"] != "late" ||
		got.In.F != "late" || got.Nested.N[0]["x"] != "late" || got.Rest.Rest["rest"] != "late" {
		t.Errorf("not met: got %+v", got)
	}

	// The type map is obeyed at any time.
	reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, reflect.TypeFor[bson.M]())
	var d bson.D
	unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "d", Value: bson.D{}}}), &d)
	if _, ok := d[0].Value.(bson.M); !ok {
		t.Errorf("the type map is not obeyed: %T", d[0].Value)
	}
}

// A codec for a UUID type takes the place of this package's if it is registered after Build, in every place, and has no effect
// if With registers it.
func TestCodecsForUUIDTypes(t *testing.T) {
	mine := func(reg *bson.Registry) {
		for _, typ := range []reflect.Type{reflect.TypeFor[uuid.UUID](), reflect.TypeFor[embeddedID](), reflect.TypeFor[prefixed]()} {
			reg.RegisterTypeEncoder(typ, stringEncoder("mine"))
			reg.RegisterTypeDecoder(typ, bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
				v.SetZero()
				return vr.Skip()
			}))
		}
	}
	type doc struct {
		U uuid.UUID
		P *uuid.UUID
		S []uuid.UUID
		A [1]uuid.UUID
		M map[string]uuid.UUID
		N uuid.NullUUID
		X any
		E embeddedID
		F []prefixed
		K map[uuid.UUID]int32
	}
	u := testUUID
	in := doc{u, &u, []uuid.UUID{u}, [1]uuid.UUID{u}, map[string]uuid.UUID{"k": u}, uuid.NullUUID{UUID: u, Valid: true}, u, embeddedID{u}, []prefixed{{"room", u}}, map[uuid.UUID]int32{u: 1}}
	paths := [][]string{{"u"}, {"p"}, {"s", "0"}, {"a", "0"}, {"m", "k"}, {"n"}, {"x"}, {"e"}, {"f", "0"}}
	b := func() *bsoncodec.RegistryBuilder {
		return byFuncs(standard().RegisterUUIDType(reflect.TypeFor[embeddedID]()))
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return b().With(mine) }) {
		raw := marshal(t, reg, in)
		for _, path := range paths {
			wantStored(t, raw, 4, octetsStandard, path...)
		}
		var out doc
		if unmarshal(t, reg, raw, &out); !reflect.DeepEqual(in, out) {
			t.Errorf("With, %s: got %v", mode, out)
		}
	}
	for mode, reg := range modes(t, b) {
		twins.Delete(reg)
		mine(reg)
		for _, v := range []any{in, &in} {
			data, err := bsoncodec.Marshal(reg, v)
			if err != nil {
				t.Fatal(err)
			}
			raw := bson.Raw(data)
			for _, path := range paths {
				if s, ok := raw.Lookup(path...).StringValueOK(); !ok || s != "mine" {
					t.Errorf("after Build, %s, %v: got %v", mode, path, raw)
				}
			}
			if raw.Lookup("k", u.String()).Type != bson.TypeInt32 {
				t.Errorf("%s: got %v", mode, raw)
			}
		}
		stored := marshal(t, build(t, b()), in)
		other := uuid.Max
		out := doc{U: other, P: &other, S: []uuid.UUID{other}, A: [1]uuid.UUID{other}, N: uuid.NullUUID{UUID: other}, E: embeddedID{other}, F: []prefixed{{"x", other}}}
		if err := bsoncodec.Unmarshal(reg, stored, &out); err != nil {
			t.Fatal(mode, err)
		}
		if out.U != uuid.Nil || *out.P != uuid.Nil || out.S[0] != uuid.Nil || out.A[0] != uuid.Nil || out.N.UUID != uuid.Nil || out.E.UUID != uuid.Nil || out.F[0] != (prefixed{}) {
			t.Errorf("%s: got %v", mode, out)
		}
	}
}

// An error of a codec of the caller's is returned, wherever it comes and whenever the codec was registered.
func TestErrorsOfCallersCodecs(t *testing.T) {
	enc := bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return errBroken })
	dec := bson.ValueDecoderFunc(func(bson.DecodeContext, bson.ValueReader, reflect.Value) error { return errBroken })
	kind := func(k reflect.Kind) func(*bson.Registry) {
		return func(reg *bson.Registry) {
			reg.RegisterKindEncoder(k, enc)
			reg.RegisterKindDecoder(k, dec)
		}
	}
	other := bson.Binary{Subtype: 9, Data: []byte{1}}
	for name, tt := range map[string]struct {
		register func(*bson.Registry)
		values   []any // each goes through the codec
	}{
		"uuid.UUID": {func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[uuid.UUID](), enc)
			reg.RegisterTypeDecoder(reflect.TypeFor[uuid.UUID](), dec)
		}, []any{testUUID, &testUUID, uuid.NullUUID{UUID: testUUID, Valid: true}, []uuid.UUID{testUUID}, [1]uuid.UUID{testUUID}, map[string]uuid.UUID{"k": testUUID}}},
		"pointers": {kind(reflect.Pointer), []any{&testUUID, &uuid.NullUUID{}, []*uuid.UUID{&testUUID}}},
		"slices":   {kind(reflect.Slice), []any{[]uuid.UUID{testUUID}, []orderID{{}}, bson.A{1}, []any{testUUID}}},
		"arrays":   {kind(reflect.Array), []any{[1]uuid.UUID{testUUID}, strangerID{}}},
		"maps":     {kind(reflect.Map), []any{map[uuid.UUID]int{testUUID: 1}, map[string]uuid.UUID{}}},
		"structs":  {kind(reflect.Struct), []any{embedded{testUUID}, []embedded{{testUUID}}, &embedded{}}},
		"any": {func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[bson.Binary](), enc)
			reg.RegisterTypeDecoder(reflect.TypeFor[any](), dec)
		}, []any{bson.M{"k": other}, bson.A{other}, [1]any{other}, map[string]any{"k": other}}},
		"bson.Binary": {func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[bson.Binary](), enc)
			reg.RegisterTypeDecoder(reflect.TypeFor[bson.Binary](), dec)
		}, []any{other, bson.M{"k": other}, bson.A{other}, [1]any{other}, bson.D{{Key: "k", Value: other}}}},
	} {
		late := registry(t, uuidrep.Standard)
		register(late, tt.register)
		regs := map[string]*bson.Registry{"after Build": late}
		if name != "uuid.UUID" { // With registers before the codec of this package
			regs["With"] = build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[orderID]()).With(tt.register))
		}
		usual := registry(t, uuidrep.Standard)
		for when, reg := range regs {
			for _, v := range tt.values {
				if _, err := encode(t, reg, bson.D{{Key: "v", Value: v}}); !errors.Is(err, errBroken) && (name != "slices" || when != "With") {
					t.Errorf("%s, %s: encoding a %T: got %v", name, when, v, err)
				}
				if _, err := bsoncodec.Marshal(usual, bson.D{{Key: "v", Value: v}}); err != nil {
					continue // strangerID
				}
				raw := marshal(t, usual, bson.D{{Key: "v", Value: v}})
				target := reflect.New(reflect.MapOf(reflect.TypeFor[string](), reflect.TypeOf(v))).Interface()
				if err := decode(t, reg, raw, target); !errors.Is(err, errBroken) {
					t.Errorf("%s, %s: decoding a %T: got %v", name, when, v, err)
				}
			}
		}
	}
}

// The driver's own codecs that With registers again give way to those of this package, as those did that were there: what is
// refused is refused, with plans and without, and documents have plans.
func TestDriversCodecsRegisteredAgain(t *testing.T) {
	again := func(reg *bson.Registry) {
		own := bson.NewRegistry()
		for _, typ := range []reflect.Type{ref[struct{}](), ref[[1]int](), ref[[]int](), ref[map[string]int](), ref[int64](), ref[string]()} {
			enc, _ := own.LookupEncoder(typ)
			dec, _ := own.LookupDecoder(typ)
			reg.RegisterKindEncoder(typ.Kind(), enc)
			reg.RegisterKindDecoder(typ.Kind(), dec)
		}
	}
	type stranger [16]byte
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return standard().With(again) }) {
		for _, v := range []any{struct{ V embeddedID }{}, struct{ V stranger }{}, map[stranger]int{{}: 1}} {
			var refused *bsoncodec.UnregisteredTypeError
			if doc, err := bsoncodec.Marshal(reg, v); !errors.As(err, &refused) {
				t.Errorf("%s, %T: got %v, %v", mode, v, bson.Raw(doc), err)
			}
			raw := marshal(t, reg, bson.M{"v": testUUID, testUUID.String(): 1})
			if err := bsoncodec.Unmarshal(reg, raw, reflect.New(reflect.TypeOf(v)).Interface()); !errors.As(err, &refused) {
				t.Errorf("%s, %T: got %v", mode, v, err)
			}
		}
	}
	reg := build(t, standard().With(again))
	if err := bsoncodec.CheckPlans(reg, ref[struct{ V uuid.UUID }]()); err != nil {
		t.Error(err)
	}
}
