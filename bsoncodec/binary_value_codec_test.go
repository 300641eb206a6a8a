package bsoncodec_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

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

// An any into which a registry decodes a value of its own reports the errors of doing so, and allocates little for a
// length that is wrong.
func TestMalformedIntoAny(t *testing.T) {
	two := func() *bsoncodec.RegistryBuilder {
		return standard().With(func(reg *bson.Registry) {
			reg.RegisterTypeMapEntry(0, reflect.TypeFor[map[string]any]())
			reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, reflect.TypeFor[bson.M]())
		})
	}
	for mode, reg := range modes(t, two) {
		for _, text := range []string{"\x02a\x00\xff\xff\xff\x3fx\x00", "\x05a\x00\xff\xff\xff\x3f\x00x", "\x02a\x00\x09\x00\x00\x00x\x00", "\x13a\x00"} {
			data := append([]byte{byte(len(text) + 5), 0, 0, 0}, text...)
			data = append(data, 0)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := bsoncodec.Unmarshal(reg, data, new(any))
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 64<<20 {
				t.Errorf("%s, %q: got %v and allocated %d bytes", mode, data, err, n)
			}
		}
	}
	// A length beyond the end is not allocated, and is an error, in what the driver cannot skip.
	for n, within := range map[int32]string{0x3fffffff: "s: string", 5: "s: string, a byte too long"} {
		text := "\x03d\x00\xf0\xff\xff\xff\x02s\x00" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) + "x\x00\x00"
		data := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text)+5)), text+"\x00"...)
		for mode, reg := range modes(t, standard) {
			for _, v := range []any{new(struct{ D struct{ S string } }), new(bson.D)} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := bsoncodec.Unmarshal(reg, data, v)
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), "a length in it is beyond its end") || n > 64<<20 {
					t.Errorf("%s, %s into a %T: got %v and allocated %d bytes", mode, within, v, err, n)
				}
			}
		}
	}
	numbers := build(t, standard().With(func(reg *bson.Registry) { reg.RegisterTypeMapEntry(bson.TypeString, reflect.TypeFor[int]()) }))
	if v, err := bsoncodec.DecodeNative(numbers, "x"); err == nil || v != nil {
		t.Errorf("text into an int: got %v, %v", v, err)
	}
	_, want := bsoncodec.MarshalValue(numbers, make(chan int))
	if _, err := bsoncodec.DecodeNative(numbers, make(chan int)); want == nil || fmt.Sprint(err) != fmt.Sprint(want) {
		t.Errorf("a channel: got %v, want %v", err, want)
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

type lateBinary struct{ bson.RawValue }

func (b *lateBinary) UnmarshalBSONValue(t byte, data []byte) error {
	b.RawValue = bson.RawValue{Type: bson.Type(t), Value: append([]byte(nil), data...)}
	return nil
}

// What any receives follows what is registered for any, for binary values and in the type map after
// Build, in bson.D as in all other places.
func TestDecodersOfAnyAfterBuild(t *testing.T) {
	marked := uuid.UUID{9}
	for name, tt := range map[string]struct {
		register func(*bson.Registry)
		want     func(bson.Binary) any
	}{
		"type map": {
			func(reg *bson.Registry) { reg.RegisterTypeMapEntry(bson.TypeBinary, reflect.TypeFor[lateBinary]()) },
			func(b bson.Binary) any {
				typ, data, err := bson.MarshalValue(b)
				if err != nil {
					t.Fatal(err)
				}
				return lateBinary{bson.RawValue{Type: typ, Value: data}}
			},
		},
		"any": {
			func(reg *bson.Registry) {
				reg.RegisterTypeDecoder(reflect.TypeFor[any](), bson.ValueDecoderFunc(
					func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
						val.Set(reflect.ValueOf(marked))
						return vr.Skip()
					}))
			},
			func(bson.Binary) any { return marked },
		},
		"bson.Binary": {
			func(reg *bson.Registry) {
				reg.RegisterTypeDecoder(reflect.TypeFor[bson.Binary](), bson.ValueDecoderFunc(
					func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
						val.Set(reflect.ValueOf(bson.Binary{Subtype: 0x80}))
						return vr.Skip()
					}))
			},
			func(b bson.Binary) any {
				if b.Subtype == bson.TypeBinaryUUID {
					return testUUID
				}
				return bson.Binary{Subtype: 0x80}
			},
		},
	} {
		for _, b := range []bson.Binary{{Subtype: 4, Data: octetsStandard}, {Subtype: 5, Data: []byte{1}}} {
			reg := registry(t, uuidrep.Standard)
			register(reg, tt.register)
			raw := marshal(t, bson.NewRegistry(), bson.D{{Key: "v", Value: b}})
			want := tt.want(b)
			var d bson.D
			unmarshal(t, reg, raw, &d)
			var m bson.M
			unmarshal(t, reg, raw, &m)
			var s struct{ V any }
			unmarshal(t, reg, raw, &s)
			if !reflect.DeepEqual(d, bson.D{{Key: "v", Value: want}}) || !reflect.DeepEqual(m["v"], want) || !reflect.DeepEqual(s.V, want) {
				t.Errorf("%s, subtype %d: got %v in bson.D, %v in bson.M, %v in any; want %v", name, b.Subtype, d, m["v"], s.V, want)
			}
		}
	}
}
