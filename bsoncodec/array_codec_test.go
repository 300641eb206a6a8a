package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// strangerID and its relatives are types that no registry of these tests knows.
type strangerID [16]byte

type textStrangerID [16]byte

// methodID has the marshaling methods of the driver, encodeOnlyID and decodeOnlyID one of them
// each, and pointerID the first with a pointer receiver.
type methodID [16]byte

type encodeOnlyID [16]byte

type decodeOnlyID [16]byte

type pointerID [16]byte

func wantUnregisteredError(t *testing.T, err error, want reflect.Type) {
	t.Helper()
	var e *bsoncodec.UnregisteredTypeError
	if !errors.As(err, &e) || e.Type != want || !strings.HasPrefix(e.Error(), "bsoncodec: ") || !strings.Contains(e.Error(), "RegisterUUIDType") {
		t.Errorf("%v: got %v, want an UnregisteredTypeError", want, err)
	}
}

// strangers holds T, a type of kind [16]byte, in every place of a document.
func strangers[T any](v T) []any {
	type inner struct{ In T }
	type named struct{ V T }
	type withPointer struct{ V *T }
	type inline struct {
		Inner inner `bson:",inline"`
	}
	type inlineMap struct {
		Map map[string]T `bson:",inline"`
	}
	return []any{
		bson.M{"v": v}, bson.D{{Key: "v", Value: v}}, bson.M{"v": &v}, bson.M{"v": bson.A{bson.M{"v": v}}},
		named{v}, &named{v}, withPointer{&v}, inline{inner{v}}, &inline{inner{v}}, inlineMap{map[string]T{"k": v}},
		struct{ V []T }{[]T{v}}, &struct{ V []T }{[]T{v}}, struct{ V []*T }{[]*T{&v}}, struct{ V [2]T }{[2]T{v, v}},
		struct{ V [1][1]T }{[1][1]T{{v}}}, struct{ V [][]T }{[][]T{{v}}}, struct{ V map[string]T }{map[string]T{"k": v}},
		struct{ V map[string][]T }{map[string][]T{"k": {v}}}, struct{ V any }{v}, struct{ V any }{&v}, struct{ V []any }{[]any{v}},
		map[string]any{"v": v}, map[string]T{"v": v}, struct{ V **T }{ptr(&v)}, struct{ V struct{ W inner } }{struct{ W inner }{inner{v}}},
	}
}

func ptr[T any](v T) *T { return &v }

// Types that are not registered are refused wherever they stand, in both directions and by every
// representation, and no byte of them is written.
func TestUnregisteredTypesAreRefused(t *testing.T) {
	for _, r := range allRepresentations {
		reg := registry(t, r)
		wantOctetsRefused[strangerID](t, reg)
		wantOctetsRefused[textStrangerID](t, reg)
		wantOctetsRefused[[16]byte](t, reg)
		wantOctetsRefused[[16]uint8](t, reg)
	}
}

func wantOctetsRefused[T any](t *testing.T, reg *bson.Registry) {
	t.Helper()
	var v T
	typ := reflect.TypeFor[T]()
	for _, doc := range append(strangers(v), v, &v) { // v alone is not a document
		raw, err := encode(t, reg, doc)
		if raw != nil {
			t.Errorf("%T gave %v", doc, bson.Raw(raw))
		}
		wantUnregisteredError(t, err, typ)
	}
	_, err := bsoncodec.MarshalValue(reg, v)
	wantUnregisteredError(t, err, typ)
	_, err = bsoncodec.MarshalExtJSON(reg, bson.M{"v": v}, true, false)
	wantUnregisteredError(t, err, typ)

	for _, value := range []any{
		bson.Binary{Subtype: 0, Data: octetsStandard}, bson.Binary{Subtype: 2, Data: octetsStandard}, bson.Binary{Subtype: 4, Data: octetsStandard},
		bson.A{int32(1)}, nil, "text",
	} {
		for _, doc := range []struct {
			raw    bson.Raw
			target any
		}{
			{marshal(t, reg, bson.M{"v": value}), new(struct{ V T })},
			{marshal(t, reg, bson.M{"v": value}), new(map[string]T)},
			{marshal(t, reg, bson.M{"v": bson.A{value}}), new(struct{ V []T })},
			{marshal(t, reg, bson.M{"v": bson.A{value}}), new(struct{ V [1]T })},
			{marshal(t, reg, bson.M{"v": value}), &struct{ V any }{new(T)}},
		} {
			wantUnregisteredError(t, decode(t, reg, doc.raw, doc.target), typ)
		}
		if value != nil { // a nil pointer holds nothing
			wantUnregisteredError(t, decode(t, reg, marshal(t, reg, bson.M{"v": value}), new(struct{ V *T })), typ)
		}
	}
	var s struct {
		V *T
		S []T
	}
	unmarshal(t, reg, marshal(t, reg, s), &s) // neither holds a T
}

// Keys of maps have text methods or are refused, as values are. An empty map holds no key.
func TestUnregisteredMapKeys(t *testing.T) {
	stranger := reflect.TypeFor[strangerID]()
	for _, r := range allRepresentations {
		reg := registry(t, r)
		_, err := encode(t, reg, bson.M{"v": map[strangerID]int32{{}: 1}})
		wantUnregisteredError(t, err, stranger)
		var s struct{ V map[strangerID]int32 }
		raw := marshal(t, reg, bson.M{"v": bson.M{testUUID.String(): int32(1)}})
		wantUnregisteredError(t, decode(t, reg, raw, &s), stranger)
		unmarshal(t, reg, marshal(t, reg, bson.M{"v": nil}), &s)
		marshal(t, reg, s)
		s.V = map[strangerID]int32{}
		marshal(t, reg, s)

		raw = marshal(t, reg, bson.M{"v": map[textStrangerID]int32{textStrangerID(testUUID): 1}})
		var text struct{ V map[textStrangerID]int32 }
		if unmarshal(t, reg, raw, &text); text.V[textStrangerID(testUUID)] != 1 {
			t.Errorf("got %v", text)
		}

		// The option to format keys with fmt does not let them pass: nothing could read them.
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(reg)
		enc.StringifyMapKeysWithFmt()
		wantUnregisteredError(t, enc.Encode(bson.M{"v": map[strangerID]int32{{}: 1}}), stranger)
	}
	asBytes := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsBytes())
	one := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsUUID().RegisterBytesType(stranger))
	for _, reg := range []*bson.Registry{asBytes, one} {
		_, err := encode(t, reg, bson.M{"v": map[strangerID]int32{{}: 1}})
		if err == nil || !strings.Contains(err.Error(), "unsupported key type") {
			t.Errorf("got %v, want the driver's error", err)
		}
	}
}

// Arrays of another length or of other elements are the driver's.
func TestOtherArraysAreTheDrivers(t *testing.T) {
	type octet byte
	reg := registry(t, uuidrep.Standard)
	type arrays struct {
		Long  [17]byte
		Short [15]byte
		Signs [16]int8
		Named [16]octet
		ID    bson.ObjectID
		None  [0]byte
		Words [16]uint16
	}
	in := arrays{Long: [17]byte{1}, Short: [15]byte{2}, Signs: [16]int8{-3}, Named: [16]octet{4}, ID: bson.ObjectID{5}, Words: [16]uint16{6}}
	want, err := bson.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	raw := marshal(t, reg, in)
	if !bytes.Equal(raw, want) {
		t.Errorf("got %v, want %v", raw, bson.Raw(want))
	}
	if v := raw.Lookup("named"); v.Type != bson.TypeArray {
		t.Errorf("an array of a defined byte type is an array of integers, got %v", v)
	}
	var out arrays
	unmarshal(t, reg, raw, &out)
	if out != in {
		t.Errorf("got %v, want %v", out, in)
	}
}

// The driver's marshaling methods count as a registration, each for its direction.
func TestMarshalingMethodsCountAsRegistered(t *testing.T) {
	for _, b := range []*bsoncodec.RegistryBuilder{
		bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy), bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).UnregisteredAsUUID(),
	} {
		reg := build(t, b)
		for _, doc := range strangers(methodID(testUUID)) {
			raw := marshal(t, reg, doc)
			if !bytes.Contains(raw, octetsStandard) {
				t.Errorf("%T: %v", doc, raw)
			}
		}
		var s struct{ V methodID }
		unmarshal(t, reg, marshal(t, reg, bson.M{"v": methodID(testUUID)}), &s)
		if s.V != methodID(testUUID) {
			t.Errorf("got %v", s.V)
		}
	}

	reg := registry(t, uuidrep.JavaLegacy)
	raw := marshal(t, reg, bson.M{"v": encodeOnlyID(testUUID)})
	wantStored(t, raw, 4, octetsStandard, "v")
	wantUnregisteredError(t, decode(t, reg, raw, new(struct{ V encodeOnlyID })), reflect.TypeFor[encodeOnlyID]())
	var s struct{ V decodeOnlyID }
	unmarshal(t, reg, raw, &s)
	if s.V != decodeOnlyID(testUUID) {
		t.Errorf("got %v", s.V)
	}
	_, err := encode(t, reg, s)
	wantUnregisteredError(t, err, reflect.TypeFor[decodeOnlyID]())
}

// The driver ignores methods with a pointer receiver where the value is not addressable.
func TestPointerReceiversOfValuesThatAreNotAddressable(t *testing.T) {
	for _, b := range []*bsoncodec.RegistryBuilder{
		bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy), bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).UnregisteredAsUUID(),
	} {
		reg := build(t, b)
		id := pointerID(testUUID)
		wantStored(t, marshal(t, reg, bson.M{"v": &id}), 4, octetsStandard, "v")
		wantStored(t, marshal(t, reg, &struct{ V pointerID }{id}), 4, octetsStandard, "v")
		for _, doc := range []any{bson.M{"v": id}, struct{ V pointerID }{id}, map[string]pointerID{"v": id}} {
			raw, err := encode(t, reg, doc)
			var e *bsoncodec.UnregisteredTypeError
			if raw != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), "pointer receiver") {
				t.Errorf("%T: got %v, %v", doc, bson.Raw(raw), err)
			}
		}
	}
}

func stringEncoder(text string) bson.ValueEncoderFunc {
	return func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return vw.WriteString(text) }
}

// skipDecoder leaves a mark of a decoder that was called.
var skipDecoder = bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	v.Index(0).SetUint(99)
	return vr.Skip()
})

type texter interface{ MarshalText() ([]byte, error) }

// Codecs and hooks of the caller count as a registration too, each for its direction, whichever way
// they came.
func TestCallersCodecsCountAsRegistered(t *testing.T) {
	stranger := reflect.TypeFor[strangerID]()
	for name, tt := range map[string]struct {
		register       func(*bson.Registry)
		value          any
		encode, decode bool
	}{
		"type encoder":      {func(r *bson.Registry) { r.RegisterTypeEncoder(stranger, stringEncoder("mine")) }, strangerID{}, true, false},
		"type decoder":      {func(r *bson.Registry) { r.RegisterTypeDecoder(stranger, skipDecoder) }, strangerID{}, false, true},
		"kind encoder":      {func(r *bson.Registry) { r.RegisterKindEncoder(reflect.Array, stringEncoder("mine")) }, strangerID{}, true, false},
		"kind decoder":      {func(r *bson.Registry) { r.RegisterKindDecoder(reflect.Array, skipDecoder) }, strangerID{}, false, true},
		"interface encoder": {func(r *bson.Registry) { r.RegisterInterfaceEncoder(reflect.TypeFor[texter](), stringEncoder("mine")) }, textStrangerID{}, true, false},
		"interface decoder": {func(r *bson.Registry) {
			r.RegisterInterfaceDecoder(reflect.TypeFor[interface{ UnmarshalText([]byte) error }](), skipDecoder)
		}, textStrangerID{}, false, true},
	} {
		applied := bson.NewRegistry()
		tt.register(applied)
		if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).ApplyTo(applied); err != nil {
			t.Fatal(err)
		}
		afterwards := registry(t, uuidrep.Standard)
		register(afterwards, tt.register)
		for way, reg := range map[string]*bson.Registry{
			"With":    build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(tt.register)),
			"ApplyTo": applied, "after Build": afterwards,
		} {
			typ := reflect.TypeOf(tt.value)
			raw, err := encode(t, reg, bson.M{"v": tt.value})
			switch {
			case !tt.encode:
				wantUnregisteredError(t, err, typ)
			case err != nil || bson.Raw(raw).Lookup("v").StringValue() != "mine":
				t.Errorf("%s, %s: got %v, %v", name, way, bson.Raw(raw), err)
			}
			target := reflect.New(typ)
			err = bsoncodec.UnmarshalValue(reg, bson.RawValue{Type: bson.TypeNull}, target.Interface())
			switch {
			case !tt.decode:
				wantUnregisteredError(t, err, typ)
			case err != nil || target.Elem().Index(0).Uint() != 99:
				t.Errorf("%s, %s: got %v, %v", name, way, target.Elem(), err)
			}
		}
	}
}

// What a function of With looks up is what the registry does, also if the registry remembers it.
func TestLookupsBeforeBuildEnds(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		enc, err := reg.LookupEncoder(reflect.TypeFor[strangerID]())
		if err != nil {
			t.Fatal(err)
		}
		reg.RegisterKindEncoder(reflect.Array, enc)
	}))
	wantOctetsRefused[strangerID](t, reg)
}

// The driver's own codecs are no decision of the caller's, as a codec of structs is none.
func TestDriverCodecsThatAreRegisteredAgain(t *testing.T) {
	own := bson.NewRegistry()
	type kindOf struct {
		kind  reflect.Kind
		probe reflect.Type
	}
	again := func(reg *bson.Registry) {
		for _, k := range []kindOf{
			{reflect.Array, reflect.TypeFor[[3]bool]()}, {reflect.Slice, reflect.TypeFor[[]bool]()}, {reflect.Map, reflect.TypeFor[map[string]bool]()},
			{reflect.Struct, reflect.TypeFor[struct{ B bool }]()}, {reflect.Int64, reflect.TypeFor[int64]()}, {reflect.String, reflect.TypeFor[string]()},
		} {
			enc, err := own.LookupEncoder(k.probe)
			if err != nil {
				t.Fatal(err)
			}
			dec, err := own.LookupDecoder(k.probe)
			if err != nil {
				t.Fatal(err)
			}
			reg.RegisterKindEncoder(k.kind, enc)
			reg.RegisterKindDecoder(k.kind, dec)
		}
		enc, err := own.LookupEncoder(reflect.TypeFor[uuidrep.StandardUUID]())
		if err != nil {
			t.Fatal(err)
		}
		reg.RegisterInterfaceEncoder(reflect.TypeFor[bson.ValueMarshaler](), enc)
	}
	for _, r := range allRepresentations {
		reg := build(t, bsoncodec.NewRegistryBuilder(r).With(again))
		wantOctetsRefused[strangerID](t, reg)
		wantOctetsRefused[[16]byte](t, reg)
		_, err := encode(t, reg, bson.M{"v": promotedAddress{City: "x"}})
		wantPromotedError(t, err, reflect.TypeFor[promotedAddress](), "MarshalBSONValue", "StandardUUID", "without the field City:")
	}
}

// A type of RegisterBytesType is what the driver makes of it: binary subtype 0.
func TestRegisterBytesType(t *testing.T) {
	for _, r := range allRepresentations {
		for name, b := range map[string]*bsoncodec.RegistryBuilder{
			"alone":              bsoncodec.NewRegistryBuilder(r),
			"UnregisteredAsUUID": bsoncodec.NewRegistryBuilder(r).UnregisteredAsUUID(),
		} {
			reg := build(t, b.RegisterBytesType(reflect.TypeFor[strangerID]()).RegisterBytesType(reflect.TypeFor[strangerID]()))
			for _, doc := range strangers(strangerID(testUUID)) {
				want, err := bson.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				if raw := marshal(t, reg, doc); !bytes.Equal(raw, want) {
					t.Errorf("%s, %T: got %v, want %v", name, doc, raw, bson.Raw(want))
				}
			}
			var s struct{ V strangerID }
			unmarshal(t, reg, marshal(t, reg, bson.M{"v": strangerID(testUUID)}), &s)
			if s.V != strangerID(testUUID) {
				t.Errorf("got %v", s.V)
			}
			if err := decode(t, reg, marshal(t, reg, bson.M{"v": bson.Binary{Subtype: 4, Data: octetsStandard}}), &s); err == nil {
				t.Error("subtype 4 was decoded into plain bytes")
			}
			if name == "alone" {
				wantOctetsRefused[[16]byte](t, reg)
			}
		}
	}
}

// With UnregisteredAsUUID every type of kind [16]byte is a UUID, unless it has methods, a hook, a codec or
// RegisterBytesType.
func TestUnregisteredAsUUID(t *testing.T) {
	for _, tt := range table {
		reg := build(t, bsoncodec.NewRegistryBuilder(tt.rep).UnregisteredAsUUID().UnregisteredAsUUID())
		for _, doc := range strangers(strangerID(testUUID)) {
			if raw := marshal(t, reg, doc); !bytes.Contains(raw, append([]byte{16, 0, 0, 0, tt.subtype}, tt.octets...)) {
				t.Errorf("%T: got %v", doc, raw)
			}
		}
		type doc struct {
			V  strangerID
			P  *strangerID
			S  []strangerID
			A  [2][16]byte
			M  map[string]strangerID
			N  *strangerID
			K  map[strangerID]textStrangerID
			TK map[textStrangerID][16]byte
		}
		id := strangerID(testUUID)
		in := doc{id, &id, []strangerID{id, {}}, [2][16]byte{testUUID}, map[string]strangerID{"k": id}, nil,
			map[strangerID]textStrangerID{id: textStrangerID(id)}, map[textStrangerID][16]byte{textStrangerID(id): id}}
		var out doc
		raw := marshal(t, reg, in)
		unmarshal(t, reg, raw, &out)
		if !reflect.DeepEqual(in, out) {
			t.Errorf("%v: got %v, want %v", tt.rep, out, in)
		}
		wantStored(t, raw, tt.subtype, tt.octets, "k", testUUID.String())
		var e *uuidrep.SubtypeError
		if err := decode(t, reg, marshal(t, reg, bson.M{"v": bson.Binary{Data: octetsStandard}}), &out); !errors.As(err, &e) {
			t.Errorf("subtype 0: got %v", err)
		}
	}
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Unspecified).UnregisteredAsUUID())
	if _, err := encode(t, reg, bson.M{"v": strangerID{}}); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
}

// With UnregisteredAsBytes every type of kind [16]byte that is not registered is what the driver makes of it.
func TestUnregisteredAsBytes(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).UnregisteredAsBytes().UnregisteredAsBytes())
	for _, doc := range strangers(strangerID(testUUID)) {
		want, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if raw := marshal(t, reg, doc); !bytes.Equal(raw, want) {
			t.Errorf("%T: got %v, want %v", doc, raw, bson.Raw(want))
		}
	}
	var s struct{ V strangerID }
	unmarshal(t, reg, marshal(t, reg, bson.M{"v": strangerID(testUUID)}), &s)
	if s.V != strangerID(testUUID) {
		t.Errorf("got %v", s.V)
	}
	wantStored(t, marshal(t, reg, bson.M{"v": testUUID}), 3, octetsJava, "v")
}

// Types that are not registered are judged alike, whichever goroutine meets them first.
func TestUnregisteredConcurrently(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsUUID())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				raw, err := bsoncodec.Marshal(reg, struct{ A, B strangerID }{strangerID(testUUID), strangerID(testUUID)})
				var s struct{ A, B textStrangerID }
				if err == nil {
					err = bsoncodec.Unmarshal(reg, raw, &s)
				}
				if err != nil || s.A != s.B || s.A != textStrangerID(testUUID) {
					t.Errorf("got %v, %v", s, err)
				}
			}
		})
	}
	wg.Wait()
}

// octetID is an array of a defined byte type, which the driver alone takes for an array of numbers.
type octetID [16]octet

type octet byte

// Such a type can be registered, and is a UUID in every place.
func TestArraysOfDefinedBytesCanBeRegistered(t *testing.T) {
	var id octetID
	for i, b := range testUUID {
		id[i] = octet(b)
	}
	type doc struct {
		V octetID
		P *octetID
		S []octetID
		A [1]octetID
		K map[octetID]octetID
	}
	in := doc{id, &id, []octetID{id, {}}, [1]octetID{id}, map[octetID]octetID{id: id}}
	for _, tt := range table {
		b := func() *bsoncodec.RegistryBuilder {
			return bsoncodec.NewRegistryBuilder(tt.rep).SetImplicitType(reflect.TypeFor[octetID]())
		}
		for _, reg := range []*bson.Registry{build(t, b()), build(t, b().EncodeAsString()), build(t, b().EncodeZeroAsNull())} {
			for _, v := range []any{in, &in} {
				raw := marshal(t, reg, v)
				if raw.Lookup("v").Type == bson.TypeBinary {
					wantStored(t, raw, tt.subtype, tt.octets, "k", testUUID.String())
				}
				var out doc
				unmarshal(t, reg, raw, &out)
				if !reflect.DeepEqual(in, out) {
					t.Errorf("%v: got %v, want %v", tt.rep, out, in)
				}
			}
		}
		var m bson.M
		unmarshal(t, build(t, b()), marshal(t, build(t, b()), bson.M{"v": testUUID}), &m)
		if m["v"] != id {
			t.Errorf("%v: got %#v", tt.rep, m)
		}
	}
	_, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterBytesType(reflect.TypeFor[octetID]()).Build()
	if err == nil || !strings.Contains(err.Error(), "octetID") {
		t.Errorf("got %v", err)
	}
}

// The error says in which direction a type is refused.
func TestRefusalsNameTheDirection(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, v := range []any{struct{ V strangerID }{}, struct{ V map[strangerID]int32 }{map[strangerID]int32{{}: 1}}, struct{ V embeddedID }{}} {
		if _, err := encode(t, reg, v); err == nil || !strings.Contains(err.Error(), "bsoncodec: cannot encode ") {
			t.Errorf("%T: got %v", v, err)
		}
		raw := marshal(t, bson.NewRegistry(), bson.D{{Key: "v", Value: bson.D{{Key: "k", Value: 1}}}})
		if err := decode(t, reg, raw, reflect.New(reflect.TypeOf(v)).Interface()); err == nil || !strings.Contains(err.Error(), "bsoncodec: cannot decode a value into ") {
			t.Errorf("%T: got %v", v, err)
		}
	}
}

func (u textStrangerID) MarshalText() ([]byte, error) { return uuid.UUID(u).MarshalText() }

func (u *textStrangerID) UnmarshalText(text []byte) error { return (*uuid.UUID)(u).UnmarshalText(text) }

func (u methodID) MarshalBSONValue() (byte, []byte, error) {
	return uuidrep.StandardUUID{UUID: uuid.UUID(u)}.MarshalBSONValue()
}

func (u *methodID) UnmarshalBSONValue(typ byte, data []byte) error {
	var s uuidrep.StandardUUID
	err := s.UnmarshalBSONValue(typ, data)
	*u = methodID(s.UUID)
	return err
}

func (u encodeOnlyID) MarshalBSONValue() (byte, []byte, error) { return methodID(u).MarshalBSONValue() }

func (u *decodeOnlyID) UnmarshalBSONValue(typ byte, data []byte) error {
	return (*methodID)(u).UnmarshalBSONValue(typ, data)
}

func (u *pointerID) MarshalBSONValue() (byte, []byte, error) { return methodID(*u).MarshalBSONValue() }

// Errors of the driver's codec for arrays are returned.
func TestErrorsOfPlainBytes(t *testing.T) {
	for _, b := range []*bsoncodec.RegistryBuilder{
		bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsBytes(), bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterBytesType(reflect.TypeFor[strangerID]()),
	} {
		for mode, reg := range withTwin(build(t, b)) {
			for n := range 3 { // of the document, the element and the value
				if err := encodeWithWriter(reg, bson.D{{Key: "v", Value: strangerID{}}}, &keepingWriter{err: errBroken, left: n}); !errors.Is(err, errBroken) {
					t.Errorf("%s: call %d of the writer failed, got %v", mode, n, err)
				}
			}
			for _, v := range []any{"text", bson.Binary{Subtype: 4, Data: octetsStandard}, bson.Binary{Data: octetsStandard[:15]}} {
				raw := marshal(t, reg, bson.D{{Key: "v", Value: v}})
				want := bson.Unmarshal(raw, new(struct{ V [16]byte }))
				for _, err := range []error{decode(t, reg, raw, new(struct{ V strangerID })), decodeWith(reg, raw, new(struct{ V strangerID }))} {
					if (err == nil) != (want == nil) {
						t.Errorf("%s: %v: got %v, the driver %v", mode, v, err, want)
					}
				}
			}
		}
	}
}
