package bsoncodec_test

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// tagged is a struct around a UUID that has a key of its own under "json" struct tags only.
type tagged struct {
	uuid.UUID `json:"u"`
}

// A type that is refused under one kind of tags alone is refused under the other, whatever other options there are.
func TestTagsUnderEveryOption(t *testing.T) {
	encodeOnly, decodeOnly := []string{"UseJSONStructTags"}, []string{"UseJSONStructTags"}
	for _, name := range optionNames() {
		if name == "UseJSONStructTags" {
			continue
		}
		if _, ok := reflect.TypeFor[*bson.Encoder]().MethodByName(name); ok {
			encodeOnly = append(encodeOnly, name)
		} else {
			decodeOnly = append(decodeOnly, name)
		}
	}
	reg := registry(t, uuidrep.Standard)
	doc := marshal(t, bson.NewRegistry(), bson.M{"v": bson.M{"u": bson.Binary{Subtype: 4, Data: octetsStandard}}})
	of := func(set int, names []string) (o bsoncodec.Options) {
		for i, name := range names {
			reflect.ValueOf(&o).Elem().FieldByName(name).SetBool(set>>i&1 == 1)
		}
		return o
	}
	for set := range 1 << len(encodeOnly) {
		o := of(set, encodeOnly)
		_, err := bsoncodec.Marshal(reg, bson.D{{Key: "v", Value: tagged{testUUID}}}, o)
		if refused := errors.As(err, new(*bsoncodec.UnregisteredTypeError)); refused == o.UseJSONStructTags {
			t.Fatalf("encoding with %+v: got %v", o, err)
		}
	}
	for set := range 1 << len(decodeOnly) {
		o := of(set, decodeOnly)
		err := bsoncodec.Unmarshal(reg, doc, new(struct{ V tagged }), o)
		if refused := errors.As(err, new(*bsoncodec.UnregisteredTypeError)); refused == o.UseJSONStructTags {
			t.Fatalf("decoding with %+v: got %v", o, err)
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

// The error for a UUID in another subtype names every way to read it.
func TestWaysToReadASubtype(t *testing.T) {
	for subtype, want := range map[byte][]string{
		0: {"a bson.Binary reads", "AlsoDecodeSubtype0"}, 4: {"a bson.Binary reads", "a uuidrep.StandardUUID", "AlsoDecode reads"}, 5: {"a bson.Binary reads"},
	} {
		reg := registry(t, uuidrep.JavaLegacy)
		raw := marshal(t, bson.NewRegistry(), bson.M{"u": bson.Binary{Subtype: subtype, Data: octetsStandard}})
		err := decode(t, reg, raw, new(struct{ U uuid.UUID }))
		for _, way := range []string{"a bson.Binary reads", "a uuidrep.StandardUUID", "AlsoDecode reads both", "AlsoDecodeSubtype0"} {
			named := false
			for _, w := range want {
				named = named || strings.HasPrefix(way, w)
			}
			if err == nil || strings.Contains(err.Error(), way) != named {
				t.Errorf("subtype %d: got %v; want %q in it: %v", subtype, err, way, named)
			}
		}
	}
}

// What is not a document of the type is an error also if the type is registered as a document.
func TestMalformedDocumentTypes(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[embeddedID]()))
	for _, v := range []any{"text", 1, bson.Binary{Subtype: 4, Data: octetsStandard[:15]}, bson.Binary{Subtype: 5, Data: octetsStandard},
		bson.D{{Key: "uuid", Value: "text"}}, bson.A{1}} {
		raw := marshal(t, reg, bson.M{"v": v})
		_, document := v.(bson.D) // is read as a struct of the same fields
		want := decodeWith(reg, raw, new(struct{ V struct{ UUID uuid.UUID } }))
		for _, err := range []error{decode(t, reg, raw, new(struct{ V embeddedID })), decodeWith(reg, raw, new(struct{ V embeddedID }))} {
			if err == nil || document && err.Error() != want.Error() {
				t.Errorf("%v: got %v", v, err)
			}
		}
	}
	for _, v := range []any{embeddedID{testUUID}, &embeddedID{testUUID}} {
		if err := encodeWithWriter(reg, v, &keepingWriter{err: errBroken, left: 2}); !errors.Is(err, errBroken) {
			t.Errorf("%T: got %v", v, err)
		}
	}
}

func encodeWithWriter(reg *bson.Registry, v any, vw bson.ValueWriter) error {
	enc := bson.NewEncoder(vw)
	enc.SetRegistry(reg)
	return enc.Encode(v)
}

// A struct around a UUID is read from the document that the driver wrote for it, at the top of a document, too.
func TestWrapperAtTheTop(t *testing.T) {
	raw := marshal(t, bson.NewRegistry(), bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: octetsStandard}}})
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[embeddedID]())
	}) {
		for _, decode := range []func(any) error{
			func(v any) error { return decodeWith(reg, raw, v) }, func(v any) error { return bsoncodec.Unmarshal(reg, raw, v) },
		} {
			var v embeddedID
			if err := decode(&v); err != nil || v.UUID != testUUID {
				t.Errorf("%s: got %v, %v", mode, v, err)
			}
		}
	}
}

// Keys of a type that is not registered are refused at the top of a document, too.
func TestRefusedKeysAtTheTop(t *testing.T) {
	raw := marshal(t, bson.NewRegistry(), bson.M{testUUID.String(): 1})
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		checkUnregistered(t, decodeWith(reg, raw, new(map[strangerID]int)), reflect.TypeFor[strangerID]())
		checkUnregistered(t, decode(t, reg, raw, new(map[strangerID]int)), reflect.TypeFor[strangerID]())
		if t.Failed() {
			t.Fatal(mode)
		}
	}
}

type (
	silent        struct{ A int }
	failing       struct{}
	failingTarget struct{ A int }
	selfMap       map[string]string
	zeroStranger  [16]byte
)

func (failing) MarshalBSON() ([]byte, error)      { return nil, errBroken }
func (*failingTarget) UnmarshalBSON([]byte) error { return errBroken }
func (m selfMap) UnmarshalBSON(data []byte) error { m["n"] = fmt.Sprint(len(data)); return nil }
func (z zeroStranger) IsZero() bool               { return z == zeroStranger{} }

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

// A value that omitempty leaves out is not the one that was refused.
func TestPathBehindOmittedValues(t *testing.T) {
	type doc struct {
		A zeroStranger  `bson:",omitempty"`
		P *zeroStranger `bson:",omitempty"`
		B zeroStranger
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		_, err := bsoncodec.Marshal(reg, doc{})
		checkPath(t, mode, err, "b")
		_, err = bsoncodec.Marshal(reg, doc{P: &zeroStranger{}})
		checkPath(t, mode, err, "b")
		_, err = bsoncodec.Marshal(reg, doc{P: &zeroStranger{1}})
		checkPath(t, mode, err, "p")
		_, err = bsoncodec.Marshal(reg, doc{A: zeroStranger{1}})
		checkPath(t, mode, err, "a")
	}
}

// An undefined value is read to its end: what is behind it follows.
func TestUndefinedInTheMiddle(t *testing.T) {
	doc := bson.D{{Key: "a", Value: bson.Undefined{}}, {Key: "b", Value: testUUID}}
	for mode, reg := range modes(t, standard) {
		raw := marshal(t, reg, doc)
		var v struct {
			A uuid.NullUUID
			B uuid.UUID
		}
		for _, decode := range []func() error{
			func() error { return bsoncodec.Unmarshal(reg, raw, &v) }, func() error { return decodeWith(reg, raw, &v) },
		} {
			v.A, v.B = uuid.NullUUID{UUID: testUUID, Valid: true}, uuid.Nil
			if err := decode(); err != nil || v.A.Valid || v.B != testUUID {
				t.Errorf("%s: got %+v, %v", mode, v, err)
			}
		}
		for n := range raw {
			dec := bson.NewDecoder(bson.NewDocumentReader(&breaksOnce{bytes.Clone(raw[:n]), raw[n:]}))
			dec.SetRegistry(reg)
			if err := dec.Decode(&v); !errors.Is(err, errBroken) {
				t.Errorf("%s: got %v after %d bytes", mode, err, n)
			}
		}
	}
}

// A type whose method has a pointer receiver is refused where the value is not addressable, and the path is that of such a value.
func TestPathOfValuesThatAreNotAddressable(t *testing.T) {
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		_, err := bsoncodec.Marshal(reg, bson.D{{Key: "a", Value: &pointerHook{}}, {Key: "b", Value: bson.A{pointerHook{}}}})
		checkPath(t, mode, err, "b.0")
		_, err = bsoncodec.MarshalValue(reg, struct{ A any }{bson.A{strangerID{}}})
		checkPath(t, mode, err, "a.0")
		if _, err = bsoncodec.Marshal(reg, bson.M{"a": [16]byte{}}); err == nil || !strings.Contains(err.Error(), "cannot encode [16]uint8") {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

type pointerHook [16]byte

func (*pointerHook) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

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

// A type that is registered as a document is stored as one, whatever a hook of the caller's does with text.
func TestDocumentTypeBesideAHook(t *testing.T) {
	hook := func(reg *bson.Registry) {
		reg.RegisterInterfaceEncoder(reflect.TypeFor[encoding.TextMarshaler](), stringEncoder("a hook"))
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[embeddedID]()).With(hook)
	}) {
		raw := marshal(t, reg, bson.D{{Key: "v", Value: embeddedID{testUUID}}})
		checkStored(t, raw, 4, octetsStandard, "v", "uuid")
		var v struct{ V embeddedID }
		if unmarshal(t, reg, raw, &v); v.V.UUID != testUUID {
			t.Errorf("%s: got %v", mode, v)
		}
	}
	// An encoder of structs of the caller's encodes it.
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[embeddedID]()).With(
			func(reg *bson.Registry) { reg.RegisterKindEncoder(reflect.Struct, stringEncoder("mine")) })
	}) {
		if raw := marshal(t, reg, bson.D{{Key: "v", Value: embeddedID{testUUID}}}); raw.Lookup("v").StringValue() != "mine" {
			t.Errorf("%s: got %v", mode, raw)
		}
	}
}
