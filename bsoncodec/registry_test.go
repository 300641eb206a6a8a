package bsoncodec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
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

func TestApplyTo(t *testing.T) {
	b := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy)
	reg := bson.NewMgoRegistry()
	if err := b.ApplyTo(reg); err != nil {
		t.Fatal(err)
	}
	raw := marshal(t, reg, bson.D{{Key: "u", Value: testUUID}, {Key: "nil", Value: []uuid.UUID(nil)}})
	checkStored(t, raw, 3, octetsJava, "u")
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
	checkStored(t, buf.Bytes(), 0, octetsStandard, "u")
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
	checkStored(t, raw, 4, octetsStandard, "u")
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

// Binary values that are no UUIDs go where the caller's type map sends them.
func TestWithTypeMapEntryForBinary(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		reg.RegisterTypeMapEntry(bson.TypeBinary, reflect.TypeFor[[]byte]())
	}))
	raw := marshal(t, reg, bson.D{{Key: "u", Value: testUUID}, {Key: "b", Value: []byte{1, 2}}, {Key: "a", Value: bson.A{[]byte{}}}})
	var d bson.D
	unmarshal(t, reg, raw, &d)
	if want := (bson.D{{Key: "u", Value: testUUID}, {Key: "b", Value: []byte{1, 2}}, {Key: "a", Value: bson.A{[]byte{}}}}); !reflect.DeepEqual(d, want) {
		t.Errorf("got %#v", d)
	}
	if err := decode(t, reg, marshal(t, reg, bson.D{{Key: "b", Value: bson.Binary{Subtype: 5, Data: []byte{1}}}}), &d); err == nil {
		t.Error("the driver decodes subtype 5 to no []byte, this did")
	}
}

// fewOctets is an interface type whose decoder leaves it nil for more than two octets.
type fewOctets any

// Binary values that are no UUIDs become what the driver makes of them, whatever type the caller's type map names and
// whatever decoder that has.
func TestOtherBinariesAreTheDrivers(t *testing.T) {
	entry := func(typ reflect.Type) func(*bson.Registry) {
		return func(reg *bson.Registry) { reg.RegisterTypeMapEntry(bson.TypeBinary, typ) }
	}
	for name, register := range map[string]func(*bson.Registry){
		"[]byte": entry(reflect.TypeFor[[]byte]()), "RawValue": entry(reflect.TypeFor[bson.RawValue]()),
		"*Binary": entry(reflect.TypeFor[*bson.Binary]()), "ValueUnmarshaler": entry(reflect.TypeFor[uuidrep.JavaLegacyUUID]()),
		"an interface": func(reg *bson.Registry) {
			entry(reflect.TypeFor[fewOctets]())(reg)
			reg.RegisterTypeDecoder(reflect.TypeFor[fewOctets](), bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
				octets, _, err := vr.ReadBinary()
				if err == nil && len(octets) <= 2 {
					v.Set(reflect.ValueOf(octets))
				}
				return err
			}))
		},
		"a decoder for Binary": func(reg *bson.Registry) {
			reg.RegisterTypeDecoder(reflect.TypeFor[bson.Binary](), bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
				octets, subtype, err := vr.ReadBinary()
				v.Set(reflect.ValueOf(bson.Binary{Subtype: subtype, Data: append(octets, 0xFF)}))
				return err
			}))
		},
	} {
		reg, stock := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(register)), bson.NewRegistry()
		register(stock)
		for _, subtype := range []byte{0, 1, 2, 3, 5, 0x80} {
			for _, n := range []int{0, 1, 4, 5, 16} {
				value := append(binary.LittleEndian.AppendUint32(nil, uint32(n)), subtype)
				if value = append(value, make([]byte, n)...); subtype == 2 && n > 4 {
					value[5] = byte(n - 4) // subtype 2 has a length of its own; shorter ones, that have none, are read too
				}
				raw := marshal(t, stock, bson.D{{Key: "v", Value: bson.A{bson.RawValue{Type: bson.TypeBinary, Value: value}}}})
				raw = marshal(t, stock, bson.D{{Key: "v", Value: bson.RawValue{Type: bson.TypeBinary, Value: value}}, {Key: "d", Value: raw}})
				for _, asSlice := range []bool{false, true} {
					decode := func(reg *bson.Registry, v any) error {
						dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
						dec.SetRegistry(reg)
						if asSlice {
							dec.BinaryAsSlice()
						}
						return dec.Decode(v)
					}
					for _, target := range []func() any{func() any { return new(bson.D) }, func() any { return new(bson.M) }} {
						got, want := target(), target()
						err, wantErr := decode(reg, got), decode(stock, want)
						if !reflect.DeepEqual(got, want) || !sameText(err, wantErr) {
							t.Errorf("%s, %X in %T, BinaryAsSlice %v: got %v, %v; the driver %v, %v", name, value, got, asSlice, got, err, want, wantErr)
						}
					}
				}
			}
		}
	}
}

// sameText reports whether err has the text of the driver's error want. It may be longer if a UUID was decoded into text
// or bytes: what to do follows then.
func sameText(err, want error) bool {
	if want != nil && err != nil && strings.Contains(want.Error(), "subtype 0x00 or 0x02") {
		rest, ok := strings.CutPrefix(err.Error(), want.Error())
		return ok && (rest == "" || strings.HasPrefix(rest, "; binary subtypes 3 and 4 are UUIDs: "))
	}
	return fmt.Sprint(err) == fmt.Sprint(want)
}

// What is no UUID is decoded as the driver decodes it, under every option of its decoder.
func TestDecoderOptionsKeepWorking(t *testing.T) {
	doc := bson.D{
		{Key: "d", Value: 1.5}, {Key: "s", Value: "x"}, {Key: "doc", Value: bson.D{{Key: "b", Value: bson.Binary{Data: []byte{1, 2}}}, {Key: "e", Value: bson.D{}}}},
		{Key: "a", Value: bson.A{int32(1), bson.A{bson.Binary{Subtype: 2, Data: []byte{3}}}, bson.D{{Key: "k", Value: int64(2)}}, nil}},
		{Key: "b0", Value: bson.Binary{Data: octetsStandard}}, {Key: "b1", Value: bson.Binary{Subtype: 1, Data: []byte{9}}},
		{Key: "b2", Value: bson.Binary{Subtype: 2, Data: octetsStandard}}, {Key: "b80", Value: bson.Binary{Subtype: 0x80, Data: octetsStandard}},
		{Key: "empty0", Value: bson.Binary{}}, {Key: "empty2", Value: bson.Binary{Subtype: 2}}, {Key: "vector", Value: bson.Binary{Subtype: 9, Data: []byte{3, 0, 1}}},
		{Key: "undefined", Value: bson.Undefined{}}, {Key: "oid", Value: bson.ObjectID{1, 2, 3}}, {Key: "bool", Value: true},
		{Key: "date", Value: bson.DateTime(1e12)}, {Key: "null", Value: nil}, {Key: "regex", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "ptr", Value: bson.DBPointer{DB: "x"}}, {Key: "js", Value: bson.JavaScript("1")}, {Key: "sym", Value: bson.Symbol("y")},
		{Key: "cws", Value: bson.CodeWithScope{Code: "1", Scope: bson.D{{Key: "b", Value: bson.Binary{Data: []byte{7}}}}}}, {Key: "i", Value: int32(1)}, {Key: "ts", Value: bson.Timestamp{T: 1, I: 2}},
		{Key: "l", Value: int64(3)}, {Key: "dec", Value: bson.NewDecimal128(1, 2)}, {Key: "min", Value: bson.MinKey{}}, {Key: "max", Value: bson.MaxKey{}},
	}
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	options := []func(*bson.Decoder){
		(*bson.Decoder).BinaryAsSlice, (*bson.Decoder).DefaultDocumentM, (*bson.Decoder).DefaultDocumentMap, (*bson.Decoder).ObjectIDAsHexString,
		(*bson.Decoder).UseJSONStructTags, (*bson.Decoder).UseLocalTimeZone, (*bson.Decoder).ZeroMaps, (*bson.Decoder).ZeroStructs, (*bson.Decoder).AllowTruncatingDoubles,
	}
	type anys struct {
		D, Doc, A, B0, B2, Empty0 any
		Oid                       string `json:"oid"`
		Date                      time.Time
		L                         int
		Rest                      map[string]any `bson:",inline"`
	}
	targets := map[string]func() any{
		"bson.D": func() any { return new(bson.D) }, "bson.M": func() any { return new(bson.M) }, "any": func() any { return new(any) },
		"struct": func() any { return new(anys) },
		"full D": func() any {
			return &bson.D{{Key: "old", Value: bson.M{"x": 1}}, {Key: "older", Value: 2}, {Key: "oldest", Value: new(int)}}
		},
		"full M": func() any { return &bson.M{"old": 1, "b0": new(bson.Binary), "d": 1} },
		"filled": func() any { return &anys{D: new(float64), B0: new(bson.Binary), A: &[]any{}, B2: 1} },
		"slots":  func() any { return &struct{ A []any }{[]any{new(int), bson.A{}, bson.M{}, 1, 2}} },
		"raw":    func() any { return new(bson.Raw) },
	}
	stock := bson.NewRegistry()
	for _, r := range allRepresentations {
		reg := registry(t, r)
		for set := range 1 << len(options) {
			if n := bits.OnesCount(uint(set)); n < len(options) && (n > 2 || n > 1 && testing.Short()) {
				continue
			}
			for name, target := range targets {
				decode := func(reg *bson.Registry) (v any, err error) {
					v = target()
					dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
					dec.SetRegistry(reg)
					for i, option := range options {
						if set&(1<<i) != 0 {
							option(dec)
						}
					}
					return v, dec.Decode(v)
				}
				got, err := decode(reg)
				want, wantErr := decode(stock)
				if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) {
					t.Fatalf("%v, %s, options %b:\ngot  %v, %v\nwant %v, %v", r, name, set, got, err, want, wantErr)
				}
			}
		}
	}
}

// The order of UUIDs and other binaries in a document does not matter to BinaryAsSlice.
func TestBinaryAsSliceBesideUUIDs(t *testing.T) {
	reg := registry(t, uuidrep.JavaLegacy)
	raw := marshal(t, reg, bson.D{{Key: "u", Value: testUUID}, {Key: "b", Value: []byte{1}}, {Key: "s", Value: bson.Binary{Subtype: 4, Data: octetsStandard}}, {Key: "b2", Value: bson.Binary{Subtype: 2, Data: []byte{2}}}})
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	dec.SetRegistry(reg)
	dec.BinaryAsSlice()
	var d bson.D
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	want := bson.D{{Key: "u", Value: testUUID}, {Key: "b", Value: []byte{1}}, {Key: "s", Value: bson.Binary{Subtype: 4, Data: octetsStandard}}, {Key: "b2", Value: []byte{2}}}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got %#v, want %#v", d, want)
	}
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
