package bsoncodec_test

import (
	"bytes"
	"encoding"
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// documentModes are registries of a representation that have the type as a document.
func documentModes(t *testing.T, r uuidrep.Representation, typ reflect.Type) map[string]*bson.Registry {
	t.Helper()
	return modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(r).RegisterDocumentType(typ)
	})
}

// wantDocumentOfFields checks that v, registered as a document, is stored as the driver stores named, an equal struct
// without embedded fields, and read back, in every place of a document. The UUIDs have a representation of their own.
func wantDocumentOfFields[T, N any](t *testing.T, v T, named N) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	values, names := strangers(v), strangers(named)
	values = append(values, v, &v, ptr(&v), struct{ V []*T }{[]*T{&v, nil}}, struct{ V *T }{})
	names = append(names, named, &named, ptr(&named), struct{ V []*N }{[]*N{&named, nil}}, struct{ V *N }{})
	for _, r := range allRepresentations {
		for mode, reg := range documentModes(t, r, typ) {
			if mode == "mgo" && typ == reflect.TypeFor[promotedReceiver]() {
				continue // its codec stores embedded fields that are not exported
			}
			for _, opts := range [][]bsoncodec.Options{nil, {{UseJSONStructTags: true}}} {
				for i, doc := range values {
					usual := names[i]
					want, err := bson.Marshal(usual)
					if err != nil {
						t.Fatal(err)
					}
					if mode == "mgo" {
						want = encodeInMgo(t, usual)
					}
					got, err := bsoncodec.Marshal(reg, doc, opts...)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("%v, %s, %T: got %v, %v, want %v", r, mode, doc, bson.Raw(got), err, bson.Raw(want))
						continue
					}
					wantText, err := bson.MarshalExtJSON(bson.Raw(want), true, false)
					if err != nil {
						t.Fatal(err)
					}
					text, err := bsoncodec.MarshalExtJSON(reg, doc, true, false, opts...)
					if err != nil || !bytes.Equal(text, wantText) {
						t.Errorf("%v, %s, %T: got %s, %v, want %s", r, mode, doc, text, err, wantText)
					}
				}
				rv, err := bsoncodec.MarshalValue(reg, &v, opts...)
				if want := encodeUsuallyValue(t, named); err != nil || !rv.Equal(want) {
					t.Errorf("%v, %s: got %v, %v, want %v", r, mode, rv, err, want)
				}
				wantDocumentRead(t, reg, v, named, opts)
			}
		}
	}
}

func encodeInMgo(t *testing.T, v any) bson.Raw {
	t.Helper()
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(bson.NewMgoRegistry())
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func encodeUsuallyValue(t *testing.T, v any) bson.RawValue {
	t.Helper()
	typ, data, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return bson.RawValue{Type: typ, Value: data}
}

// wantDocumentRead decodes what the driver writes for named into every place that can hold a T.
func wantDocumentRead[T, N any](t *testing.T, reg *bson.Registry, v T, named N, opts []bsoncodec.Options) {
	t.Helper()
	one, err := bson.Marshal(bson.M{"v": named})
	if err != nil {
		t.Fatal(err)
	}
	list, err := bson.Marshal(bson.M{"v": bson.A{named}})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := bson.Marshal(named)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		raw          bson.Raw
		target, want any
	}{
		{one, new(struct{ V T }), &struct{ V T }{v}},
		{one, new(struct{ V *T }), &struct{ V *T }{&v}},
		{one, &struct{ V *T }{new(T)}, &struct{ V *T }{&v}},
		{one, new(struct{ V **T }), &struct{ V **T }{ptr(&v)}},
		{one, new(map[string]T), &map[string]T{"v": v}},
		{one, new(map[string]*T), &map[string]*T{"v": &v}},
		{list, new(struct{ V []T }), &struct{ V []T }{[]T{v}}},
		{list, new(struct{ V []*T }), &struct{ V []*T }{[]*T{&v}}},
		{list, new(struct{ V [1]T }), &struct{ V [1]T }{[1]T{v}}},
		{list, new(map[string][]T), &map[string][]T{"v": {v}}},
		{whole, new(T), &v},
		{whole, new(*T), ptr(&v)},
		{whole, ptr(new(T)), ptr(&v)},
	} {
		// A target is decoded into again, which shows what is left of it.
		for range 2 {
			if err := bsoncodec.Unmarshal(reg, c.raw, c.target, opts...); err != nil || !reflect.DeepEqual(c.target, c.want) {
				t.Errorf("%T: got %+v, %v, want %+v", c.target, c.target, err, c.want)
			}
		}
	}
	for name, decode := range map[string]func(any) error{
		"UnmarshalExtJSON": func(out any) error {
			return bsoncodec.UnmarshalExtJSON(reg, []byte(bson.Raw(whole).String()), true, out, opts...)
		},
		"UnmarshalValue": func(out any) error { return bsoncodec.UnmarshalValue(reg, bson.Raw(one).Lookup("v"), out, opts...) },
	} {
		out := new(T)
		if err := decode(out); err != nil || !reflect.DeepEqual(*out, v) {
			t.Errorf("%s: got %+v, %v, want %+v", name, *out, err, v)
		}
	}
	null, err := bson.Marshal(bson.M{"v": nil})
	if err != nil {
		t.Fatal(err)
	}
	var zero, was = *new(T), struct{ V T }{v}
	if err := bsoncodec.Unmarshal(reg, null, &was, opts...); err != nil || !reflect.DeepEqual(was.V, zero) {
		t.Errorf("null: got %+v, %v", was, err)
	}
	// The UUID alone is what the promoted method wrote. The other fields are lost in it.
	bare, err := bson.Marshal(bson.M{"v": uuidrep.StandardUUID{UUID: testUUID}})
	if err != nil {
		t.Fatal(err)
	}
	if err := bsoncodec.Unmarshal(reg, bare, new(struct{ V T }), opts...); err == nil {
		t.Errorf("a UUID was decoded into a %T", v)
	}
}

// A type that is refused for the method of a field that it embeds is stored as a document if it is registered as one.
func TestRegisterDocumentTypeOfPromotedMethods(t *testing.T) {
	u := uuidrep.StandardUUID{UUID: testUUID}
	id := uuidrep.ID[promotedCustomer](testUUID)
	wantDocumentOfFields(t, promotedCustomer{id, "x"}, struct {
		A uuidrep.ID[promotedCustomer] `bson:"_id"`
		B string                       `bson:"name"`
	}{id, "x"})
	wantDocumentOfFields(t, promotedAddress{"x", u}, struct {
		A string               `bson:"city"`
		B uuidrep.StandardUUID `bson:"standarduuid"`
	}{"x", u})
	wantDocumentOfFields(t, promotedPointer{&u, "x"}, struct {
		A *uuidrep.StandardUUID `bson:"standarduuid"`
		B string                `bson:"name"`
	}{&u, "x"})
	wantDocumentOfFields(t, promotedReceiver{receiverMethods{}, "x"}, struct {
		B string `bson:"name"`
	}{"x"})
	wantDocumentOfFields(t, promotedGeneric[int32]{uuidrep.ID[int32](testUUID), 7}, struct {
		A uuidrep.ID[int32] `bson:"id"`
		B int32             `bson:"value"`
	}{uuidrep.ID[int32](testUUID), 7})
	wantDocumentOfFields(t, PromotedDocument{DocumentMethods{u}, "x"}, struct {
		A DocumentMethods `bson:"documentmethods"`
		B string          `bson:"name"`
	}{DocumentMethods{u}, "x"})
	wantDocumentOfFields(t, promotedByTag{u, "x"}, struct {
		A uuidrep.StandardUUID `bson:"id"`
		B string               `bson:"n"`
	}{u, "x"})
}

type (
	// DocumentMethods has the methods for whole documents, and is exported.
	DocumentMethods struct{ U uuidrep.StandardUUID }

	// PromotedDocument has them from a field.
	PromotedDocument struct {
		DocumentMethods
		Name string
	}
	promotedByTag struct {
		uuidrep.StandardUUID `bson:"id" json:"other"`
		Name                 string `bson:"n" json:"-"`
	}
)

// The UUIDs in the document are those of the registry.
func TestRepresentationInDocumentTypes(t *testing.T) {
	type generic = promotedGeneric[uuid.UUID]
	v := generic{uuidrep.ID[uuid.UUID](testUUID), testUUID}
	for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy} {
		b, err := uuidrep.NewBinaryWithRepresentation(testUUID, r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bson.Marshal(bson.D{{Key: "v", Value: bson.D{{Key: "id", Value: v.ID}, {Key: "value", Value: b}}}})
		if err != nil {
			t.Fatal(err)
		}
		for mode, reg := range documentModes(t, r, reflect.TypeFor[generic]()) {
			for _, doc := range []any{bson.M{"v": v}, bson.M{"v": &v}, struct{ V generic }{v}, &struct{ V *generic }{&v}} {
				if got := marshal(t, reg, doc); !bytes.Equal(got, want) {
					t.Errorf("%v, %s: got %v, want %v", r, mode, got, bson.Raw(want))
				}
			}
			var back struct{ V generic }
			if unmarshal(t, reg, want, &back); back.V != v {
				t.Errorf("%v, %s: got %v", r, mode, back)
			}
		}
	}
}

// A client's "json" struct tags are those of the document.
func TestJSONTagsOfDocumentTypes(t *testing.T) {
	type tagged struct {
		uuidrep.StandardUUID `json:"_id"`
		Name                 string `json:"label"`
		Skipped              string `json:"-"`
	}
	v := tagged{uuidrep.StandardUUID{UUID: testUUID}, "x", ""}
	for mode, reg := range documentModes(t, uuidrep.Standard, reflect.TypeFor[tagged]()) {
		for _, first := range []string{"_id", "standarduuid"} {
			for range 2 {
				var opts []bsoncodec.Options
				want := bson.D{{Key: "standarduuid", Value: v.StandardUUID}, {Key: "name", Value: "x"}, {Key: "skipped", Value: ""}}
				if first == "_id" {
					opts = append(opts, bsoncodec.Options{UseJSONStructTags: true})
					want = bson.D{{Key: "_id", Value: v.StandardUUID}, {Key: "label", Value: "x"}}
				}
				raw, err := bson.Marshal(bson.D{{Key: "v", Value: want}})
				if err != nil {
					t.Fatal(err)
				}
				got, err := bsoncodec.Marshal(reg, bson.D{{Key: "v", Value: &v}}, opts...)
				if err != nil || !bytes.Equal(got, raw) {
					t.Errorf("%s: got %v, %v, want %v", mode, bson.Raw(got), err, bson.Raw(raw))
				}
				var back struct{ V tagged }
				if err := bsoncodec.Unmarshal(reg, raw, &back, opts...); err != nil || back.V != v {
					t.Errorf("%s: got %v, %v", mode, back, err)
				}
			}
		}
	}
}

// A field of an interface with the method of the driver holds a document type as any other does.
func TestDocumentTypesInInterfacesOfMethods(t *testing.T) {
	u := uuidrep.StandardUUID{UUID: testUUID}
	customer, document := promotedPointer{&u, "x"}, PromotedDocument{DocumentMethods{u}, "x"}
	both := func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeOf(customer)).RegisterDocumentType(reflect.TypeOf(document)).
			RegisterDocumentType(reflect.TypeFor[promotedValueDocument]())
	}
	type holder struct {
		C, P bson.ValueMarshaler
		D, Q bson.Marshaler
	}
	want, err := bson.Marshal(bson.D{
		{Key: "c", Value: bson.D{{Key: "standarduuid", Value: u}, {Key: "name", Value: "x"}}},
		{Key: "p", Value: bson.D{{Key: "standarduuid", Value: u}, {Key: "name", Value: "x"}}},
		{Key: "d", Value: bson.D{{Key: "documentmethods", Value: document.DocumentMethods}, {Key: "name", Value: "x"}}},
		{Key: "q", Value: bson.D{{Key: "documentmethods", Value: document.DocumentMethods}, {Key: "name", Value: "x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for mode, reg := range modes(t, both) {
		if got := marshal(t, reg, holder{customer, &customer, document, &document}); !bytes.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", mode, got, bson.Raw(want))
		}
		if zeroes(reg) {
			continue // there is nothing in the interfaces when they are decoded into
		}
		out := struct {
			C, P bson.ValueUnmarshaler
			Q    bson.Unmarshaler
		}{promotedPointer{}, new(promotedPointer), new(PromotedDocument)}
		unmarshal(t, reg, want, &out)
		if !reflect.DeepEqual(out.C, customer) || !reflect.DeepEqual(out.P, &customer) || !reflect.DeepEqual(out.Q, &document) {
			t.Errorf("%s: got %+v", mode, out)
		}
		// A copy of a struct cannot show what was decoded.
		for _, target := range []any{customer, document, (*promotedPointer)(nil), (*PromotedDocument)(nil), *new(promotedValueDocument)} {
			if err := bsoncodec.Unmarshal(reg, want, target); err == nil {
				t.Errorf("%s: decoded into %#v", mode, target)
			}
		}
	}
}

// promotedValueDocument is a bson.Unmarshaler without a pointer.
type promotedValueDocument struct {
	*DocumentMethods
	Name string
}

// A type that is refused only for what is inline is a document, too: the call says that the loss is known.
func TestRegisterDocumentTypeOfInlineStructs(t *testing.T) {
	type lost struct {
		Room plainRoom `bson:",inline"`
		N    int32
	}
	type deeper struct {
		L lost `bson:",inline"`
		M int32
	}
	type methods struct {
		E embedsAlone `bson:",inline"`
		N int32
	}
	for _, v := range []any{
		lost{plainRoom{testUUID}, 1}, deeper{lost{plainRoom{testUUID}, 1}, 2}, methods{embedsAlone{uuidrep.StandardUUID{UUID: testUUID}}, 1},
	} {
		typ := reflect.TypeOf(v)
		reg := registry(t, uuidrep.Standard)
		if _, err := bsoncodec.Marshal(reg, v); err == nil {
			t.Errorf("%v is not refused", typ)
		}
		want, err := bson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for mode, reg := range documentModes(t, uuidrep.Standard, typ) {
			if got, err := bsoncodec.Marshal(reg, v); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %v: got %v, %v, want %v", mode, typ, bson.Raw(got), err, bson.Raw(want))
			}
			back := reflect.New(typ)
			if err := bsoncodec.Unmarshal(reg, want, back.Interface()); err != nil || back.Elem().FieldByName("M").IsValid() && back.Elem().FieldByName("M").Int() != 2 {
				t.Errorf("%s, %v: got %v, %v", mode, typ, back.Elem(), err)
			}
		}
	}
}

func (d DocumentMethods) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.M{"u": d.U}) }

func (d *DocumentMethods) UnmarshalBSON(doc []byte) error {
	return bson.Raw(doc).Lookup("u").Unmarshal(&d.U)
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

// A type that is registered as a document is stored as one, whatever a hook of the caller's does with text.
func TestDocumentTypeBesideAHook(t *testing.T) {
	hook := func(reg *bson.Registry) {
		reg.RegisterInterfaceEncoder(reflect.TypeFor[encoding.TextMarshaler](), stringEncoder("a hook"))
	}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[embeddedID]()).With(hook)
	}) {
		raw := marshal(t, reg, bson.D{{Key: "v", Value: embeddedID{testUUID}}})
		wantStored(t, raw, 4, octetsStandard, "v", "uuid")
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
