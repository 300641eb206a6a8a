package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

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

// A codec of a caller's can keep an encoder of a kind, and call it with a context that has no registry.
func TestKindsWithoutRegistry(t *testing.T) {
	type text string
	type count int64
	driver, ours := bson.NewRegistry(), build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard))
	for _, v := range []any{"x", text("x"), int64(1), count(1), 1, []byte{1}, time.UnixMilli(0)} {
		var docs [2][]byte
		for i, reg := range []*bson.Registry{driver, ours} {
			enc, err := reg.LookupEncoder(reflect.TypeOf(v))
			if err != nil {
				t.Fatal(err)
			}
			var buf bytes.Buffer
			dw, _ := bson.NewDocumentWriter(&buf).WriteDocument()
			vw, _ := dw.WriteDocumentElement("a")
			if err := errors.Join(enc.EncodeValue(bson.EncodeContext{}, vw, reflect.ValueOf(v)), dw.WriteDocumentEnd()); err != nil {
				t.Errorf("%T: %v", v, err)
			}
			docs[i] = buf.Bytes()
		}
		if !bytes.Equal(docs[0], docs[1]) {
			t.Errorf("%T: got %x, want %x", v, docs[1], docs[0])
		}
	}
}
