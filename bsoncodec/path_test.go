package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// methodical has a marshaling method, so that what it holds is not encoded by the registry.
type methodical struct{ ID strangerID }

// marshaledKey and textKeyed are keys of maps.
type (
	marshaledKey struct{ s string }
	textKeyed    struct{ s string }
)

type withinItself struct{ Self *withinItself }

type blob []byte

// The error of encoding a type that is not registered has the path of the value, and its package.
func TestPathsOfRefusedValues(t *testing.T) {
	v := strangerID(testUUID)
	type inner struct {
		Skipped strangerID `bson:"-"`
		ID      *strangerID
		None    *strangerID
	}
	type inline struct {
		In inner `bson:"ignored,inline"`
	}
	type named struct {
		A string     `bson:"first" json:"j"`
		V strangerID `bson:"the_id" json:"other"`
	}
	type json struct {
		V strangerID `json:"the_json"`
	}
	type doc struct {
		Hidden methodical
		Zero   uuidrep.StandardUUID `bson:",omitempty"`
		Nil    any                  `bson:",omitempty"` // a nil pointer to a type with a method IsZero
		X      any
	}
	cycle := &withinItself{}
	cycle.Self = cycle
	var items []any
	for range 300 { // more than a search goes deep
		items = append(items, int32(1))
	}
	for _, tt := range []struct {
		v    any
		path string
	}{
		{bson.M{"v": v}, "v"}, {bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.D{{Key: "c", Value: &v}}}}, "b.c"},
		{bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "c", Value: 1}, {Key: "d", Value: append(items, v)}}, "d.300"},
		{inner{ID: &v}, "id"}, {inline{inner{ID: &v}}, "id"}, {&named{V: v}, "the_id"}, {json{v}, "v"},
		{doc{Hidden: methodical{v}, Nil: (*bson.ObjectID)(nil), X: bson.A{nil, map[string]any{"k": []strangerID{{}}}}}, "x.1.k.0"},
		{map[string]any{"a": map[int]inner{7: {ID: &v}}}, "a.7.id"}, {map[uuid.UUID]any{testUUID: [2]strangerID{}}, testUUID.String() + ".0"},
		{struct {
			M map[string]strangerID `bson:",inline"`
		}{map[string]strangerID{"k": v}}, "k"},
		{struct {
			C *bson.CodeWithScope `bson:",inline"`
		}{&bson.CodeWithScope{Scope: bson.D{{Key: "n", Value: v}}}}, "scope.n"},
		{struct {
			C bson.CodeWithScope `bson:",inline"`
		}{bson.CodeWithScope{Scope: bson.D{{Key: "n", Value: v}}}}, "scope.n"},
		{bson.M{"c": bson.CodeWithScope{Scope: bson.M{"n": bson.A{v}}}}, "c.n.0"},
		{struct{ C *bson.CodeWithScope }{&bson.CodeWithScope{Code: "f", Scope: named{V: v}}}, "c.the_id"},
		{bson.D{{Key: "a", Value: bson.A{bson.CodeWithScope{Scope: bson.D{}}, bson.CodeWithScope{Scope: bson.D{{Key: "m", Value: map[string]strangerID{"k": v}}}}}}}, "a.1.m.k"},
		{bson.M{"m": map[strangerID]int{v: 1}}, "m"}, {struct{ D []bson.E }{[]bson.E{{Key: "e", Value: v}}}, "d.e"},
		{bson.M{"a": []bson.M{{}, {"w": embeddedID{testUUID}}}}, "a.1.w"},
		{bson.M{"m": map[marshaledKey]strangerID{{"a"}: v}}, "m.key a"}, {bson.M{"m": map[*textKeyed]strangerID{{"b"}: v}}, "m.text b"},
		{struct {
			V strangerID `bson:",omitempty"` // an array is not omitted
		}{}, "v"},
		{bson.D{{Key: "x", Value: exportedID{}}, {Key: "b", Value: blob(make([]byte, 1<<20))}, {Key: "v", Value: v}}, "v"}, // values without one, and more bytes than a search looks at
		{bson.D{{Key: "e", Value: map[strangerID]int{}}, {Key: "m", Value: map[strangerID]int{v: 1}}}, "m"},
		{bson.M{"m": map[string]strangerID{"f": v, "c": v, "a": v, "d": v, "b": v, "e": v}}, "m.a"}, // one map always gives one path
		{bson.M{"a": bson.A{bson.A{v}}}, "a.0.0"}, {bson.M{"x": bson.M{"a.b": v}}, "x.a.b"},
	} {
		for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
			for _, opts := range [][]bsoncodec.Options{nil, {{NilSliceAsEmpty: true}}} {
				_, err := bsoncodec.Marshal(reg, tt.v, opts...)
				wantPath(t, mode, err, tt.path)
				_, err = bsoncodec.MarshalExtJSON(reg, tt.v, true, false, opts...)
				wantPath(t, mode, err, tt.path)
			}
			wantPath(t, mode, encodeWith(reg, tt.v), tt.path)
		}
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		_, err := bsoncodec.Marshal(reg, json{v}, bsoncodec.Options{UseJSONStructTags: true})
		wantPath(t, mode, err, "the_json")
		// The value before the one that is within itself is refused, and is found among all others.
		_, err = encode(t, reg, bson.D{{Key: "v", Value: v}, {Key: "c", Value: cycle}})
		wantPath(t, mode, err, "v")
		// A key that is a nil pointer is the empty one, as the driver has it.
		_, err = encode(t, reg, bson.D{{Key: "v", Value: map[*textID]strangerID{nil: v}}})
		wantPath(t, mode, err, "v.")
		_, err = bsoncodec.MarshalValue(reg, bson.A{v})
		wantPath(t, mode, err, "0")
		_, err = bsoncodec.MarshalValue(reg, v)
		wantPath(t, mode, err, "")
	}
	// A caller's error stays as it is.
	mine := errors.New("mine")
	for mode, reg := range modes(t, standard) {
		reg.RegisterTypeEncoder(reflect.TypeFor[strangerID](), bson.ValueEncoderFunc(
			func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return mine }))
		if _, err := encode(t, reg, struct{ Never strangerID }{v}); err != mine {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

func wantPath(t *testing.T, mode string, err error, path string) {
	t.Helper()
	var e *bsoncodec.UnregisteredTypeError
	if !errors.As(err, &e) || e.Path != path || path != "" && !strings.Contains(err.Error(), ` at "`+path+`": `) ||
		!strings.Contains(err.Error(), "github.com/bsonids/bsonids/bsoncodec_test."+e.Type.Name()) {
		t.Errorf("%s: got %v, want the path %q", mode, err, path)
	}
}

// What a codec of the caller's encodes is not searched, and the path in it is not that in the document.
func TestPathsBesideCodecsOfTheCaller(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(8 << 20)) // a search of what is within itself needs little
	type pointee struct{ ID strangerID }
	type ids []strangerID
	type around struct{ In any }
	type reading struct{ ID strangerID }
	v := strangerID(testUUID)
	cycle := &withinItself{}
	cycle.Self = cycle
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[*pointee](), stringEncoder("mine"))
			reg.RegisterTypeEncoder(reflect.TypeFor[ids](), stringEncoder("mine"))
			reg.RegisterTypeEncoder(reflect.TypeFor[around](), bson.ValueEncoderFunc(
				func(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
					in := v.Field(0).Elem()
					enc, err := ec.LookupEncoder(in.Type())
					if err != nil {
						return err
					}
					return enc.EncodeValue(ec, vw, in)
				}))
			reg.RegisterTypeEncoder(reflect.TypeFor[reading](), bson.ValueEncoderFunc(
				func(ec bson.EncodeContext, _ bson.ValueWriter, _ reflect.Value) error {
					return bsoncodec.UnmarshalValue(ec.Registry, bson.RawValue{Type: bson.TypeNull}, new(strangerID))
				}))
		})
	}) {
		for _, tt := range []struct {
			doc  bson.D
			path string
		}{
			{bson.D{{Key: "p", Value: &pointee{v}}, {Key: "v", Value: v}}, "v"},
			{bson.D{{Key: "s", Value: ids{v}}, {Key: "v", Value: v}}, "v"},
			{bson.D{{Key: "a", Value: around{bson.D{{Key: "v", Value: v}}}}, {Key: "c", Value: cycle}}, ""},
			{bson.D{{Key: "a", Value: reading{}}, {Key: "v", Value: v}}, ""}, // the error of decoding
		} {
			_, err := bsoncodec.Marshal(reg, tt.doc)
			wantPath(t, mode, err, tt.path)
			wantPath(t, mode, encodeWith(reg, tt.doc), tt.path)
		}
	}
}

// A bson.D and a map have the path even if the codec of structs is the caller's.
func TestPathsWithAStructCodecOfTheCaller(t *testing.T) {
	for mode, b := range map[string]*bsoncodec.RegistryBuilder{
		"plans": bsoncodec.NewRegistryBuilder(uuidrep.Standard), "WithoutPlans": bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans(),
	} {
		reg := build(t, b.With(func(reg *bson.Registry) {
			reg.RegisterKindEncoder(reflect.Struct, bson.ValueEncoderFunc(
				func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return vw.WriteNull() }))
		}))
		v := strangerID(testUUID)
		for _, doc := range []any{
			bson.M{"a": bson.A{v}}, map[string][]strangerID{"a": {v}}, bson.D{{Key: "a", Value: bson.A{v}}},
			bson.D{{Key: "x"}, {Key: "y"}, {Key: "z"}, {Key: "a", Value: bson.A{v}}},
		} {
			var e *bsoncodec.UnregisteredTypeError
			if _, err := encode(t, reg, doc); !errors.As(err, &e) || e.Path != "a.0" {
				t.Errorf("%s, %v: got %v, want the path a.0", mode, doc, err)
			}
		}
		_, err := bsoncodec.MarshalValue(reg, bson.A{v})
		wantPath(t, mode, err, "0")
	}
}

// The decoding error is wrapped by the driver's, which has the path.
func TestPathsOfRefusedTargets(t *testing.T) {
	type target struct {
		A []struct{ B map[string]strangerID }
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		raw := marshal(t, reg, bson.M{"a": bson.A{bson.M{}, bson.M{"b": bson.M{"k": testUUID}}}})
		for _, err := range []error{decode(t, reg, raw, new(target)), decodeWith(reg, raw, new(target))} {
			var e *bson.DecodeError
			wantUnregisteredError(t, err, reflect.TypeFor[strangerID]())
			if !errors.As(err, &e) || !reflect.DeepEqual(e.Keys(), []string{"a", "1", "b", "k"}) || !strings.Contains(err.Error(), "reflect.TypeFor[bsoncodec_test.strangerID]()") {
				t.Errorf("%s: got %v", mode, err)
			}
		}
	}
}

// A UUID into text or bytes, and text into a UUID, say what to do, and keep the driver's error.
func TestWaysOut(t *testing.T) {
	type text string
	type octets []byte
	type target struct {
		S string
		T *text
		B []byte
		O octets
		L []string
		M map[string][]byte
	}
	stock := bson.NewRegistry()
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		for _, subtype := range []byte{3, 4, 5} {
			b := bson.Binary{Subtype: subtype, Data: octetsStandard}
			for _, doc := range []bson.M{{"s": b}, {"t": b}, {"b": b}, {"o": b}, {"l": bson.A{"x", b}}, {"m": bson.M{"k": b}}} {
				raw := marshal(t, reg, doc)
				want := decodeWith(stock, raw, new(target))
				var wantKeys *bson.DecodeError
				if !errors.As(want, &wantKeys) {
					t.Fatalf("%v: the driver returned %v", doc, want)
				}
				text, err := bsoncodec.MarshalExtJSON(reg, doc, true, false)
				if err != nil {
					t.Fatal(err)
				}
				for i, err := range []error{
					decodeWith(reg, raw, new(target)), decode(t, reg, raw, new(target)), bsoncodec.Unmarshal(reg, raw, new(target), everyOption),
					bsoncodec.UnmarshalExtJSON(reg, text, true, new(target)),
				} {
					var e *bson.DecodeError
					if !errors.As(err, &e) || !reflect.DeepEqual(e.Keys(), wantKeys.Keys()) || !strings.HasPrefix(err.Error(), want.Error()) ||
						strings.Contains(err.Error(), "a uuid.UUID reads the UUID") != (subtype != 5) || strings.Count(err.Error(), "uuid.UUID") > 1 {
						t.Errorf("%s, %d, %v: got %v, the driver %v", mode, i, doc, err, want)
					}
				}
			}
			var s string
			err := bsoncodec.UnmarshalValue(reg, bson.RawValue{Type: bson.TypeBinary, Value: append([]byte{16, 0, 0, 0, subtype}, octetsStandard...)}, &s)
			if err == nil || strings.Contains(err.Error(), "a uuid.UUID reads the UUID") != (subtype != 5) {
				t.Errorf("%s: got %v", mode, err)
			}
			raw := marshal(t, reg, bson.M{"k": b})
			for _, err := range []error{decodeWith(reg, raw, new(map[string]string)), decode(t, reg, raw, new(map[string]string))} {
				if err == nil || strings.Contains(err.Error(), "a uuid.UUID reads the UUID") != (subtype != 5) {
					t.Errorf("%s: got %v", mode, err)
				}
			}
		}
		raw := marshal(t, reg, bson.M{"u": testUUID.String()})
		for _, err := range []error{decode(t, reg, raw, new(struct{ U uuid.UUID })), decodeWith(reg, raw, new(map[string]uuid.UUID))} {
			if err == nil || !strings.Contains(err.Error(), "AlsoDecodeString") {
				t.Errorf("%s: got %v", mode, err)
			}
		}
		if err := decode(t, reg, raw, new(struct{ U uuidrep.StandardUUID })); err == nil || !strings.Contains(err.Error(), "StringUUID") {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

// Marshal does not write subtype 0 with a registry that has no codecs of this package.
func TestMarshalWithAForeignRegistry(t *testing.T) {
	type doc struct{ A []any }
	for _, reg := range []*bson.Registry{bson.NewRegistry(), bson.NewMgoRegistry()} {
		for _, tt := range []struct {
			v    any
			path string
		}{{bson.M{"u": testUUID}, "u"}, {doc{[]any{1, bson.M{"u": &testUUID}}}, "a.1.u"}, {&doc{[]any{strangerID{}}}, "a.0"}, {bson.D{{Key: "n", Value: uuid.NullUUID{}}}, "n.uuid"}, {bson.M{"a": [2]uuid.UUID{}}, "a.0"}} {
			for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
				_, one := bsoncodec.Marshal(reg, tt.v, opts...)
				_, two := bsoncodec.MarshalExtJSON(reg, tt.v, true, false, opts...)
				_, three := bsoncodec.MarshalValue(reg, tt.v, opts...)
				for _, err := range []error{one, two, three} {
					var e *bsoncodec.UnregisteredTypeError
					if !errors.As(err, &e) || e.Path != tt.path || !strings.Contains(err.Error(), "NewRegistry") {
						t.Errorf("%v: got %v", tt.v, err)
					}
				}
			}
		}
		sixteen := bson.M{"b": octetsStandard, "i": [16]int8{}, "x": bson.Binary{Data: octetsStandard}, "f": uuidrep.StandardUUID{UUID: testUUID}, "t": string([]byte{16, 0, 0, 0, 0})}
		marshal(t, reg, sixteen)
		if _, err := bsoncodec.MarshalExtJSON(reg, sixteen, true, false); err != nil {
			t.Error(err)
		}
	}
	// A registry with a codec of the caller's writes what that writes.
	marshal(t, usualRegistry(), bson.M{"u": testUUID, "b": octetsStandard})
	// And so do the registries of this package, for bytes that are registered.
	bytesOf := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterBytesType(reflect.TypeFor[strangerID]()))
	if raw := marshal(t, bytesOf, bson.M{"b": strangerID{}}); !bytes.Contains(raw, []byte{16, 0, 0, 0, 0}) {
		t.Errorf("got %v", raw)
	}
}

// The way out is in the error for a document that is too long to be copied out of a stream, too.
func TestWayOutOfALongDocument(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, n := range []int{0, 23 << 10, 25 << 10, 1 << 20} {
		raw := marshal(t, reg, bson.D{{Key: "padding", Value: strings.Repeat("x", n)}, {Key: "v", Value: testUUID}})
		for _, target := range []any{new(struct{ V string }), new(struct{ V []byte }), new(map[string]string)} {
			dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
			dec.SetRegistry(reg)
			if err := dec.Decode(target); err == nil || !strings.Contains(err.Error(), "a uuid.UUID reads the UUID") {
				t.Errorf("%T, %d bytes: got %v", target, n, err)
			}
		}
	}
}

// The search for a value calls no method of a key that is a nil pointer in an interface: with StringifyMapKeysWithFmt, the
// driver does not, either.
func TestPathOfANilKey(t *testing.T) {
	doc := bson.D{{Key: "m", Value: map[any]any{(*uuid.UUID)(nil): strangerID(testUUID)}}}
	regs := modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) })
	regs["driver"] = bson.NewRegistry()
	for mode, reg := range regs {
		_, err := bsoncodec.Marshal(reg, doc, bsoncodec.Options{StringifyMapKeysWithFmt: true})
		var e *bsoncodec.UnregisteredTypeError
		if !errors.As(err, &e) || e.Path != "m.<nil>" {
			t.Errorf("%s: got %v, want the path m.<nil>", mode, err)
		}
	}
}

func (methodical) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{}) }

func (k marshaledKey) MarshalKey() (string, error) { return "key " + k.s, nil }

func (k *textKeyed) MarshalText() ([]byte, error) { return []byte("text " + k.s), nil }

// A value that omitempty leaves out is not the one that was refused.
func TestPathBehindOmittedValues(t *testing.T) {
	type doc struct {
		A zeroStranger  `bson:",omitempty"`
		P *zeroStranger `bson:",omitempty"`
		B zeroStranger
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		_, err := bsoncodec.Marshal(reg, doc{})
		wantPath(t, mode, err, "b")
		_, err = bsoncodec.Marshal(reg, doc{P: &zeroStranger{}})
		wantPath(t, mode, err, "b")
		_, err = bsoncodec.Marshal(reg, doc{P: &zeroStranger{1}})
		wantPath(t, mode, err, "p")
		_, err = bsoncodec.Marshal(reg, doc{A: zeroStranger{1}})
		wantPath(t, mode, err, "a")
	}
}

// A type whose method has a pointer receiver is refused where the value is not addressable, and the path is that of such a value.
func TestPathOfValuesThatAreNotAddressable(t *testing.T) {
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		_, err := bsoncodec.Marshal(reg, bson.D{{Key: "a", Value: &pointerHook{}}, {Key: "b", Value: bson.A{pointerHook{}}}})
		wantPath(t, mode, err, "b.0")
		_, err = bsoncodec.MarshalValue(reg, struct{ A any }{bson.A{strangerID{}}})
		wantPath(t, mode, err, "a.0")
		if _, err = bsoncodec.Marshal(reg, bson.M{"a": [16]byte{}}); err == nil || !strings.Contains(err.Error(), "cannot encode [16]uint8") {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

type pointerHook [16]byte

func (*pointerHook) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

// The error of a method that is refused has the path of the value.
func TestPathOfPromotedMethods(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	v := promotedCustomer{uuidrep.ID[promotedCustomer](testUUID), "x"}
	var none *promotedCustomer
	for path, doc := range map[string]any{
		"a.1.b":  bson.M{"a": bson.A{1, bson.M{"b": v}}},
		"p":      bson.M{"n": none, "p": &v},
		"v.list": struct{ V any }{map[string]any{"list": v}},
		"":       v,
	} {
		_, err := encode(t, reg, doc)
		var e *bsoncodec.UnregisteredTypeError
		if !errors.As(err, &e) || e.Path != path {
			t.Errorf("got %v, want the path %s", err, path)
		}
	}
}
