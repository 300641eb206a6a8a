package bsoncodec_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
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

// The types below are structs around a UUID that the driver alone stores as {uuid: …}, or as {}.
type (
	embeddedID       struct{ uuid.UUID }
	embeddedOwn      struct{ orderID }
	embeddedPtr      struct{ *uuid.UUID }
	nestedID         struct{ embeddedID }
	embeddedNil      struct{ uuid.NullUUID }
	genericID[T any] struct {
		_ [0]T
		uuid.UUID
		cache string `bson:"-"`
	}
	privateID     struct{ id uuid.UUID }
	privatePtr    struct{ id *uuid.UUID }
	privateFixed  struct{ id uuidrep.StandardUUID }
	privateNested struct{ id embeddedID }
	privateJSON   struct{ id orderID }
	strangeID     struct{ strangerID }
	jsonID        struct {
		uuid.UUID `json:"id"`
	}
	aroundJSON     struct{ jsonID }
	deepPtr        struct{ embeddedPtr }
	pointerMethods struct{ id uuid.UUID }
	scannedID      struct {
		Valid bool
		ID    orderID
	}
)

// The types below have the form of the ones above but for one thing.
type (
	exportedID struct{ ID uuid.UUID }
	taggedID   struct {
		uuid.UUID `bson:"id"`
	}
	twoFields struct {
		uuid.UUID
		Name string
	}
	fixedID     struct{ uuidrep.StandardUUID }
	typedID     struct{ uuidrep.ID[int] }
	notUUID     struct{ bson.ObjectID }
	unscannedID struct {
		ID    orderID
		Valid bool
	}
	taggedNull struct {
		ID    orderID `bson:"id"`
		Valid bool
	}
	taggedValid struct {
		ID    orderID
		Valid bool `bson:"ok"`
	}
	nameFirst struct {
		Name string
		uuid.UUID
	}
	twoUnlessJSON struct {
		uuid.UUID
		Name string `json:"-"`
	}
	aroundNotUUID struct{ notUUID }
)

// modes are the ways in which a registry encodes structs.
func modes(t *testing.T, b func() *bsoncodec.RegistryBuilder) map[string]*bson.Registry {
	t.Helper()
	mgo := bson.NewMgoRegistry()
	if err := b().ApplyTo(mgo); err != nil {
		t.Fatal(err)
	}
	return map[string]*bson.Registry{"plans": build(t, b()), "WithoutPlans": build(t, b().WithoutPlans()), "mgo": mgo}
}

func standard() *bsoncodec.RegistryBuilder {
	return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[orderID]())
}

// A struct around a UUID, of which the driver would write the document {uuid: …}, is refused inside
// documents.
func TestWrappersAreRefused(t *testing.T) {
	u := testUUID
	for i, b := range []func() *bsoncodec.RegistryBuilder{
		standard,
		func() *bsoncodec.RegistryBuilder { return standard().UnregisteredAsUUID() },
		func() *bsoncodec.RegistryBuilder { return standard().UnregisteredAsBytes() },
		func() *bsoncodec.RegistryBuilder {
			return bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).RegisterUUIDType(reflect.TypeFor[orderID]()).EncodeAsString()
		},
	} {
		for mode, reg := range modes(t, b) {
			if mode != "plans" && i > 0 {
				continue
			}
			t.Run(mode, func(t *testing.T) {
				wantWrapperRefused(t, reg, embeddedID{u}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, embeddedOwn{orderID(u)}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, embeddedPtr{&u}, "RegisterDocumentType")
				wantWrapperRefused(t, reg, embeddedNil{uuid.NullUUID{UUID: u, Valid: true}}, "RegisterDocumentType")
				wantWrapperRefused(t, reg, nestedID{embeddedID{u}}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, genericID[string]{UUID: u}, "RegisterUUIDType(reflect.TypeFor[bsoncodec_test.genericID[string]]())")
				wantWrapperRefused(t, reg, privateID{u}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, privatePtr{&u}, "RegisterDocumentType")
				wantWrapperRefused(t, reg, privateFixed{uuidrep.StandardUUID{UUID: u}}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, privateNested{embeddedID{u}}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, privateJSON{orderID(u)}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, jsonID{u}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, aroundJSON{jsonID{u}}, "RegisterUUIDType")
				wantWrapperRefused(t, reg, deepPtr{embeddedPtr{&u}}, "RegisterDocumentType")
				wantWrapperRefused(t, reg, sql.Null[uuid.UUID]{V: u, Valid: true}, "RegisterNullUUIDType(reflect.TypeFor[sql.Null[uuid.UUID]]())")
				wantWrapperRefused(t, reg, sql.Null[orderID]{V: orderID(u), Valid: true}, "RegisterNullUUIDType")
				wantWrapperRefused(t, reg, sql.Null[embeddedID]{V: embeddedID{u}, Valid: true}, "RegisterNullUUIDType")
				wantWrapperRefused(t, reg, scannedID{ID: orderID(u)}, "RegisterNullUUIDType")
			})
		}
	}
}

func wantWrapperError(t *testing.T, err error, typ reflect.Type, wayOut string) {
	t.Helper()
	var e *bsoncodec.UnregisteredTypeError
	if !errors.As(err, &e) || e.Type != typ || !strings.Contains(err.Error(), wayOut) || !strings.Contains(err.Error(), "RegisterDocumentType") ||
		!strings.Contains(err.Error(), typ.PkgPath()+"."+typ.Name()) {
		t.Errorf("%v: got %v", typ, err)
	}
}

// everyOption are Options that do not change the struct tags.
var everyOption = bsoncodec.Options{OmitZeroStruct: true, NilMapAsEmpty: true, ZeroMaps: true, BinaryAsSlice: true}

func wantWrapperRefused[T any](t *testing.T, reg *bson.Registry, v T, wayOut string) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	type minSize struct {
		V T `bson:"v,minsize,truncate"`
	}
	for _, doc := range append(strangers(v), minSize{v}, struct{ V ptrs[T] }{ptrs[T]{v}}, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}, {Key: "v", Value: v}}) {
		for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
			raw, err := bsoncodec.Marshal(reg, doc, opts...)
			if raw != nil {
				t.Errorf("%T: got %v", doc, bson.Raw(raw))
			}
			wantWrapperError(t, err, typ, wayOut)
		}
		wantWrapperError(t, encodeWith(reg, doc), typ, wayOut)
	}
	_, err := bsoncodec.MarshalValue(reg, v)
	wantWrapperError(t, err, typ, wayOut)
	_, err = bsoncodec.MarshalExtJSON(reg, bson.M{"v": v}, true, false)
	wantWrapperError(t, err, typ, wayOut)

	stock := bson.NewRegistry()
	for _, value := range []any{bson.Binary{Subtype: 4, Data: octetsStandard}, bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: octetsStandard}}}, bson.D{}, nil, "x"} {
		one := marshal(t, stock, bson.D{{Key: "v", Value: value}})
		many := marshal(t, stock, bson.D{{Key: "v", Value: bson.A{value}}})
		for _, tt := range []struct {
			raw    bson.Raw
			target func() any
		}{
			{one, func() any { return new(struct{ V T }) }}, {one, func() any { return new(map[string]T) }}, {one, func() any { return new(minSize) }},
			{one, func() any { return &struct{ V any }{new(T)} }}, {one, func() any { return new(map[string]*T) }},
			{many, func() any { return new(struct{ V []T }) }}, {many, func() any { return new(struct{ V [1]T }) }},
			{many, func() any { return new(struct{ V ptrs[T] }) }}, {many, func() any { return new(map[string][]T) }},
		} {
			if _, ok := tt.target().(*map[string]*T); ok && value == nil {
				continue // a nil pointer holds nothing
			}
			if _, ok := tt.target().(*struct{ V any }); ok && zeroes(reg) {
				continue // the any holds nothing any more
			}
			for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
				wantWrapperError(t, bsoncodec.Unmarshal(reg, tt.raw, tt.target(), opts...), typ, wayOut)
			}
			wantWrapperError(t, decodeWith(reg, tt.raw, tt.target()), typ, wayOut)
		}
	}
}

// A whole document is what the driver makes of it.
func TestWrappersAsWholeDocuments(t *testing.T) {
	for mode, reg := range modes(t, standard) {
		t.Run(mode, func(t *testing.T) {
			wantWholeStored(t, reg, embeddedID{testUUID})
			wantWholeStored(t, reg, embeddedPtr{&testUUID})
			wantWholeStored(t, reg, genericID[string]{UUID: testUUID})
			wantWholeStored(t, reg, jsonID{testUUID})
			wantWholeStored(t, reg, sql.Null[uuid.UUID]{V: testUUID, Valid: true})
			wantWholeStored(t, reg, sql.Null[orderID]{V: orderID(testUUID), Valid: true})
			wantWholeStored(t, reg, scannedID{ID: orderID(testUUID)})
		})
	}
}

func wantWholeStored[T any](t *testing.T, reg *bson.Registry, v T) {
	t.Helper()
	want := encodeUsually(t, v)
	for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
		for _, doc := range []any{v, &v} {
			raw, err := bsoncodec.Marshal(reg, doc, opts...)
			if err != nil || !bytes.Equal(raw, want) {
				t.Errorf("%T: got %v, %v, want %v", doc, bson.Raw(raw), err, want)
			}
			text, err := bsoncodec.MarshalExtJSON(reg, doc, true, false, opts...)
			if err != nil || len(extJSON(want)) != len(text) {
				t.Errorf("%T: got %s, %v", doc, text, err)
			}
			var a, b, c T
			p := &b
			for i, err := range []error{
				bsoncodec.Unmarshal(reg, want, &a, opts...), bsoncodec.Unmarshal(reg, want, &p, opts...), bsoncodec.UnmarshalExtJSON(reg, text, true, &c, opts...),
			} {
				if err != nil {
					t.Errorf("%T, %d: %v", doc, i, err)
				}
			}
			var d T
			if err := decodeWith(reg, want, &d); err != nil {
				t.Errorf("%T: %v", doc, err)
			}
			for _, got := range []T{a, b, c, d} {
				if !reflect.DeepEqual(got, v) {
					t.Errorf("%T: got %v, want %v", doc, got, v)
				}
			}
		}
		if err := encodeWith(reg, v); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// extJSON returns raw as canonical Extended JSON.
func extJSON(raw bson.Raw) string {
	text, _ := bson.MarshalExtJSON(raw, true, false)
	return string(text)
}

// usualRegistry is a registry of the driver with the usual hand-written codec of uuid.UUID, and the same for orderID.
func usualRegistry() *bson.Registry {
	usual := bson.NewRegistry()
	for _, typ := range []reflect.Type{reflect.TypeFor[uuid.UUID](), reflect.TypeFor[orderID]()} {
		usual.RegisterTypeEncoder(typ, bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
			u := val.Convert(reflect.TypeFor[uuid.UUID]()).Interface().(uuid.UUID)
			return vw.WriteBinaryWithSubtype(u[:], 4)
		}))
		usual.RegisterTypeDecoder(typ, bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
			data, _, err := vr.ReadBinary()
			reflect.Copy(val, reflect.ValueOf(data))
			return err
		}))
	}
	return usual
}

func encodeUsually(t *testing.T, v any) bson.Raw {
	t.Helper()
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(usualRegistry())
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// zeroes reports whether reg sets a struct to zero before it decodes.
func zeroes(reg *bson.Registry) bool {
	v := struct{ V any }{1}
	return bsoncodec.Unmarshal(reg, []byte{5, 0, 0, 0, 0}, &v) == nil && v.V == nil
}

// ptrs is a defined slice.
type ptrs[T any] []T

// encodeWith encodes v with an Encoder of the driver, as a client does.
func encodeWith(reg *bson.Registry, v any) error {
	enc := bson.NewEncoder(bson.NewDocumentWriter(new(bytes.Buffer)))
	enc.SetRegistry(reg)
	return enc.Encode(v)
}

// decodeWith decodes raw with a Decoder of the driver, as a cursor does.
func decodeWith(reg *bson.Registry, raw bson.Raw, v any) error {
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	dec.SetRegistry(reg)
	return dec.Decode(v)
}

// What is a document on purpose, has methods of the driver or is no UUID stays what it was.
func TestOtherStructsAreTheDrivers(t *testing.T) {
	u := testUUID
	for mode, reg := range modes(t, standard) {
		for _, v := range []any{
			exportedID{u}, taggedID{u}, twoFields{u, "x"}, fixedID{uuidrep.StandardUUID{UUID: u}}, typedID{uuidrep.ID[int](u)},
			notUUID{bson.ObjectID{1}}, unscannedID{ID: orderID(u)}, taggedNull{ID: orderID(u)}, sql.Null[string]{V: "x"}, struct{ N uuid.NullUUID }{},
			taggedValid{ID: orderID(u)}, nameFirst{"x", u}, twoUnlessJSON{u, "x"},
			reflect.New(reflect.StructOf([]reflect.StructField{{Name: "UUID", Type: reflect.TypeFor[uuid.UUID](), Anonymous: true, Tag: "id"}})).Elem().Interface(), // a tag without a key
		} {
			raw := marshal(t, reg, bson.D{{Key: "v", Value: v}})
			target := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(v), Tag: `bson:"v"`}}))
			unmarshal(t, reg, raw, target.Interface())
			if got := target.Elem().Field(0).Interface(); !reflect.DeepEqual(got, v) {
				t.Errorf("%s: got %v, want %v", mode, got, v)
			}
		}
		if mode != "mgo" { // whose codec panics for some embedded fields that are not exported
			marshal(t, reg, bson.D{{Key: "v", Value: aroundNotUUID{}}})
		}
		raw := marshal(t, reg, bson.D{{Key: "v", Value: fixedID{uuidrep.StandardUUID{UUID: u}}}})
		wantStored(t, raw, 4, octetsStandard, "v")
	}
	// The kind [16]byte alone makes a UUID, unless the builder says that it is plain bytes.
	_, err := bsoncodec.Marshal(build(t, standard()), bson.M{"v": strangeID{}})
	wantWrapperError(t, err, reflect.TypeFor[strangeID](), "RegisterUUIDType")
	stranger := reflect.TypeFor[strangerID]()
	for _, b := range []*bsoncodec.RegistryBuilder{standard().UnregisteredAsBytes(), standard().RegisterBytesType(stranger)} {
		raw := marshal(t, build(t, b), bson.M{"v": strangeID{}})
		if raw.Lookup("v").Type != bson.TypeEmbeddedDocument {
			t.Errorf("got %v", raw)
		}
	}
	// A json tag is a struct tag if the client says so.
	reg := registry(t, uuidrep.Standard)
	type doc struct{ V jsonID }
	opts := bsoncodec.Options{UseJSONStructTags: true}
	raw, err := bsoncodec.Marshal(reg, doc{jsonID{u}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	wantStored(t, raw, 4, octetsStandard, "v", "id")
	var out doc
	if err := bsoncodec.Unmarshal(reg, raw, &out, opts); err != nil || out.V.UUID != u {
		t.Errorf("got %v, %v", out, err)
	}
	type skipped struct {
		uuid.UUID
		Name string `json:"-"`
	}
	_, err = bsoncodec.Marshal(reg, bson.M{"v": skipped{UUID: u}}, opts)
	wantWrapperError(t, err, reflect.TypeFor[skipped](), "RegisterDocumentType")
	allowed := build(t, standard().RegisterDocumentType(reflect.TypeFor[skipped]()))
	if raw, err = bsoncodec.Marshal(allowed, bson.M{"v": skipped{UUID: u}}, opts); err != nil {
		t.Fatal(err)
	}
	wantStored(t, raw, 4, octetsStandard, "v", "uuid")
	wantStored(t, marshal(t, reg, bson.M{"v": skipped{UUID: u}}), 4, octetsStandard, "v", "uuid")
}

// A type with a codec, a hook or a marshaling method is not refused, each in its direction.
func TestWrappersWithCodecs(t *testing.T) {
	typ := reflect.TypeFor[embeddedID]()
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return standard().With(func(reg *bson.Registry) { reg.RegisterTypeEncoder(typ, stringEncoder("mine")) })
	}) {
		raw := marshal(t, reg, struct{ V embeddedID }{embeddedID{testUUID}})
		if raw.Lookup("v").StringValue() != "mine" {
			t.Errorf("%s: got %v", mode, raw)
		}
		wantWrapperError(t, decode(t, reg, raw, new(struct{ V embeddedID })), typ, "RegisterUUIDType")
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return standard().With(func(reg *bson.Registry) {
			reg.RegisterInterfaceEncoder(reflect.TypeFor[texter](), stringEncoder("hook"))
			reg.RegisterInterfaceDecoder(reflect.TypeFor[interface{ UnmarshalText([]byte) error }](), bson.ValueDecoderFunc(
				func(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error { return vr.Skip() }))
		})
	}) {
		raw := marshal(t, reg, struct{ V embeddedID }{embeddedID{testUUID}})
		if raw.Lookup("v").StringValue() != "hook" {
			t.Errorf("%s: got %v", mode, raw)
		}
		unmarshal(t, reg, raw, new(struct{ V embeddedID }))
	}
	// Methods with a pointer receiver are called for addressable values only.
	for mode, reg := range modes(t, standard) {
		v := pointerMethods{testUUID}
		wantStored(t, marshal(t, reg, bson.M{"v": &v}), 4, octetsStandard, "v")
		wantStored(t, marshal(t, reg, &struct{ V pointerMethods }{v}), 4, octetsStandard, "v")
		for _, doc := range []any{bson.M{"v": v}, struct{ V pointerMethods }{v}, bson.D{{Key: "p", Value: &v}, {Key: "v", Value: v}}} {
			_, err := encode(t, reg, doc)
			var e *bsoncodec.UnregisteredTypeError
			if !errors.As(err, &e) || e.Path != "v" || !strings.Contains(err.Error(), "pointer receiver") {
				t.Errorf("%s, %T: got %v", mode, doc, err)
			}
		}
	}
}

// wrapped has structs around UUIDs in every place, and their pointers.
type wrapped struct {
	V embeddedID
	P *embeddedID
	N *embeddedID
	S []embeddedID
	Q []*embeddedID
	A [2]embeddedID
	M map[string]embeddedID
	G genericID[int]
	I privateID
	J privateJSON
	T nestedID
	L sql.Null[embeddedID]
	X any
}

func wrappedTypes(b *bsoncodec.RegistryBuilder) *bsoncodec.RegistryBuilder {
	for _, t := range []reflect.Type{
		reflect.TypeFor[embeddedID](), reflect.TypeFor[genericID[int]](), reflect.TypeFor[privateID](), reflect.TypeFor[privateJSON](), reflect.TypeFor[nestedID](),
	} {
		b.RegisterUUIDType(t)
	}
	return b.RegisterNullUUIDType(reflect.TypeFor[sql.Null[embeddedID]]())
}

// A struct around a UUID that is registered is its UUID in every place, by each way to write one.
func TestRegisteredWrappers(t *testing.T) {
	e := embeddedID{testUUID}
	in := wrapped{V: e, P: &e, S: []embeddedID{e, {}}, Q: []*embeddedID{&e, nil}, A: [2]embeddedID{e}, M: map[string]embeddedID{"k": e},
		G: genericID[int]{UUID: testUUID}, I: privateID{testUUID}, J: privateJSON{orderID(testUUID)}, T: nestedID{e},
		L: sql.Null[embeddedID]{V: e, Valid: true}, X: testUUID}
	for _, tt := range table {
		for _, set := range []func(*bsoncodec.RegistryBuilder){
			func(*bsoncodec.RegistryBuilder) {}, func(b *bsoncodec.RegistryBuilder) { b.EncodeAsString() },
			func(b *bsoncodec.RegistryBuilder) { b.EncodeZeroAsNull() },
		} {
			for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
				b := wrappedTypes(bsoncodec.NewRegistryBuilder(tt.rep))
				set(b)
				return b
			}) {
				for _, opts := range [][]bsoncodec.Options{nil, {{NilMapAsEmpty: true}}} {
					for _, v := range []any{in, &in} {
						data, err := bsoncodec.Marshal(reg, v, opts...)
						if err != nil {
							t.Fatal(err)
						}
						raw := bson.Raw(data)
						if raw.Lookup("v").Type == bson.TypeString {
							if raw.Lookup("i").StringValue() != testUUID.String() {
								t.Errorf("%s: got %v", mode, raw)
							}
						} else {
							for _, path := range [][]string{{"v"}, {"p"}, {"s", "0"}, {"q", "0"}, {"a", "0"}, {"m", "k"}, {"g"}, {"i"}, {"j"}, {"t"}, {"l"}} {
								wantStored(t, raw, tt.subtype, tt.octets, path...)
							}
						}
						var out wrapped
						if err := bsoncodec.Unmarshal(reg, raw, &out, opts...); err != nil {
							t.Fatal(err)
						}
						if out.X = in.X; !reflect.DeepEqual(in, out) {
							t.Errorf("%s, %v: got %v, want %v", mode, tt.rep, out, in)
						}
						out = wrapped{}
						if err := decodeWith(reg, raw, &out); err != nil {
							t.Fatal(err)
						}
						if out.X = in.X; !reflect.DeepEqual(in, out) {
							t.Errorf("%s, %v: got %v, want %v", mode, tt.rep, out, in)
						}
					}
				}
			}
		}
	}
}

// SetImplicitType takes a struct around a UUID too, and a key of a map is the text of the UUID.
func TestWrappersInAnyAndAsKeys(t *testing.T) {
	type plainID struct{ id uuid.UUID }
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).SetImplicitType(reflect.TypeFor[privateID]()).RegisterUUIDType(reflect.TypeFor[plainID]())
	}) {
		raw := marshal(t, reg, bson.D{{Key: "v", Value: privateID{testUUID}}, {Key: "k", Value: map[plainID]int32{{testUUID}: 1}}})
		var d bson.D
		unmarshal(t, reg, raw, &d)
		if d[0].Value != any(privateID{testUUID}) || raw.Lookup("k", testUUID.String()).Type != bson.TypeInt32 {
			t.Errorf("%s: got %#v", mode, d)
		}
		var m map[string]any
		unmarshal(t, reg, raw, &m)
		if m["v"] != any(privateID{testUUID}) {
			t.Errorf("%s: got %#v", mode, m)
		}
		var k struct{ K map[plainID]int32 }
		unmarshal(t, reg, raw, &k)
		if len(k.K) != 1 || k.K[plainID{testUUID}] != 1 {
			t.Errorf("%s: got %v", mode, k)
		}
	}
}

// What the driver wrote for a struct around a UUID is read, and what lost its UUID is an error that says so.
func TestRegisteredWrappersReadTheDriversDocuments(t *testing.T) {
	type doc struct {
		V embeddedID
		T nestedID
		I privateID
	}
	driverWrote, err := bson.Marshal(bson.D{{Key: "v", Value: embeddedID{testUUID}}, {Key: "t", Value: nestedID{embeddedID{testUUID}}}})
	if err != nil {
		t.Fatal(err)
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return wrappedTypes(bsoncodec.NewRegistryBuilder(uuidrep.Standard)).AlsoDecodeSubtype0()
	}) {
		before := doc{V: embeddedID{uuid.Max}, I: privateID{uuid.Max}}
		out := before
		// nestedID embeds a type that is not exported: the driver leaves it out.
		if err := decode(t, reg, driverWrote, &out); err == nil || !strings.Contains(err.Error(), "lost") || out.V.UUID != testUUID {
			t.Errorf("%s: got %v, %v", mode, out, err)
		}
		for _, v := range []bson.D{
			{}, {{Key: "id", Value: testUUID}}, {{Key: "uuid", Value: testUUID}, {Key: "more", Value: 1}}, {{Key: "uuid", Value: "x"}},
			{{Key: "uuid", Value: bson.Binary{Subtype: 3, Data: octetsStandard}}}, {{Key: "uuid", Value: bson.D{}}},
		} {
			out := before
			err := decode(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: v}}), &out)
			if err == nil || !strings.Contains(err.Error(), "bsoncodec: cannot decode") || out != before && !zeroes(reg) {
				t.Errorf("%s, %v: got %v, %v", mode, v, out, err)
			}
		}
		for _, v := range []bson.D{{{Key: "uuid", Value: testUUID}}, {{Key: "UUID", Value: bson.Binary{Data: octetsStandard}}}} {
			out := before
			if unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: v}}), &out); out.V.UUID != testUUID {
				t.Errorf("%s, %v: got %v", mode, v, out)
			}
		}
		out = before
		if unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: bson.D{{Key: "uuid", Value: nil}}}, {Key: "i", Value: nil}}), &out); out != (doc{}) {
			t.Errorf("%s: got %v", mode, out)
		}
	}
	type tagged struct {
		uuid.UUID `bson:"theID,omitempty"`
	}
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[tagged]()).RegisterUUIDType(reflect.TypeFor[jsonID]()))
	var json struct{ V jsonID }
	unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: bson.D{{Key: "uuid", Value: testUUID}}}}), &json)
	if json.V.UUID != testUUID {
		t.Errorf("the document of a struct with a json tag: got %v", json)
	}
	for _, key := range []string{"theID", "theid"} {
		var out struct{ V tagged }
		unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: bson.D{{Key: key, Value: testUUID}}}}), &out)
		if out.V.UUID != testUUID {
			t.Errorf("%s: got %v", key, out)
		}
	}
	if err := decode(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: bson.D{{Key: "uuid", Value: testUUID}}}}), new(struct{ V tagged })); err == nil {
		t.Error("the name of a field with a struct tag is read")
	}
	closed := build(t, wrappedTypes(bsoncodec.NewRegistryBuilder(uuidrep.Standard)))
	var e *uuidrep.SubtypeError
	if err := bsoncodec.Unmarshal(closed, driverWrote, new(doc)); !errors.As(err, &e) || !strings.Contains(err.Error(), "AlsoDecodeSubtype0") {
		t.Errorf("got %v", err)
	}
}

// RegisterDocumentType keeps the documents that the driver writes, and reads what is stored otherwise.
func TestRegisterDocumentType(t *testing.T) {
	type doc struct {
		E embeddedID
		N uuid.NullUUID
		Z uuid.NullUUID
		S sql.Null[orderID]
		P *uuid.NullUUID
		L []embeddedID
		I privateID
		R embeddedPtr
	}
	u := testUUID
	null := uuid.NullUUID{UUID: u, Valid: true}
	in := doc{E: embeddedID{u}, N: null, S: sql.Null[orderID]{V: orderID(u), Valid: true}, P: &null, L: []embeddedID{{u}}, I: privateID{u}, R: embeddedPtr{&u}}
	asDocuments := func(b *bsoncodec.RegistryBuilder) *bsoncodec.RegistryBuilder {
		for _, t := range []reflect.Type{
			reflect.TypeFor[embeddedID](), reflect.TypeFor[uuid.NullUUID](), reflect.TypeFor[sql.Null[orderID]](), reflect.TypeFor[privateID](), reflect.TypeFor[embeddedPtr](),
		} {
			b.RegisterDocumentType(t).RegisterDocumentType(t)
		}
		return b
	}
	want := encodeUsually(t, in)
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return asDocuments(bsoncodec.NewRegistryBuilder(uuidrep.Standard)) }) {
		if raw := marshal(t, reg, in); !bytes.Equal(raw, want) {
			t.Errorf("%s: got %v, want %v", mode, raw, want)
		}
		var out, back doc
		unmarshal(t, reg, want, &out)
		if err := decodeWith(usualRegistry(), want, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(out, back) || out.N != null || out.E != in.E || out.S != in.S {
			t.Errorf("%s: got %v, the usual codec %v", mode, out, back)
		}
		var whole embeddedID
		if unmarshal(t, reg, marshal(t, bson.NewRegistry(), bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: u[:]}}, {Key: "more", Value: 1}}), &whole); whole.UUID != u {
			t.Errorf("%s: a whole document: got %v", mode, whole)
		}
		if err := decode(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: u}}), new(struct{ V embeddedPtr })); err == nil {
			t.Errorf("%s: a UUID was decoded into a struct around a pointer", mode)
		}
		// What programs with the next version write.
		next := marshal(t, build(t, wrappedTypes(standard()).RegisterNullUUIDType(reflect.TypeFor[sql.Null[orderID]]())), bson.D{
			{Key: "e", Value: in.E}, {Key: "n", Value: in.N}, {Key: "z", Value: in.Z}, {Key: "s", Value: in.S}, {Key: "p", Value: in.P}, {Key: "l", Value: in.L}, {Key: "i", Value: in.I},
		})
		wantStored(t, next, 4, octetsStandard, "n")
		out = doc{Z: null}
		unmarshal(t, reg, next, &out)
		if out.R = in.R; !reflect.DeepEqual(out, in) {
			t.Errorf("%s: got %v, want %v", mode, out, in)
		}
	}
	for want, b := range map[string]*bsoncodec.RegistryBuilder{
		"as a UUID and as a document": bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[embeddedID]()).RegisterUUIDType(reflect.TypeFor[embeddedID]()),
		"<nil> cannot":                bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(nil),
		"uuid.UUID cannot":            bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[uuid.UUID]()),
		"twoFields cannot":            bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[twoFields]()),
		"notUUID cannot":              bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[notUUID]()),
		"representation of its own":   bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[uuidrep.StandardUUID]()),
		"twoUnlessJSON cannot be":     bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[twoUnlessJSON]()),
		"twoFields cannot be a UUID":  bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[twoFields]()),
	} {
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// recursivePointer and its relatives are within themselves.
type (
	recursivePointer *recursivePointer
	recursiveID      struct{ *recursiveID }
	aroundItself     struct{ P recursivePointer }
	privateItself    struct{ p recursivePointer }
)

// Places that are not refused: what is inline is part of the document around it, and a key of a map is text.
func TestWrappersThatAreNotRefused(t *testing.T) {
	type inline struct {
		E embeddedID `bson:",inline"`
	}
	// The methods are those of a UUID with a key.
	type aroundFixed struct {
		uuidrep.JavaLegacyUUID `bson:"ref"`
	}
	type inlineFixed struct {
		E aroundFixed `bson:",inline"`
		N int32
	}
	type aroundFixedPtr struct {
		*uuidrep.StandardUUID `bson:"ref"`
	}
	type inlineFixedPtr struct {
		E aroundFixedPtr `bson:",inline"`
	}
	for mode, reg := range modes(t, standard) {
		for _, v := range []any{inline{embeddedID{testUUID}}, struct{ M map[embeddedID]int32 }{map[embeddedID]int32{{testUUID}: 1}}, recursiveID{}, aroundItself{}, privateItself{},
			inlineFixed{aroundFixed{uuidrep.JavaLegacyUUID{UUID: testUUID}}, 1}, inlineFixedPtr{aroundFixedPtr{&uuidrep.StandardUUID{UUID: testUUID}}}} {
			if _, ok := v.(recursiveID); ok && mode == "mgo" {
				continue // its codec has embedded fields that are not exported
			}
			want := encodeUsually(t, v)
			for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
				raw, err := bsoncodec.Marshal(reg, v, opts...)
				if err != nil || !bytes.Equal(raw, want) {
					t.Errorf("%s, %T: got %v, %v, want %v", mode, v, bson.Raw(raw), err, want)
				}
				out := reflect.New(reflect.TypeOf(v))
				if err := bsoncodec.Unmarshal(reg, raw, out.Interface(), opts...); err != nil || !reflect.DeepEqual(out.Elem().Interface(), v) {
					t.Errorf("%s, %T: got %v, %v", mode, v, out.Elem(), err)
				}
			}
		}
	}
	_, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[aroundItself]()).Build()
	if err == nil {
		t.Error("a struct around no UUID was registered")
	}
}

// What is inline loses the value of a field that is not exported, and the methods of its type.
func TestInlineWrappersAreRefused(t *testing.T) {
	type ofPrivate struct {
		N int
		V privateID `bson:",inline"`
	}
	type ofPointer struct {
		V *privateJSON `bson:",inline"`
	}
	type ofFixed struct {
		V uuidrep.JavaLegacyUUID `bson:"v,inline"`
	}
	type ofJSON struct {
		V privateID `bson:",omitempty" json:",inline"`
	}
	type ofJSONTag struct {
		V privateID `json:",inline"`
	}
	type ofNoText struct {
		V registeredNoText `bson:",inline"`
	}
	type ofEncodeOnly struct {
		V privateEncodeOnly `bson:",inline"`
	}
	type ofDecodeOnly struct {
		V privateDecodeOnly `bson:",inline"`
	}
	type deep struct {
		D struct {
			E *ofPointer `bson:",inline"`
		} `bson:",inline"`
	}
	useJSON := bsoncodec.Options{UseJSONStructTags: true}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return standard().RegisterUUIDType(reflect.TypeFor[privateID]()).RegisterUUIDType(reflect.TypeFor[registeredNoText]())
	}) {
		for _, c := range []struct {
			v    any
			opts []bsoncodec.Options
		}{
			{ofPrivate{V: privateID{testUUID}}, nil}, {ofPointer{}, nil}, {ofNoText{}, nil}, {ofFixed{}, nil}, {deep{}, nil}, {ofJSONTag{}, []bsoncodec.Options{useJSON}},
			{ofPrivate{}, []bsoncodec.Options{everyOption}}, {struct{ V []ofFixed }{make([]ofFixed, 1)}, nil}, {struct {
				V fixedID `bson:",inline"`
			}{}, nil},
		} {
			_, err := bsoncodec.Marshal(reg, c.v, c.opts...)
			raw := encodeUsually(t, bson.M{"v": bson.A{bson.M{"v": 1}}, "n": 1})
			read := bsoncodec.Unmarshal(reg, raw, reflect.New(reflect.TypeOf(c.v)).Interface(), c.opts...)
			for _, err := range []error{err, read} {
				var e *bsoncodec.UnregisteredTypeError
				if !errors.As(err, &e) || !strings.Contains(err.Error(), "has the tag inline") || !strings.Contains(err.Error(), "give it a key") {
					t.Errorf("%s, %T: got %v", mode, c.v, err)
				}
			}
		}
		// A bson tag comes before a json tag, and an unexported field that the driver leaves out is not looked at.
		for _, c := range []struct {
			v    any
			opts []bsoncodec.Options
		}{
			{ofJSON{V: privateID{testUUID}}, []bsoncodec.Options{useJSON}}, {ofJSON{V: privateID{testUUID}}, nil},
			{ofJSONTag{}, nil}, {struct {
				V justText `bson:",inline"`
			}{}, nil}, {struct {
				V struct{} `bson:",inline"`
			}{}, nil},
			{struct {
				v privateID `bson:",inline"`
				N int
			}{privateID{testUUID}, 1}, nil},
		} {
			if _, err := bsoncodec.Marshal(reg, c.v, c.opts...); err != nil {
				t.Errorf("%s, %T: %v", mode, c.v, err)
			}
		}
		// A method for one direction is not called, and in the other direction there is none.
		empty := []byte{5, 0, 0, 0, 0}
		for _, v := range []any{ofEncodeOnly{}, ofDecodeOnly{}} {
			_, err := bsoncodec.Marshal(reg, v)
			for _, err := range []error{err, bsoncodec.Unmarshal(reg, empty, reflect.New(reflect.TypeOf(v)).Interface())} {
				if !errors.As(err, new(*bsoncodec.UnregisteredTypeError)) || !strings.Contains(err.Error(), "has the tag inline") {
					t.Errorf("%s, %T: got %v", mode, v, err)
				}
			}
		}
	}
}

// The types below are inline in other structs.
type (
	registeredNoText  struct{ id uuid.UUID }
	privateEncodeOnly struct{ id uuid.UUID }
	privateDecodeOnly struct{ id uuid.UUID }
	textAndMore       struct {
		id   uuid.UUID
		more int
	}
	justText struct{ text string }
)

// Types are judged once, whichever goroutine meets them first.
func TestWrappersConcurrently(t *testing.T) {
	reg := build(t, standard().RegisterUUIDType(reflect.TypeFor[privateID]()))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_, err := bsoncodec.Marshal(reg, bson.M{"a": 1, "v": embeddedID{}})
				var e *bsoncodec.UnregisteredTypeError
				if !errors.As(err, &e) || e.Path != "v" {
					t.Errorf("got %v", err)
				}
				raw, err := bsoncodec.Marshal(reg, struct{ V []privateID }{[]privateID{{testUUID}}})
				var out struct{ V []privateID }
				if err == nil {
					err = bsoncodec.Unmarshal(reg, raw, &out)
				}
				if err != nil || len(out.V) != 1 || out.V[0].id != testUUID {
					t.Errorf("got %v, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}

// Null and undefined take the octets of a struct around a UUID, with plans and without.
func TestNullIntoRegisteredWrappers(t *testing.T) {
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return wrappedTypes(bsoncodec.NewRegistryBuilder(uuidrep.Standard)) }) {
		for _, null := range []any{nil, bson.Undefined{}} {
			raw := marshal(t, reg, bson.M{"v": null})
			out := struct{ V genericID[int] }{genericID[int]{UUID: testUUID, cache: "kept"}}
			if unmarshal(t, reg, raw, &out); out.V != (genericID[int]{cache: "kept"}) && !zeroes(reg) {
				t.Errorf("%s, %v: got %v", mode, null, out)
			}
			out.V = genericID[int]{UUID: testUUID, cache: "kept"}
			if err := bsoncodec.UnmarshalValue(reg, raw.Lookup("v"), &out.V); err != nil || out.V != (genericID[int]{cache: "kept"}) {
				t.Errorf("%s, %v: got %v, %v", mode, null, out, err)
			}
		}
	}
}

// Whatever is registered says what an empty document is.
func TestEmptyDocumentsIntoUUIDs(t *testing.T) {
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return wrappedTypes(standard()) }) {
		raw := marshal(t, reg, bson.M{"v": bson.D{}, "s": bson.A{bson.D{}}})
		for _, target := range []any{
			new(struct{ V uuid.UUID }), new(struct{ V *orderID }), new(struct{ V privateID }), new(struct{ V embeddedID }), new(struct{ V uuid.NullUUID }),
			new(struct{ S []uuid.UUID }), new(struct{ S []privateID }), new(struct{ S [1]orderID }),
		} {
			err := bsoncodec.Unmarshal(reg, raw, target)
			if err == nil || !strings.Contains(err.Error(), "it is empty") || !strings.Contains(err.Error(), "lost") {
				t.Errorf("%s, %T: got %v", mode, target, err)
			}
			if err := decodeWith(reg, raw, target); err == nil || !strings.Contains(err.Error(), "it is empty") {
				t.Errorf("%s, %T: got %v", mode, target, err)
			}
		}
		var u uuid.UUID
		if err := decodeWith(reg, bson.Raw{5, 0, 0, 0, 0}, &u); err == nil || !strings.Contains(err.Error(), "it is empty") {
			t.Errorf("%s, a whole document: got %v", mode, err)
		}
		full := marshal(t, reg, bson.M{"v": bson.D{{Key: "x", Value: 1}}})
		if err := bsoncodec.Unmarshal(reg, full, new(struct{ V uuid.UUID })); err == nil || strings.Contains(err.Error(), "empty") {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

var _ = strangeID{}.strangerID // staticcheck does not see that reflection reads it

func (i privateID) MarshalText() ([]byte, error) { return i.id.MarshalText() }

func (i privatePtr) MarshalText() ([]byte, error) { return i.id.MarshalText() }

func (i privateFixed) MarshalText() ([]byte, error) { return i.id.MarshalText() }

func (i privateNested) MarshalText() ([]byte, error) { return i.id.MarshalText() }

func (i *privateJSON) MarshalJSON() ([]byte, error) { return json.Marshal(uuid.UUID(i.id)) }

func (*scannedID) Scan(any) error { return nil }

func (i *pointerMethods) MarshalText() ([]byte, error) { return i.id.MarshalText() }

func (i *pointerMethods) MarshalBSONValue() (byte, []byte, error) {
	return uuidrep.StandardUUID{UUID: i.id}.MarshalBSONValue()
}

var _ = genericID[int]{}.cache

func (*taggedNull) Scan(any) error { return nil }

func (*taggedValid) Scan(any) error { return nil }

func (privateItself) MarshalText() ([]byte, error) { return nil, nil }

var _ = privateItself{}.p

func (privateEncodeOnly) MarshalBSONValue() (byte, []byte, error) { panic("called") }

func (*privateDecodeOnly) UnmarshalBSONValue(byte, []byte) error { panic("called") }

func (v textAndMore) MarshalText() ([]byte, error) { return v.id.MarshalText() }

func (v justText) MarshalText() ([]byte, error) { return []byte(v.text), nil }

var _, _, _, _ = registeredNoText{}.id, privateEncodeOnly{}.id, privateDecodeOnly{}.id, textAndMore{}.more

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
