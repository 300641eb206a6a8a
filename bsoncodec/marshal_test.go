package bsoncodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type selfMarshaled struct{ doc bson.Raw }

// With a plain registry, these functions are the driver's own.
func TestMarshalIsTheDrivers(t *testing.T) {
	reg := bson.NewRegistry()
	type doc struct {
		A int
		B string `bson:",omitempty"`
	}
	var nilD bson.D
	for _, v := range []any{
		doc{A: 1}, &doc{2, "x"}, bson.D{}, bson.D{{Key: "a", Value: bson.A{1, nil}}}, bson.M{"a": 1}, map[string]int{"a": 1}, nilD, (*doc)(nil),
		nil, 1, "x", []int{1}, bson.Raw{5, 0, 0, 0, 0}, bson.Raw{5, 0}, selfMarshaled{bson.Raw{5, 0, 0, 0, 0}}, make(chan int), bson.D{{Key: "a\x00", Value: 1}},
	} {
		got, err := encode(t, reg, v)
		want, wantErr := bson.Marshal(v)
		if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("Marshal(%#v): got %X, %v; the driver %X, %v", v, got, err, want, wantErr)
		}
		for _, canonical := range []bool{true, false} {
			got, err := bsoncodec.MarshalExtJSON(reg, v, canonical, true)
			want, wantErr := bson.MarshalExtJSON(v, canonical, true)
			if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("MarshalExtJSON(%#v): got %s, %v; the driver %s, %v", v, got, err, want, wantErr)
			}
		}
		rv, err := bsoncodec.MarshalValue(reg, v)
		typ, data, wantErr := bson.MarshalValue(v)
		if v == nil { // the driver has no encoder for it
			typ, data, wantErr = bson.TypeNull, nil, nil
		}
		if (err == nil) != (wantErr == nil) || (err == nil && (rv.Type != typ || !bytes.Equal(rv.Value, data))) {
			t.Errorf("MarshalValue(%#v): got %v, %v; the driver %v %X, %v", v, rv, err, typ, data, wantErr)
		}
	}
}

// With a registry of the driver, Unmarshal has the results and the errors of bson.Unmarshal.
func TestUnmarshalIsTheDrivers(t *testing.T) {
	reg := bson.NewRegistry()
	whole, err := bson.Marshal(bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: bson.D{{Key: "c", Value: "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	docs := [][]byte{whole, {5, 0, 0, 0, 0}, nil, {5}, {5, 0, 0, 0}, {6, 0, 0, 0, 0}, whole[:len(whole)-1], append(bytes.Clone(whole), 0), {0xFF, 0xFF, 0xFF, 0xFF, 0}, {4, 0, 0, 0}}
	type doc struct {
		A int
		B struct{ C string }
	}
	for _, data := range docs {
		for _, target := range []func() any{
			func() any { return new(doc) }, func() any { return new(bson.D) }, func() any { return new(bson.M) }, func() any { return bson.M{} },
			func() any { return map[string]any{"old": 1} }, func() any { return new(any) }, func() any { return new(bson.Raw) },
			func() any { return new(selfMarshaled) }, func() any { return doc{} }, func() any { return nil }, func() any { return (*doc)(nil) },
			func() any { return bson.M(nil) }, func() any { return new(*doc) }, func() any { return new(int) },
		} {
			got, want := target(), target()
			err, wantErr := decode(t, reg, data, got), bson.Unmarshal(data, want)
			if (err == nil) != (wantErr == nil) || (err == nil && !reflect.DeepEqual(got, want)) {
				t.Errorf("Unmarshal(%X, %T): got %v, %v; the driver %v, %v", data, got, got, err, want, wantErr)
			}
			if errors.Is(wantErr, bson.ErrDecodeToNil) && len(data) > 4 && data[0] == byte(len(data)) && !errors.Is(err, bson.ErrDecodeToNil) {
				t.Errorf("Unmarshal(%X, %T): got %v", data, got, err)
			}
		}
	}
}

// both keeps which of its methods decoded it.
type both struct{ by string }

// What the driver does at the top of a document alone: the document's own method comes before all codecs, and the type
// map has an entry for no BSON type.
func TestUnmarshalAtTheTop(t *testing.T) {
	tM, tMap := reflect.TypeFor[bson.M](), reflect.TypeFor[map[string]any]()
	raw, err := bson.Marshal(bson.D{{Key: "d", Value: bson.D{{Key: "k", Value: "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, register := range map[string]func(*bson.Registry){
		"plain":    func(*bson.Registry) {},
		"embedded": func(reg *bson.Registry) { reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, tM) },
		"top":      func(reg *bson.Registry) { reg.RegisterTypeMapEntry(0, tM) },
		"two": func(reg *bson.Registry) {
			reg.RegisterTypeMapEntry(0, tMap)
			reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, tM)
		},
		"own decoder": func(reg *bson.Registry) {
			reg.RegisterTypeDecoder(reflect.TypeFor[both](), bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
				v.Set(reflect.ValueOf(both{"a decoder"}))
				return vr.Skip()
			}))
		},
	} {
		reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(register))
		for _, target := range []func() any{
			func() any { return new(any) }, func() any { return new(bson.D) }, func() any { return new(bson.M) }, func() any { return new(both) },
		} {
			got, want := target(), target()
			err, wantErr := decode(t, reg, raw, got), fromStream(reg, raw, want)
			if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %T: got %#v, %v; the driver %#v, %v", name, got, reflect.ValueOf(got).Elem(), err, reflect.ValueOf(want).Elem(), wantErr)
			}
		}
	}
}

// seenType keeps the BSON type that it was decoded from.
type seenType struct{ typ byte }

// A whole document has no BSON type, which some targets and the errors for others show.
func TestTypeAtTheTop(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "n", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, reg := range map[string]*bson.Registry{
		"plans": build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard)), "driver": bson.NewRegistry(),
		"no plans": build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans()),
	} {
		for _, target := range []func() any{
			func() any { return new(bson.RawValue) }, func() any { return new(*bson.RawValue) }, func() any { return new(seenType) },
			func() any { return new(*seenType) }, func() any { return new(string) }, func() any { return new(bson.Binary) },
			func() any { return new(bson.ObjectID) }, func() any { return new([]byte) }, func() any { return new(bool) },
			func() any { return new(time.Time) }, func() any { return new(bson.Raw) }, func() any { return new(bson.D) },
			func() any { return new([]bson.E) }, func() any { return new([]int) }, func() any { return new(bson.E) },
			func() any { return new(struct{ N int }) }, func() any { return new(map[string]any) }, func() any { return new(fmt.Stringer) },
			func() any { return new(bson.CodeWithScope) }, func() any { return new(bson.A) }, func() any { return new(func()) },
		} {
			for _, o := range []bsoncodec.Options{{}, {ZeroMaps: true}} {
				want, got := target(), target()
				wantErr, err := bson.Unmarshal(doc, want), bsoncodec.Unmarshal(reg, doc, got, o)
				if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%s, %T: got %#v, %v; the driver %#v, %v", name, got, got, err, want, wantErr)
				}
			}
		}
	}
}

// Without a registry every function returns an error that wraps bson.ErrNilRegistry.
func TestNilRegistry(t *testing.T) {
	empty := []byte{5, 0, 0, 0, 0}
	_, err1 := bsoncodec.Marshal(nil, bson.D{})
	_, err2 := bsoncodec.MarshalExtJSON(nil, bson.D{}, true, true)
	_, err3 := bsoncodec.MarshalValue(nil, 1)
	_, err4 := bsoncodec.DecodeNative(nil, 1)
	for i, err := range []error{
		err1, err2, err3, err4, bsoncodec.Unmarshal(nil, empty, new(bson.D)), bsoncodec.UnmarshalExtJSON(nil, []byte("{}"), true, new(bson.D)),
		bsoncodec.UnmarshalValue(nil, bson.RawValue{Type: bson.TypeNull}, new(any)),
	} {
		if !errors.Is(err, bson.ErrNilRegistry) || !strings.HasPrefix(err.Error(), "bsoncodec: ") {
			t.Errorf("%d: got %v", i, err)
		}
	}
}

// An encoder that stopped in the middle of a document is not used again.
func TestMarshalAfterErrors(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for i := range 100 {
		if _, err := encode(t, reg, bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: make(chan int)}}}}); err == nil {
			t.Fatal("a channel was encoded")
		}
		raw := marshal(t, reg, bson.M{"i": int32(i)})
		if got := raw.Lookup("i").Int32(); got != int32(i) {
			t.Fatalf("got %d, want %d", got, i)
		}
	}
	big := marshal(t, reg, bson.M{"s": strings.Repeat("x", 2<<20)})
	small := marshal(t, reg, bson.M{"s": "y"})
	if len(big.Lookup("s").StringValue()) != 2<<20 || small.Lookup("s").StringValue() != "y" {
		t.Error("a large document changed a small one")
	}
}

// Extended JSON has the subtype and the octets of the representation, and $uuid is read as subtype 4, as its
// specification says.
func TestExtJSON(t *testing.T) {
	type doc struct{ U uuid.UUID }
	java, standard := registry(t, uuidrep.JavaLegacy), registry(t, uuidrep.Standard)
	// Extended JSON v2: a subtype 4 binary may be written as $uuid; base64 is that of the stored octets.
	for _, tt := range []struct {
		reg  *bson.Registry
		json string
	}{
		{standard, `{"u":{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}}`},
		{standard, `{"u":{"$uuid":"00112233-4455-6677-8899-AABBCCDDEEFF"}}`},
		{standard, `{"u":{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}}`},
		{java, `{"u":{"$binary":{"base64":"d2ZVRDMiEQD/7t3Mu6qZiA==","subType":"03"}}}`},
	} {
		for _, canonical := range []bool{true, false} {
			var d doc
			var m bson.M
			if err := bsoncodec.UnmarshalExtJSON(tt.reg, []byte(tt.json), canonical, &d); err != nil || d.U != testUUID {
				t.Errorf("%s: got %v, %v", tt.json, d, err)
			}
			if err := bsoncodec.UnmarshalExtJSON(tt.reg, []byte(tt.json), canonical, &m); err != nil || m["u"] != testUUID {
				t.Errorf("%s: got %v, %v", tt.json, m, err)
			}
		}
	}
	for reg, want := range map[*bson.Registry]string{
		standard: `{"u":{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}}`,
		java:     `{"u":{"$binary":{"base64":"d2ZVRDMiEQD/7t3Mu6qZiA==","subType":"03"}}}`,
	} {
		got, err := bsoncodec.MarshalExtJSON(reg, doc{testUUID}, true, false)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	for _, bad := range []string{``, `{`, `[]x`, `{"u":{"$uuid":"nonsense"}}`, `{"u":{"$binary":{"base64":"AA==","subType":"04"}}}`, `{"u":"00112233-4455-6677-8899-aabbccddeeff"}`} {
		var d doc
		if err := bsoncodec.UnmarshalExtJSON(standard, []byte(bad), false, &d); err == nil {
			t.Errorf("%s was decoded to %v", bad, d)
		}
	}
	var e *uuidrep.SubtypeError
	if err := bsoncodec.UnmarshalExtJSON(java, []byte(`{"u":{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}}`), false, new(doc)); !errors.As(err, &e) {
		t.Errorf("subtype 4 with javaLegacy: got %v", err)
	}
}

// Malformed text in a field that is skipped is an error, as it is for the driver in one that is not
// skipped. The driver's own function does not return.
func TestExtJSONSkipped(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	const text = `{"a":[1,{"b":{},"c":[]}],"d":{"e":"f\n","g":[true,null,-1.5e3]},"h":{}} `
	texts := []string{`{"x":[1 2]}`, `{"x":[1,]}`, `{"x":{"a":'b'}}`, `{"x":{}} more`, "{\"x\":[\"\n\"]}"}
	for i := range text {
		texts = append(texts, text[:i])
		for _, c := range `{}[]",:x1` + "\n" {
			texts = append(texts, text[:i]+string(c)+text[i+1:], text[:i]+string(c)+text[i:])
		}
	}
	accepted := 0
	for _, text := range texts {
		err := bsoncodec.UnmarshalExtJSON(reg, []byte(text), false, new(struct{ Other int }))
		want := bson.UnmarshalExtJSON([]byte(text), false, new(bson.D))
		if (err == nil) != (want == nil) {
			t.Errorf("%s: got %v, the driver %v", text, err, want)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 10 || accepted > len(texts)-100 {
		t.Errorf("%d of %d were accepted", accepted, len(texts))
	}
}

// MarshalValue and UnmarshalValue write and read a single value as the functions for documents do within one.
func TestValues(t *testing.T) {
	for _, tt := range table {
		reg := registry(t, tt.rep)
		rv, err := bsoncodec.MarshalValue(reg, testUUID)
		if err != nil {
			t.Fatal(err)
		}
		subtype, octets, ok := rv.BinaryOK()
		if !ok || subtype != tt.subtype || !bytes.Equal(octets, tt.octets) || len(rv.Value) != 4+1+16 {
			t.Errorf("%v: got %v", tt.rep, rv)
		}
		var u uuid.UUID
		if err := bsoncodec.UnmarshalValue(reg, rv, &u); err != nil || u != testUUID {
			t.Errorf("%v: got %v, %v", tt.rep, u, err)
		}
		for _, v := range []any{bson.Binary{Subtype: tt.subtype, Data: tt.octets}, testUUID, orderID(testUUID)} {
			if got, err := bsoncodec.DecodeNative(reg, v); err != nil || got != testUUID {
				t.Errorf("%v: DecodeNative(%v) is %v, %v", tt.rep, v, got, err)
			}
		}
		oid := bson.NewObjectID()
		for _, v := range []any{nil, oid, "x", int32(1), bson.Binary{Subtype: 5, Data: octetsStandard}, bson.D{{Key: "a", Value: bson.A{"x"}}}} {
			if got, err := bsoncodec.DecodeNative(reg, v); err != nil || !reflect.DeepEqual(got, v) {
				t.Errorf("%v: DecodeNative(%v) is %v, %v", tt.rep, v, got, err)
			}
		}
	}
	if _, err := bsoncodec.DecodeNative(registry(t, uuidrep.Standard), make(chan int)); err == nil {
		t.Error("a channel is native")
	}
	unspecified := registry(t, uuidrep.Unspecified)
	b := bson.Binary{Subtype: 4, Data: octetsStandard}
	if got, err := bsoncodec.DecodeNative(unspecified, b); err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("unspecified: got %v, %v", got, err)
	}
	var m bson.M
	if err := bsoncodec.UnmarshalValue(unspecified, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: []byte{5, 0, 0, 0, 0}}, m); !errors.Is(err, bson.ErrDecodeToNil) {
		t.Errorf("a nil map: got %v", err)
	}
}

// Any octets as a document: no target panics, and what is decoded is encoded to what was read.
func FuzzUnmarshal(f *testing.F) {
	regs := map[uuidrep.Representation]*bson.Registry{}
	for _, r := range allRepresentations {
		regs[r] = build(f, bsoncodec.NewRegistryBuilder(r))
		for _, b := range []bson.Binary{{Subtype: 4, Data: octetsStandard}, {Subtype: 3, Data: octetsJava}, {Subtype: 2, Data: octetsStandard}, {Subtype: 2}, {Subtype: 4, Data: octetsJava[:15]}} {
			f.Add([]byte(marshal(f, regs[r], bson.D{{Key: "u", Value: b}, {Key: "n", Value: b}, {Key: "a", Value: bson.A{b, bson.D{{Key: "x", Value: b}}}}, {Key: "k", Value: bson.M{testUUID.String(): b}}})))
		}
		f.Add([]byte(marshal(f, regs[r], bson.D{{Key: "u", Value: nil}, {Key: "n", Value: bson.Undefined{}}, {Key: "a", Value: "x"}})))
	}
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte("\r\x00\x00\x00\x04\x8f\x00000\xff\x00>")) // a negative length, found by fuzzing
	f.Fuzz(func(t *testing.T, doc []byte) {
		for r, reg := range regs {
			var s struct {
				U uuid.UUID
				N uuid.NullUUID
				A any
				K map[uuid.UUID]any

				Rest map[string]bson.RawValue `bson:",inline"` // skipping a negative length never ends
			}
			if err := bsoncodec.Unmarshal(reg, doc, &s); err == nil && s.U != uuid.Nil && r != uuidrep.Unspecified {
				raw := marshal(t, reg, bson.M{"u": s.U})
				values, err := bson.Raw(doc).Elements()
				if err != nil {
					return
				}
				found := false // a key may be there twice: the last one counts
				for _, v := range values {
					found = found || v.Value().Equal(raw.Lookup("u"))
				}
				if !found {
					t.Errorf("%v: %v is not in %X", r, s.U, doc)
				}
			}
			for _, target := range []any{new(bson.D), new(any), new(bson.M), new(map[string]uuid.UUID), new(map[string]uuid.NullUUID)} {
				_ = bsoncodec.Unmarshal(reg, doc, target)
			}
			var d, stock bson.D
			err, stockErr := bsoncodec.Unmarshal(reg, doc, &d), bson.Unmarshal(doc, &stock)
			if (err == nil) != (stockErr == nil) {
				t.Errorf("%v: %X: got %v, the driver %v", r, doc, err, stockErr)
			}
			if err == nil && r == uuidrep.Unspecified && fmt.Sprint(d) != fmt.Sprint(stock) {
				t.Errorf("%X: got %v, the driver %v", doc, d, stock)
			}
		}
	})
}

// A codec of the caller's for bson.D is none for single values.
func TestValuesBesideAnEncoderForD(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[bson.D](), bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			return dw.WriteDocumentEnd()
		}))
	}))
	plain := registry(t, uuidrep.Standard)
	for _, v := range []any{nil, testUUID, "x", []uuid.UUID{testUUID}, bson.M{"a": 1}, (*uuid.UUID)(nil)} {
		got, err := bsoncodec.MarshalValue(reg, v)
		want, wantErr := bsoncodec.MarshalValue(plain, v)
		if err != nil || wantErr != nil || !got.Equal(want) {
			t.Errorf("%v: got %v, %v, want %v, %v", v, got, err, want, wantErr)
		}
	}
	if got, err := bsoncodec.MarshalValue(reg, bson.D{{Key: "a", Value: 1}}); err != nil || !bytes.Equal(got.Value, []byte{5, 0, 0, 0, 0}) {
		t.Errorf("a bson.D: got %v, %v", got, err)
	}
	if u, err := bsoncodec.DecodeNative(reg, uuidrep.NewBinary(testUUID)); err != nil || u != testUUID {
		t.Errorf("native: got %v, %v", u, err)
	}
}

// The driver does not come back from these 20 bytes: a string is skipped whose length leads back to where it starts.
func TestUnmarshalOfNegativeLength(t *testing.T) {
	data := []byte("\x14\x00\x00\x00\x02xyz\x00\xf7\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00")
	plans := registry(t, uuidrep.Standard)
	driver := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans())
	type target struct{ A int32 }
	type hooked struct {
		A int32
		B lateBinary
	}
	for name, reg := range map[string]*bson.Registry{"plans": plans, "the driver": driver, "no codecs": bson.NewRegistry()} {
		for _, v := range []any{new(target), new(hooked), new(map[string]target), new(map[string]int)} {
			for _, opts := range [][]bsoncodec.Options{nil, {{}}, {{ZeroStructs: true}}, {{UseJSONStructTags: true}}} {
				done := make(chan error, 3)
				go func() {
					done <- bsoncodec.Unmarshal(reg, data, v, opts...)
					done <- bsoncodec.UnmarshalValue(reg, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: data}, v, opts...)
					within := append(append([]byte("\x1c\x00\x00\x00\x03a\x00"), data...), 0)
					done <- bsoncodec.UnmarshalValue(reg, bson.RawValue{Type: bson.TypeArray, Value: within}, &[]target{}, opts...)
				}()
				for i := range 3 {
					select {
					case err := <-done:
						if err == nil {
							t.Errorf("%s, %T, %v, call %d: no error", name, v, opts, i)
						}
					case <-time.After(20 * time.Second):
						t.Fatalf("%s, %T, %v, call %d does not come back", name, v, opts, i)
					}
				}
			}
		}
	}
}

// Text that is no document is the error that it is to the driver.
func TestExtJSONThatIsNoDocument(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, text := range []string{``, ` `, `[]`, `[1]`, `1`, `"x"`, `null`, `true`, `{`, `}`, `{"a": }`, `{"$uuid": "x"}`, `{"$oid": "x"}`, `1e999`} {
		for _, canonical := range []bool{true, false} {
			want := bson.UnmarshalExtJSON([]byte(text), canonical, new(bson.D))
			err := bsoncodec.UnmarshalExtJSON(reg, []byte(text), canonical, new(bson.D))
			if (err == nil) != (want == nil) {
				t.Errorf("%s: got %v, the driver %v", text, err, want)
			}
		}
	}
}

func (s selfMarshaled) MarshalBSON() ([]byte, error) { return s.doc, nil }

func (s *selfMarshaled) UnmarshalBSON(data []byte) error {
	s.doc = bytes.Clone(data)
	return nil
}

func (b *both) UnmarshalBSON([]byte) error { b.by = "UnmarshalBSON"; return nil }

func (b *both) UnmarshalBSONValue(byte, []byte) error { b.by = "UnmarshalBSONValue"; return nil }

func (s *seenType) UnmarshalBSONValue(typ byte, _ []byte) error { s.typ = typ; return nil }

type (
	silent        struct{ A int }
	failing       struct{}
	failingTarget struct{ A int }
	selfMap       map[string]string
	zeroStranger  [16]byte
)

func (failing) MarshalBSON() ([]byte, error) { return nil, errBroken }

func (*failingTarget) UnmarshalBSON([]byte) error { return errBroken }

func (m selfMap) UnmarshalBSON(data []byte) error { m["n"] = fmt.Sprint(len(data)); return nil }

func (z zeroStranger) IsZero() bool { return z == zeroStranger{} }

func encodeWithWriter(reg *bson.Registry, v any, vw bson.ValueWriter) error {
	enc := bson.NewEncoder(vw)
	enc.SetRegistry(reg)
	return enc.Encode(v)
}

// An encoder of the caller's that writes nothing and reports no error is an error.
func TestEncoderThatWritesNothing(t *testing.T) {
	nothing := bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return nil })
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) { reg.RegisterTypeEncoder(reflect.TypeFor[silent](), nothing) })
	}) {
		for _, v := range []any{silent{}, &silent{}} {
			_, one := bsoncodec.Marshal(reg, v)
			_, two := bsoncodec.MarshalExtJSON(reg, v, true, false)
			if rv, err := bsoncodec.MarshalValue(reg, v); err == nil {
				t.Errorf("%s, %T: got %v", mode, v, rv)
			}
			for i, err := range []error{one, two} {
				if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("bsoncodec: cannot encode %T: ", v)) {
					t.Errorf("%s, %d, %T: got %v", mode, i, v, err)
				}
			}
		}
	}
}

// An error of a method of the caller's is returned.
func TestErrorsOfMethods(t *testing.T) {
	for mode, reg := range modes(t, standard) {
		empty := []byte{5, 0, 0, 0, 0}
		_, one := bsoncodec.Marshal(reg, failing{})
		_, two := bsoncodec.MarshalExtJSON(reg, failing{}, true, false)
		for i, err := range []error{one, two, bsoncodec.Unmarshal(reg, empty, new(failingTarget)), bsoncodec.Unmarshal(reg, empty, &struct{ *failingTarget }{new(failingTarget)})} {
			if !errors.Is(err, errBroken) {
				t.Errorf("%s, %d: got %v", mode, i, err)
			}
		}
		if err := bsoncodec.Unmarshal(reg, empty, (*failingTarget)(nil)); !errors.Is(err, bson.ErrDecodeToNil) {
			t.Errorf("%s: a nil pointer: got %v", mode, err)
		}
		m := selfMap{}
		if err := bsoncodec.Unmarshal(reg, empty, m); err != nil || m["n"] != "5" {
			t.Errorf("%s: a map with a method: got %v, %v", mode, m, err)
		}
		for _, malformed := range []selfMarshaled{{bson.Raw{5, 0}}, {bson.Raw{9, 0, 0, 0, 0}}} {
			if raw, err := bsoncodec.Marshal(reg, malformed); err == nil {
				t.Errorf("%s: got %v", mode, raw)
			}
			_, want := bson.MarshalExtJSON(malformed, true, false)
			if text, err := bsoncodec.MarshalExtJSON(reg, malformed, true, false); err == nil || fmt.Sprint(err) != fmt.Sprint(want) {
				t.Errorf("%s: got %s and %v, the driver %v", mode, text, err, want)
			}
		}
	}
}

// badEncoder is encoded by a function of the test's.
type badEncoder struct{ N int }

// An encoder that reports no error and does not write one whole document gets an error, and changes
// no other document.
func TestEncodersThatDoNotWriteOneDocument(t *testing.T) {
	document := func(vw bson.ValueWriter, end bool) error {
		dw, err := vw.WriteDocument()
		if err != nil {
			return err
		}
		vw, err = dw.WriteDocumentElement("secret")
		if err != nil {
			return err
		}
		if err := vw.WriteString("another caller's"); err != nil || !end {
			return err
		}
		return dw.WriteDocumentEnd()
	}
	for name, encode := range map[string]func(bson.ValueWriter) error{
		"nothing":        func(bson.ValueWriter) error { return nil },
		"only the start": func(vw bson.ValueWriter) error { _, err := vw.WriteDocument(); return err },
		"no end":         func(vw bson.ValueWriter) error { return document(vw, false) },
		"no value": func(vw bson.ValueWriter) error {
			dw, err := vw.WriteDocument()
			if err == nil {
				_, err = dw.WriteDocumentElement("a")
			}
			return err
		},
		"an array begun": func(vw bson.ValueWriter) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			vw, err = dw.WriteDocumentElement("a")
			if err == nil {
				_, err = vw.WriteArray()
			}
			return err
		},
		"two":               func(vw bson.ValueWriter) error { return errors.Join(document(vw, true), document(vw, true)) },
		"one and one begun": func(vw bson.ValueWriter) error { return errors.Join(document(vw, true), document(vw, false)) },
		"one and the start of one": func(vw bson.ValueWriter) error {
			err := document(vw, true)
			_, err2 := vw.WriteDocument()
			return errors.Join(err, err2)
		},
		"one and an element": func(vw bson.ValueWriter) error {
			err := document(vw, true)
			_, err2 := vw.(bson.DocumentWriter).WriteDocumentElement("a")
			return errors.Join(err, err2)
		},
	} {
		reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[badEncoder](), bson.ValueEncoderFunc(
				func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return encode(vw) }))
		}))
		want := marshal(t, bson.NewRegistry(), bson.D{{Key: "a", Value: int32(1)}})
		for range 20 { // one of them gets the buffer of another
			if got, err := bsoncodec.Marshal(reg, badEncoder{}); err == nil {
				t.Errorf("%s: Marshal returns %v", name, bson.Raw(got))
			}
			func() {
				defer func() { _ = recover() }() // the driver's writer panics when a document ends twice
				if _, err := bsoncodec.MarshalValue(reg, badEncoder{}); err == nil && name == "nothing" {
					t.Errorf("%s: MarshalValue reports no error", name)
				}
			}()
			if got := marshal(t, reg, bson.D{{Key: "a", Value: int32(1)}}); !bytes.Equal(got, want) {
				t.Fatalf("%s: the next document is %v", name, got)
			}
			if got, err := bsoncodec.MarshalValue(reg, int32(1)); err != nil || !bytes.Equal(got.Value, []byte{1, 0, 0, 0}) {
				t.Fatalf("%s: the next value is %v, %v", name, got, err)
			}
		}
	}
}
