package bsoncodec_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Structs that have the methods of what they embed, beside other fields.
type (
	promotedCustomer struct {
		uuidrep.ID[promotedCustomer] `bson:"_id"`
		Name                         string
	}
	promotedAddress struct {
		City string
		uuidrep.StandardUUID
	}
	promotedPointer struct {
		*uuidrep.StandardUUID
		Name string
	}
	promotedInterface struct {
		bson.ValueMarshaler
		bson.ValueUnmarshaler
		Name string
	}
	promotedReceiver struct { // the methods have pointer receivers
		receiverMethods
		Name string
	}
	promotedReceiverPointer struct {
		*receiverMethods
		Name string
	}
	promotedGeneric[T any] struct {
		uuidrep.ID[T]
		Value T
	}
	promotedDeep struct {
		promotedCustomer `bson:",inline"`
		Since            int
	}
	promotedDeepOnly struct{ PromotedCustomer }
	promotedSkipped  struct {
		uuidrep.StandardUUID `bson:"-"`
		Name                 string
	}
	promotedDocument struct {
		documentMethods
		Name string
	}
	PromotedCustomer struct {
		uuidrep.StandardUUID
		Name string
	}
)

type receiverMethods struct{ U uuid.UUID }

// documentMethods has the methods for whole documents. They know their own field only.
type documentMethods struct{ U uuidrep.StandardUUID }

// Structs that embed the same and are stored as their authors mean.
type (
	ownValue struct {
		uuidrep.StandardUUID
		Name string
	}
	ownPointer struct {
		*uuidrep.StandardUUID
		Name string
	}
	ownInterface struct {
		bson.ValueMarshaler
		Name string
	}
	ownReceiver struct {
		receiverMethods
		Name string
	}
	ownGeneric[T any] struct {
		uuidrep.ID[T]
		Name string
	}
	ownDocument struct {
		documentMethods
		Name string
	}
	embedsAlone   struct{ uuidrep.StandardUUID }
	embedsSkipped struct {
		uuidrep.StandardUUID
		Name string `bson:"-"`
		_    string // not exported
		Log  func()
		Mark struct{}
	}
	ambiguous struct {
		uuidrep.StandardUUID
		uuidrep.JavaLegacyUUID
		Name string
	}
	named struct {
		ID   uuidrep.ID[named] `bson:"_id"`
		Name string
	}
)

func marshalText(name string, u uuid.UUID) (byte, []byte, error) {
	t, data, err := bson.MarshalValue(name + " " + u.String())
	return byte(t), data, err
}

func unmarshalText(t byte, data []byte) (name string, u uuid.UUID, err error) {
	name, text, _ := strings.Cut(bson.RawValue{Type: bson.Type(t), Value: data}.StringValue(), " ")
	u, err = uuid.Parse(text)
	return name, u, err
}

// wantPromotedError checks that err is the error of a want that has a method from the field origin, without the fields lost.
func wantPromotedError(t *testing.T, err error, want reflect.Type, method, origin, lost string) {
	t.Helper()
	var e *bsoncodec.UnregisteredTypeError
	if !errors.As(err, &e) || e.Type != want {
		t.Errorf("%v: got %v, want an UnregisteredTypeError", want, err)
		return
	}
	text := e.Error()
	for _, part := range []string{"its method " + method + " is that of the embedded field " + origin + ",", lost, "give the embedded field a name",
		"or call RegisterDocumentType(reflect.TypeFor["} {
		if !strings.Contains(text, part) {
			t.Errorf("%v: %q is not in %s", want, part, text)
		}
	}
}

// wantPromotedRefused checks that v is refused in both directions, in every place of a document.
func wantPromotedRefused[T any](t *testing.T, v T, method, origin, lost string) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	for _, r := range allRepresentations {
		reg := registry(t, r)
		for _, doc := range strangers(v) {
			if reflect.PointerTo(typ).Implements(reflect.TypeFor[bson.ValueMarshaler]()) && !typ.Implements(reflect.TypeFor[bson.ValueMarshaler]()) {
				break // only the method of an addressable value is called: see below
			}
			raw, err := encode(t, reg, doc)
			if raw != nil {
				t.Errorf("%T gave %v", doc, bson.Raw(raw))
			}
			wantPromotedError(t, err, typ, method, origin, lost)
		}
		for _, doc := range []any{bson.D{{Key: "v", Value: &v}}, &struct{ V T }{v}, struct{ V *T }{&v}, struct{ V []T }{[]T{v}}} {
			raw, err := encode(t, reg, doc)
			if raw != nil {
				t.Errorf("%T gave %v", doc, bson.Raw(raw))
			}
			wantPromotedError(t, err, typ, method, origin, lost)
		}
		_, err := bsoncodec.Marshal(reg, &v) // the driver's Encoder calls a MarshalBSON of a whole document without asking a registry
		wantPromotedError(t, err, typ, method, origin, lost)
		_, err = bsoncodec.MarshalValue(reg, &v)
		wantPromotedError(t, err, typ, method, origin, lost)
		_, err = bsoncodec.MarshalExtJSON(reg, bson.M{"v": &v}, true, false)
		wantPromotedError(t, err, typ, method, origin, lost)
		_, err = bsoncodec.MarshalExtJSON(reg, &v, true, false)
		wantPromotedError(t, err, typ, method, origin, lost)

		decoding := strings.Replace(method, "Marshal", "Unmarshal", 1)
		for _, value := range []any{bson.Binary{Subtype: 4, Data: octetsStandard}, bson.M{"name": "x"}, "text"} {
			one, list := marshal(t, reg, bson.M{"v": value}), marshal(t, reg, bson.M{"v": bson.A{value}})
			for _, doc := range []struct {
				raw    bson.Raw
				target any
			}{
				{one, new(struct{ V T })}, {one, new(struct{ V *T })}, {one, &struct{ V *T }{new(T)}}, {one, new(map[string]T)}, {one, new(map[string]*T)},
				{list, new(struct{ V []T })}, {list, new(struct{ V [1]T })}, {one, &struct{ V any }{new(T)}},
			} {
				wantPromotedError(t, decode(t, reg, doc.raw, doc.target), typ, decoding, strings.Replace(origin, "Marshaler", "Unmarshaler", 1), lost)
			}
		}
		doc := marshal(t, reg, bson.M{"name": "x"})
		wantPromotedError(t, bsoncodec.Unmarshal(reg, doc, new(T)), typ, decoding, strings.Replace(origin, "Marshaler", "Unmarshaler", 1), lost)
		err = bsoncodec.UnmarshalExtJSON(reg, []byte(`{"name": "x"}`), true, new(T))
		wantPromotedError(t, err, typ, decoding, strings.Replace(origin, "Marshaler", "Unmarshaler", 1), lost)
	}
}

// A struct that has the method of a field that it embeds is encoded as that field alone.
func TestPromotedMethodsAreRefused(t *testing.T) {
	u := uuidrep.StandardUUID{UUID: testUUID}
	wantPromotedRefused(t, promotedCustomer{uuidrep.ID[promotedCustomer](testUUID), "x"}, "MarshalBSONValue", "ID", "without the field Name:")
	wantPromotedRefused(t, promotedAddress{"x", u}, "MarshalBSONValue", "StandardUUID", "without the field City:")
	wantPromotedRefused(t, promotedPointer{&u, "x"}, "MarshalBSONValue", "StandardUUID", "without the field Name:")
	wantPromotedRefused(t, promotedInterface{u, &u, "x"}, "MarshalBSONValue", "ValueMarshaler", "Name:")
	wantPromotedRefused(t, promotedReceiver{receiverMethods{testUUID}, "x"}, "MarshalBSONValue", "receiverMethods", "without the field Name:")
	wantPromotedRefused(t, promotedReceiverPointer{&receiverMethods{testUUID}, "x"}, "MarshalBSONValue", "receiverMethods", "without the field Name:")
	wantPromotedRefused(t, promotedGeneric[int]{uuidrep.ID[int](testUUID), 7}, "MarshalBSONValue", "ID", "without the field Value:")
	wantPromotedRefused(t, promotedGeneric[uuid.UUID]{uuidrep.ID[uuid.UUID](testUUID), testUUID}, "MarshalBSONValue", "ID", "without the field Value:")
	wantPromotedRefused(t, promotedDeep{promotedCustomer{Name: "x"}, 7}, "MarshalBSONValue", "promotedCustomer.ID", "without the fields Since, promotedCustomer.Name:")
	wantPromotedRefused(t, promotedDeepOnly{PromotedCustomer{u, "x"}}, "MarshalBSONValue", "PromotedCustomer.StandardUUID", "without the field PromotedCustomer.Name:")
	wantPromotedRefused(t, promotedSkipped{u, "x"}, "MarshalBSONValue", "StandardUUID", "without the field Name:")
	wantPromotedRefused(t, promotedDocument{documentMethods{u}, "x"}, "MarshalBSON", "documentMethods", "without the field Name:")
	wantPromotedRefused(t, struct {
		uuidrep.StandardUUID
		Street, City string
	}{u, "x", "y"}, "MarshalBSONValue", "StandardUUID", "without the fields Street, City:")
	type local struct {
		uuidrep.ID[int]
		Name string
	}
	wantPromotedRefused(t, local{uuidrep.ID[int](testUUID), "x"}, "MarshalBSONValue", "ID", "without the field Name:")
}

// What the driver stores without a loss is stored.
func TestOwnMethodsBesideEmbeddedFields(t *testing.T) {
	u := uuidrep.StandardUUID{UUID: testUUID}
	type all struct {
		Value    ownValue
		Pointer  ownPointer
		Receiver ownReceiver
		Int      ownGeneric[int]
		UUID     ownGeneric[uuid.UUID]
		Document ownDocument
		Alone    embedsAlone
		Skipped  embedsSkipped
		Named    named
		Values   []ownValue
		Pointers []*ownReceiver
		Map      map[string]ownValue
		Inline   named `bson:",inline"`
	}
	in := all{
		Value: ownValue{u, "a"}, Pointer: ownPointer{&u, "b"}, Receiver: ownReceiver{receiverMethods{testUUID}, "c"},
		Int: ownGeneric[int]{uuidrep.ID[int](testUUID), "d"}, UUID: ownGeneric[uuid.UUID]{uuidrep.ID[uuid.UUID](testUUID), "e"},
		Document: ownDocument{documentMethods{u}, "f"}, Alone: embedsAlone{u}, Skipped: embedsSkipped{StandardUUID: u},
		Named: named{uuidrep.ID[named](testUUID), "g"}, Values: []ownValue{{u, "h"}}, Pointers: []*ownReceiver{{receiverMethods{testUUID}, "i"}},
		Map: map[string]ownValue{"k": {u, "j"}}, Inline: named{uuidrep.ID[named](testUUID), "l"},
	}
	for _, r := range allRepresentations {
		reg := registry(t, r)
		raw := marshal(t, reg, &in)
		want, err := bson.Marshal(&in) // all types have a representation of their own
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != string(want) {
			t.Errorf("got %v, want %v", raw, bson.Raw(want))
		}
		var out all
		unmarshal(t, reg, raw, &out)
		if !reflect.DeepEqual(out, in) {
			t.Errorf("got %+v, want %+v", out, in)
		}
		var doc ownDocument
		unmarshal(t, reg, marshal(t, reg, in.Document), &doc)
		if doc != in.Document {
			t.Errorf("got %+v, want %+v", doc, in.Document)
		}
		v := marshal(t, reg, bson.M{"v": ownInterface{u, "m"}})
		var back struct{ V ownInterface }
		if unmarshal(t, reg, v, &back); back.V.Name != "m" {
			t.Errorf("%v gave %+v", v, back)
		}
		// Neither method is promoted, so it is a document.
		if v := marshal(t, reg, bson.M{"v": ambiguous{Name: "n"}}).Lookup("v", "name"); v.StringValue() != "n" {
			t.Errorf("the field is %v", v)
		}
	}
}

// A nil pointer to a type that is refused is null, and null is nil.
func TestNilPointersToPromotedMethods(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	type holder struct {
		V *promotedCustomer
		S []promotedCustomer
	}
	raw := marshal(t, reg, holder{})
	if v := raw.Lookup("v"); v.Type != bson.TypeNull {
		t.Errorf("got %v", v)
	}
}

// A codec that is registered for the type, and one for all types with methods, are the caller's decision.
func TestCodecsBeforePromotedMethods(t *testing.T) {
	asText := bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
		return vw.WriteString("of the caller")
	})
	fromText := bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
		name, err := vr.ReadString()
		val.FieldByName("Name").SetString(name)
		return err
	})
	v := promotedCustomer{uuidrep.ID[promotedCustomer](testUUID), "x"}
	typ := reflect.TypeOf(v)
	for name, with := range map[string]func(*bson.Registry){
		"type": func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(typ, asText)
			reg.RegisterTypeDecoder(typ, fromText)
		},
		"hook": func(reg *bson.Registry) {
			reg.RegisterInterfaceEncoder(reflect.TypeFor[bson.ValueMarshaler](), asText)
			reg.RegisterInterfaceDecoder(reflect.TypeFor[bson.ValueUnmarshaler](), fromText)
		},
	} {
		t.Run(name, func(t *testing.T) {
			reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(with))
			var back struct{ V promotedCustomer }
			unmarshal(t, reg, marshal(t, reg, bson.M{"v": v}), &back)
			if back.V.Name != "of the caller" {
				t.Errorf("got %+v", back)
			}
		})
	}
	late := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard))
	late.RegisterTypeEncoder(typ, asText)
	if got, err := bsoncodec.Marshal(late, bson.M{"v": v}); err != nil || bson.Raw(got).Lookup("v").StringValue() != "of the caller" {
		t.Errorf("%v, %v", bson.Raw(got), err)
	}
}

// The options of a client decide which fields are stored.
func TestPromotedMethodsAndJSONTags(t *testing.T) {
	type skipped struct {
		uuidrep.StandardUUID
		Name string `json:"-"`
	}
	reg := registry(t, uuidrep.Standard)
	v := skipped{uuidrep.StandardUUID{UUID: testUUID}, "x"}
	wantStored(t, marshal(t, reg, bson.M{"v": uuidrep.StandardUUID{UUID: testUUID}}), 4, octetsStandard, "v")
	o := bsoncodec.Options{UseJSONStructTags: true}
	for range 2 { // the first client decides for no other one
		_, err := encode(t, reg, bson.M{"v": v})
		wantPromotedError(t, err, reflect.TypeOf(v), "MarshalBSONValue", "StandardUUID", "without the field Name:")
		raw, err := bsoncodec.Marshal(reg, bson.M{"v": v}, o)
		if err != nil {
			t.Fatal(err)
		}
		wantStored(t, raw, 4, octetsStandard, "v")
		var back struct{ V skipped }
		wantPromotedError(t, decode(t, reg, raw, &back), reflect.TypeOf(v), "UnmarshalBSONValue", "StandardUUID", "without the field Name:")
		if err := bsoncodec.Unmarshal(reg, raw, &back, o); err != nil || back.V.UUID != testUUID {
			t.Errorf("%+v, %v", back, err)
		}
	}
}

func (p *receiverMethods) MarshalBSONValue() (byte, []byte, error) {
	return uuidrep.StandardUUID{UUID: p.U}.MarshalBSONValue()
}

func (p *receiverMethods) UnmarshalBSONValue(t byte, data []byte) error {
	var s uuidrep.StandardUUID
	err := s.UnmarshalBSONValue(t, data)
	p.U = s.UUID
	return err
}

func (d documentMethods) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.M{"u": d.U}) }

func (d *documentMethods) UnmarshalBSON(doc []byte) error {
	return bson.Raw(doc).Lookup("u").Unmarshal(&d.U)
}

// text is how the own methods store both fields: name, space, UUID.
func (o ownValue) MarshalBSONValue() (byte, []byte, error) { return marshalText(o.Name, o.UUID) }

func (o *ownValue) UnmarshalBSONValue(t byte, data []byte) (err error) {
	o.Name, o.UUID, err = unmarshalText(t, data)
	return err
}

func (o ownPointer) MarshalBSONValue() (byte, []byte, error) { return marshalText(o.Name, o.UUID) }

func (o *ownPointer) UnmarshalBSONValue(t byte, data []byte) (err error) {
	o.StandardUUID = new(uuidrep.StandardUUID)
	o.Name, o.UUID, err = unmarshalText(t, data)
	return err
}

func (o ownInterface) MarshalBSONValue() (byte, []byte, error) { return marshalText(o.Name, uuid.Nil) }

func (o *ownInterface) UnmarshalBSONValue(t byte, data []byte) (err error) {
	o.Name, _, err = unmarshalText(t, data)
	return err
}

func (o *ownReceiver) MarshalBSONValue() (byte, []byte, error) { return marshalText(o.Name, o.U) }

func (o *ownReceiver) UnmarshalBSONValue(t byte, data []byte) (err error) {
	o.Name, o.U, err = unmarshalText(t, data)
	return err
}

func (o ownGeneric[T]) MarshalBSONValue() (byte, []byte, error) {
	return marshalText(o.Name, uuid.UUID(o.ID))
}

func (o *ownGeneric[T]) UnmarshalBSONValue(t byte, data []byte) error {
	name, u, err := unmarshalText(t, data)
	o.Name, o.ID = name, uuidrep.ID[T](u)
	return err
}

func (o ownDocument) MarshalBSON() ([]byte, error) {
	return bson.Marshal(bson.D{{Key: "u", Value: o.U}, {Key: "name", Value: o.Name}})
}

func (o *ownDocument) UnmarshalBSON(doc []byte) error {
	o.Name = bson.Raw(doc).Lookup("name").StringValue()
	return o.documentMethods.UnmarshalBSON(doc)
}
