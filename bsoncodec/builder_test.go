package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Build returns an error for each mistake that the methods of the builder document.
func TestBuildRefuses(t *testing.T) {
	b := bsoncodec.NewRegistryBuilder
	for name, tt := range map[string]struct {
		builder *bsoncodec.RegistryBuilder
		want    string
	}{
		"two orders for subtype 3":       {b(uuidrep.JavaLegacy).AlsoDecode(uuidrep.CSharpLegacy), "subtype 3"},
		"two more orders for subtype 3":  {b(uuidrep.Standard).AlsoDecode(uuidrep.CSharpLegacy).AlsoDecode(uuidrep.JavaLegacy), "subtype 3"},
		"its own representation":         {b(uuidrep.Standard).AlsoDecode(uuidrep.Standard), "own representation"},
		"its own legacy representation":  {b(uuidrep.JavaLegacy).AlsoDecode(uuidrep.JavaLegacy), "own representation"},
		"unspecified also":               {b(uuidrep.Standard).AlsoDecode(uuidrep.Unspecified), "unspecified"},
		"also while unspecified":         {b(uuidrep.Unspecified).AlsoDecode(uuidrep.Standard), "unspecified"},
		"generic while unspecified":      {b(uuidrep.Unspecified).AlsoDecodeSubtype0(), "unspecified"},
		"string while unspecified":       {b(uuidrep.Unspecified).AlsoDecodeString(), "unspecified"},
		"an unknown representation":      {b(uuidrep.Representation(9)), "Representation(9)"},
		"an unknown representation also": {b(uuidrep.Standard).AlsoDecode(9), "Representation(9)"},
		"a string type":                  {b(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[string]()), "string"},
		"a pointer type":                 {b(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[*uuid.UUID]()), "*uuid.UUID"},
		"15 octets":                      {b(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[[15]byte]()), "[15]uint8"},
		"16 other things":                {b(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[[16]int8]()), "[16]int8"},
		"no type":                        {b(uuidrep.Standard).RegisterUUIDType(nil), "nil"},
		"an implicit slice":              {b(uuidrep.Standard).SetImplicitType(reflect.TypeFor[[]byte]()), "[]uint8"},
	} {
		reg, err := tt.builder.Build()
		if err == nil || reg != nil || !strings.HasPrefix(err.Error(), "bsoncodec: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := b(uuidrep.Unspecified).AlsoDecodeString().Build(); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v, want ErrUnspecified", err)
	}
	_, err := b(uuidrep.Standard).AlsoDecode(uuidrep.Standard).RegisterUUIDType(nil).Build()
	if err == nil || !strings.Contains(err.Error(), "own representation") || !strings.Contains(err.Error(), "nil") {
		t.Errorf("one of two mistakes is not reported: %v", err)
	}
}

// Two methods of the builder that contradict each other are an error of Build, in any order.
func TestBuildRefusesContradictions(t *testing.T) {
	b := func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }
	stranger := reflect.TypeFor[strangerID]()
	for want, tt := range map[string]*bsoncodec.RegistryBuilder{
		"contradict":            b().UnregisteredAsBytes().UnregisteredAsUUID(),
		"and as plain bytes":    b().RegisterBytesType(stranger).RegisterUUIDType(stranger),
		"uuid.UUID is reg":      b().RegisterBytesType(reflect.TypeFor[uuid.UUID]()),
		"RegisterBytesType: it": b().RegisterBytesType(nil),
		"[]uint8 cannot":        b().RegisterBytesType(reflect.TypeFor[[]byte]()),
		"[15]uint8 cannot":      b().RegisterBytesType(reflect.TypeFor[[15]byte]()),
		"*bsoncodec_test.stran": b().RegisterBytesType(reflect.TypeFor[*strangerID]()),
	} {
		reg, err := tt.Build()
		if reg != nil || err == nil || !strings.HasPrefix(err.Error(), "bsoncodec: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
}

// A registry that was built refuses another builder as such, and not as one within a function of With.
func TestBuiltTwice(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for range 2 {
		err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).ApplyTo(reg)
		if err == nil || !strings.Contains(err.Error(), "already: build another") {
			t.Errorf("got %v", err)
		}
	}
}

// One registry has one representation.
func TestWithAnotherBuilder(t *testing.T) {
	other := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy)
	var nested error
	b := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) { nested = other.ApplyTo(reg) })
	if _, err := b.Build(); err == nil || nested == nil || !strings.Contains(err.Error(), "With") {
		t.Errorf("Build: %v; ApplyTo within it: %v", err, nested)
	}
	self := bsoncodec.NewRegistryBuilder(uuidrep.Standard)
	self.With(func(reg *bson.Registry) { nested = self.ApplyTo(reg) })
	if _, err := self.Build(); err == nil || nested == nil {
		t.Errorf("Build: %v; ApplyTo of the same builder: %v", err, nested)
	}
	if _, err := other.Build(); err != nil {
		t.Errorf("the other builder is spoilt: %v", err)
	}
	for _, f := range []func(*bson.Registry){nil} {
		if _, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(f).Build(); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("With(nil): got %v", err)
		}
	}
}

// A type that is registered twice has one codec.
func TestRegisterUUIDTypeTwice(t *testing.T) {
	tOrder := reflect.TypeFor[orderID]()
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).RegisterUUIDType(tOrder).SetImplicitType(tOrder).RegisterUUIDType(reflect.TypeFor[uuid.UUID]()))
	raw := marshal(t, reg, bson.D{{Key: "u", Value: orderID(testUUID)}, {Key: "p", Value: &testUUID}, {Key: "s", Value: []orderID{orderID(testUUID)}}})
	var d bson.D
	unmarshal(t, reg, raw, &d)
	want := bson.D{{Key: "u", Value: orderID(testUUID)}, {Key: "p", Value: orderID(testUUID)}, {Key: "s", Value: bson.A{orderID(testUUID)}}}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got %v, want %v", d, want)
	}
}

// ApplyTo registers the codecs for UUIDs on a registry of the caller, whose other settings stay, and on each
// registry once.
func TestApplyTo(t *testing.T) {
	b := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy)
	reg := bson.NewMgoRegistry()
	if err := b.ApplyTo(reg); err != nil {
		t.Fatal(err)
	}
	raw := marshal(t, reg, bson.D{{Key: "u", Value: testUUID}, {Key: "nil", Value: []uuid.UUID(nil)}})
	wantStored(t, raw, 3, octetsJava, "u")
	if v := raw.Lookup("nil"); v.Type != bson.TypeArray {
		t.Errorf("mgo writes a nil slice as an empty array, got %v", v)
	}
	// mgo decodes documents to maps and generic binaries to slices.
	var m map[string]any
	unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "d", Value: bson.D{{Key: "u", Value: testUUID}, {Key: "b", Value: []byte{1}}}}}), &m)
	if want := any(bson.M{"u": testUUID, "b": []byte{1}}); !reflect.DeepEqual(m["d"], want) {
		t.Errorf("got %#v, want %#v", m["d"], want)
	}

	if err := b.ApplyTo(reg); err == nil {
		t.Error("applied twice")
	}
	if err := b.ApplyTo(nil); !errors.Is(err, bson.ErrNilRegistry) {
		t.Errorf("nil registry: %v", err)
	}
	plain := bson.NewRegistry()
	if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecode(9).ApplyTo(plain); err == nil {
		t.Error("a builder with a mistake was applied")
	}
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(plain)
	if err := enc.Encode(bson.M{"u": testUUID}); err != nil {
		t.Fatal(err)
	}
	wantStored(t, buf.Bytes(), 0, octetsStandard, "u")
}

// What the caller registers stays in force around the UUIDs.
func TestWith(t *testing.T) {
	type celsius float64
	var decodedD, decodedSlice, decodedAny, encodedMap int
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[orderID]()).
		With(func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[celsius](), bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
				return vw.WriteString("warm")
			}))
			reg.RegisterTypeMapEntry(bson.TypeDateTime, reflect.TypeFor[time.Time]())
		}).
		With(func(reg *bson.Registry) {
			for typ, n := range map[reflect.Type]*int{reflect.TypeFor[bson.D](): &decodedD, reflect.TypeFor[[]uuid.UUID](): &decodedSlice, reflect.TypeFor[any](): &decodedAny} {
				dec, err := reg.LookupDecoder(typ)
				if err != nil {
					t.Fatal(err)
				}
				reg.RegisterTypeDecoder(typ, bson.ValueDecoderFunc(func(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
					*n++
					return dec.DecodeValue(dc, vr, v)
				}))
			}
			enc, err := reg.LookupEncoder(reflect.TypeFor[map[string]struct{}]()) // which the registry remembers
			if err != nil {
				t.Fatal(err)
			}
			reg.RegisterKindEncoder(reflect.Map, bson.ValueEncoderFunc(func(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
				encodedMap++
				return enc.EncodeValue(ec, vw, v)
			}))
			// A codec for a UUID type itself is replaced.
			reg.RegisterTypeEncoder(reflect.TypeFor[uuid.UUID](), bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
				return vw.WriteString("mine")
			}))
		}))
	twins.Delete(reg) // one way, and one call of each codec
	now := time.UnixMilli(1700000000000).UTC()
	raw := marshal(t, reg, bson.D{{Key: "c", Value: celsius(30)}, {Key: "t", Value: now}, {Key: "u", Value: testUUID}, {Key: "s", Value: []uuid.UUID{testUUID}}, {Key: "m", Value: map[string]int{}}})
	wantStored(t, raw, 4, octetsStandard, "u")
	if raw.Lookup("c").StringValue() != "warm" || encodedMap != 1 {
		t.Errorf("encoded %v, %d maps", raw, encodedMap)
	}
	var d bson.D
	unmarshal(t, reg, raw, &d)
	if !reflect.DeepEqual(d[1].Value, now) || d[2].Value != testUUID || decodedD == 0 || decodedAny != 6 {
		t.Errorf("decoded %v; %d documents and %d values with the caller's decoders", d, decodedD, decodedAny)
	}
	var s struct{ S []uuid.UUID }
	unmarshal(t, reg, raw, &s)
	if len(s.S) != 1 || s.S[0] != testUUID || decodedSlice != 1 {
		t.Errorf("decoded %v, %d slices with the caller's decoder", s, decodedSlice)
	}
}

// With EncodeAsString UUIDs are written as text, in every representation, and text is read.
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

// With EncodeZeroAsNull the zero UUID is null and reads back as such, and a valid zero UUID of a type that
// can be null is a UUID.
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
	wantStored(t, marshal(t, registry(t, uuidrep.Standard), bson.M{"v": uuid.Nil}), 4, make([]byte, 16), "v")
}

// A registry serves many goroutines from its first use on, two registries live side by side.
func TestConcurrentUse(t *testing.T) {
	regs := map[uuidrep.Representation]*bson.Registry{uuidrep.Standard: registry(t, uuidrep.Standard), uuidrep.JavaLegacy: registry(t, uuidrep.JavaLegacy)}
	in := newEverywhere()
	var wg sync.WaitGroup
	for i := range 16 {
		rep := []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy}[i%2]
		wg.Go(func() {
			for range 50 {
				raw, err := bsoncodec.Marshal(regs[rep], &in)
				if err != nil {
					t.Error(err)
					return
				}
				b, _ := uuidrep.NewBinaryWithRepresentation(testUUID, rep)
				if _, octets := bson.Raw(raw).Lookup("field").Binary(); !bytes.Equal(octets, b.Data) {
					t.Errorf("%v: wrote %X", rep, octets)
				}
				var out everywhere
				if err := bsoncodec.Unmarshal(regs[rep], raw, &out); err != nil || !reflect.DeepEqual(in, out) {
					t.Errorf("%v: got %v, %v", rep, out, err)
				}
			}
		})
	}
	wg.Wait()
}
