package bsoncodec_test

import (
	"bytes"
	"database/sql"
	"encoding"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// nullOrderID has the fields of NullUUID in github.com/gofrs/uuid.
type nullOrderID struct {
	UUID  orderID
	Valid bool
}

// What the driver writes for a NullUUID without a codec is read back.
func TestNullUUIDReadsTheDriversDocuments(t *testing.T) {
	null := uuid.NullUUID{UUID: testUUID, Valid: true}
	written, err := bson.Marshal(bson.M{"v": null})
	if err != nil {
		t.Fatal(err)
	}
	if subtype, octets := bson.Raw(written).Lookup("v", "uuid").Binary(); subtype != 0 || !bytes.Equal(octets, octetsStandard) {
		t.Fatalf("the driver wrote %v", bson.Raw(written))
	}
	invalid, err := bson.Marshal(bson.M{"v": uuid.NullUUID{}})
	if err != nil {
		t.Fatal(err)
	}
	type doc struct{ V uuid.NullUUID }
	for _, tt := range table {
		closed := build(t, bsoncodec.NewRegistryBuilder(tt.rep))
		d := doc{uuid.NullUUID{UUID: uuid.Max, Valid: true}}
		err := bsoncodec.Unmarshal(closed, written, &d)
		var e *uuidrep.SubtypeError
		if !errors.As(err, &e) || e.Subtype != 0 || !strings.Contains(err.Error(), "AlsoDecodeSubtype0") || d.V.UUID != uuid.Max {
			t.Errorf("%v: got %v, %v", tt.rep, d, err)
		}
		unmarshal(t, closed, invalid, &d)
		if d.V != (uuid.NullUUID{}) {
			t.Errorf("%v: got %v", tt.rep, d)
		}
		unmarshal(t, build(t, bsoncodec.NewRegistryBuilder(tt.rep).AlsoDecodeSubtype0()), written, &d)
		if d.V != null {
			t.Errorf("%v: got %v", tt.rep, d)
		}
		// A codec for uuid.UUID alone wrote the registry's subtype.
		own := bson.D{{Key: "Valid", Value: true}, {Key: "UUID", Value: bson.Binary{Subtype: tt.subtype, Data: tt.octets}}}
		d = doc{}
		unmarshal(t, closed, marshal(t, closed, bson.M{"v": own}), &d)
		if d.V != null {
			t.Errorf("%v: got %v", tt.rep, d)
		}
		var slice struct{ V []*uuid.NullUUID }
		unmarshal(t, closed, marshal(t, closed, bson.M{"v": bson.A{own, nil, own}}), &slice)
		if len(slice.V) != 3 || *slice.V[0] != null || slice.V[1] != nil || *slice.V[2] != null {
			t.Errorf("%v: got %v", tt.rep, slice)
		}
	}
	unspecified := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Unspecified))
	if err := bsoncodec.Unmarshal(unspecified, written, new(doc)); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
}

// A UUID that can be null is read from the document that the driver writes for it, and from no other.
func TestNullUUIDRefusesOtherDocuments(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecodeSubtype0())
	id, yes := bson.E{Key: "uuid", Value: uuidrep.NewBinary(testUUID)}, bson.E{Key: "valid", Value: true}
	for _, v := range []bson.D{
		{}, {id}, {yes}, {{Key: "valid", Value: false}}, {id, yes, {Key: "more", Value: 1}}, {{Key: "_id", Value: 1}, id, yes},
		{id, {Key: "valid", Value: 1}}, {id, {Key: "valid", Value: nil}}, {{Key: "uuid", Value: "x"}, yes}, {{Key: "uuid", Value: int32(1)}, yes},
		{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: octetsJava[:15]}}, yes}, {{Key: "uuid", Value: bson.Binary{Subtype: 3, Data: octetsJava}}, yes},
	} {
		d := struct{ V uuid.NullUUID }{uuid.NullUUID{UUID: uuid.Max, Valid: true}}
		err := decode(t, reg, marshal(t, reg, bson.M{"v": v}), &d)
		if err == nil || !strings.Contains(err.Error(), "bsoncodec: cannot decode") || d.V.UUID != uuid.Max {
			t.Errorf("%v: got %v, %v", v, d, err)
		}
	}
}

// A codec of the caller's for NullUUID is kept, each direction by itself, and a hook for its methods
// is not taken for one.
func TestNullUUIDKeepsTheCallersCodec(t *testing.T) {
	null := uuid.NullUUID{UUID: testUUID, Valid: true}
	encoder := func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[uuid.NullUUID](), stringEncoder("mine"))
	}
	decoder := func(reg *bson.Registry) {
		reg.RegisterTypeDecoder(reflect.TypeFor[uuid.NullUUID](), bson.ValueDecoderFunc(
			func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
				v.Set(reflect.ValueOf(uuid.NullUUID{UUID: uuid.Max}))
				return vr.Skip()
			}))
	}
	for _, f := range []func(*bson.Registry){encoder, decoder} {
		applied := bson.NewRegistry()
		f(applied)
		if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).ApplyTo(applied); err != nil {
			t.Fatal(err)
		}
		probe := bson.NewRegistry()
		f(probe)
		_, isEncoder := mustEncoder(t, probe, reflect.TypeFor[uuid.NullUUID]()).(bson.ValueEncoderFunc)
		for _, reg := range []*bson.Registry{build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(f)), applied} {
			for _, v := range []any{null, &null} {
				raw := marshal(t, reg, bson.M{"v": v})
				if isEncoder {
					if raw.Lookup("v").StringValue() != "mine" {
						t.Errorf("%T: got %v", v, raw)
					}
				} else {
					wantStored(t, raw, 4, octetsStandard, "v")
				}
			}
			var d struct{ V, P uuid.NullUUID }
			unmarshal(t, reg, marshal(t, reg, bson.M{"v": testUUID}), &d)
			if (d.V.UUID == uuid.Max) == isEncoder {
				t.Errorf("got %v", d)
			}
		}
	}
}

// A hook of the caller's for the text methods of a UUID that can be null, or of a document, takes neither, whether With or
// the registry has it. A codec for the type stays beside a hook.
func TestHooksTakeNoTypesAroundUUIDs(t *testing.T) {
	hooks := func(reg *bson.Registry) {
		reg.RegisterInterfaceEncoder(reflect.TypeFor[texter](), stringEncoder("hook"))
		reg.RegisterInterfaceDecoder(reflect.TypeFor[encoding.TextUnmarshaler](), bson.ValueDecoderFunc(
			func(bson.DecodeContext, bson.ValueReader, reflect.Value) error { return errors.New("the hook decoded") }))
	}
	mine := func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[uuid.NullUUID](), constantEncoder("mine"))
	}
	builder := func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterNullUUIDType(reflect.TypeFor[nullTextID]()).
			RegisterDocumentType(reflect.TypeFor[embeddedUUID]())
	}
	applied := func(f ...func(*bson.Registry)) *bson.Registry {
		reg := bson.NewRegistry()
		for _, f := range f {
			f(reg)
		}
		if err := builder().ApplyTo(reg); err != nil {
			t.Fatal(err)
		}
		return reg
	}
	type doc struct {
		V uuid.NullUUID
		P *uuid.NullUUID
		T nullTextID
		D embeddedUUID
	}
	null := uuid.NullUUID{UUID: testUUID, Valid: true}
	in := doc{null, &null, nullTextID{textID(testUUID), true}, embeddedUUID{testUUID}}
	for name, reg := range map[string]*bson.Registry{"With": build(t, builder().With(hooks)), "ApplyTo": applied(hooks)} {
		raw := marshal(t, reg, in)
		wantStored(t, raw, 4, octetsStandard, "v")
		wantStored(t, raw, 4, octetsStandard, "p")
		wantStored(t, raw, 4, octetsStandard, "t")
		wantStored(t, raw, 4, octetsStandard, "d", "uuid")
		var out doc
		if err := bsoncodec.Unmarshal(reg, raw, &out); err != nil || !reflect.DeepEqual(out, in) {
			t.Errorf("%s: got %v, %v", name, out, err)
		}
	}
	for name, reg := range map[string]*bson.Registry{
		"With": build(t, builder().With(hooks).With(mine)), "ApplyTo": applied(hooks, mine), "ApplyTo, hooks last": applied(mine, hooks),
	} {
		if got := marshal(t, reg, in).Lookup("v"); got.StringValue() != "mine" {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// nullTextID is a UUID that can be null. A pointer to it has text methods, but a value has not.
type nullTextID struct {
	ID    textID
	Valid bool
}

func (n *nullTextID) MarshalText() ([]byte, error) { return n.ID.MarshalText() }

func (n *nullTextID) UnmarshalText(text []byte) error { return n.ID.UnmarshalText(text) }

// embeddedUUID has the text methods of the UUID in it.
type embeddedUUID struct{ uuid.UUID }

// constantEncoder is an encoder of another function than a hook's.
func constantEncoder(s string) bson.ValueEncoder {
	return bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return vw.WriteString(s) })
}

func mustEncoder(t *testing.T, reg *bson.Registry, typ reflect.Type) bson.ValueEncoder {
	t.Helper()
	enc, err := reg.LookupEncoder(typ)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// A type of RegisterNullUUIDType is its UUID if it is valid, and null if it is not, in every place.
func TestRegisterNullUUIDType(t *testing.T) {
	type doc struct {
		N    nullOrderID
		P    *nullOrderID
		S    []nullOrderID
		No   nullOrderID
		SQL  sql.Null[uuid.UUID]
		None sql.Null[uuid.UUID]
		ID   orderID // registered with its null type
	}
	for _, tt := range table {
		reg := build(t, bsoncodec.NewRegistryBuilder(tt.rep).
			RegisterNullUUIDType(reflect.TypeFor[nullOrderID]()).RegisterNullUUIDType(reflect.TypeFor[nullOrderID]()).
			RegisterNullUUIDType(reflect.TypeFor[sql.Null[uuid.UUID]]()))
		n := nullOrderID{orderID(testUUID), true}
		in := doc{N: n, P: &n, S: []nullOrderID{n, {}}, SQL: sql.Null[uuid.UUID]{V: testUUID, Valid: true}, ID: n.UUID}
		for _, v := range []any{in, &in} {
			raw := marshal(t, reg, v)
			for _, path := range [][]string{{"n"}, {"p"}, {"s", "0"}, {"sql"}, {"id"}} {
				wantStored(t, raw, tt.subtype, tt.octets, path...)
			}
			for _, path := range [][]string{{"s", "1"}, {"no"}, {"none"}} {
				if raw.Lookup(path...).Type != bson.TypeNull {
					t.Errorf("%v: got %v", path, raw)
				}
			}
			var out doc
			unmarshal(t, reg, raw, &out)
			if !reflect.DeepEqual(in, out) {
				t.Errorf("got %v, want %v", out, in)
			}
		}
		var sqlOnly struct{ V sql.Null[uuid.UUID] }
		binary := bson.Binary{Subtype: tt.subtype, Data: tt.octets}
		unmarshal(t, reg, marshal(t, reg, bson.M{"v": bson.M{"v": binary, "valid": true}}), &sqlOnly)
		if sqlOnly.V != in.SQL {
			t.Errorf("got %v", sqlOnly)
		}
	}
	for _, typ := range []reflect.Type{
		nil, reflect.TypeFor[uuid.UUID](), reflect.TypeFor[*uuid.NullUUID](), reflect.TypeFor[struct{ UUID uuid.UUID }](),
		reflect.TypeFor[struct{ UUID, Valid uuid.UUID }](), reflect.TypeFor[sql.Null[string]](), reflect.TypeFor[struct {
			UUID        uuid.UUID
			Valid, More bool
		}](),
	} {
		if _, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterNullUUIDType(typ).Build(); err == nil || !strings.Contains(err.Error(), "a UUID and a bool") {
			t.Errorf("%v: got %v", typ, err)
		}
	}
}

// A hook for the text methods of a UUID takes neither the value nor the pointer.
func TestTextHooksLeaveUUIDsAlone(t *testing.T) {
	unmarshaler := reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
	failing := bson.ValueDecoderFunc(func(bson.DecodeContext, bson.ValueReader, reflect.Value) error { return errors.New("the hook decoded") })
	hooks := func(reg *bson.Registry) {
		reg.RegisterInterfaceEncoder(reflect.TypeFor[texter](), stringEncoder("hook"))
		reg.RegisterInterfaceDecoder(unmarshaler, failing)
	}
	applied := bson.NewRegistry()
	hooks(applied)
	b := func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[textID]())
	}
	if err := b().ApplyTo(applied); err != nil {
		t.Fatal(err)
	}
	for _, reg := range []*bson.Registry{build(t, b().With(hooks)), applied} {
		u, id := testUUID, textID(testUUID)
		p := &u
		type doc struct {
			U uuid.UUID
			P *uuid.UUID
			Q **uuid.UUID
			S []*uuid.UUID
			I textID
			J *textID
		}
		in := doc{u, p, &p, []*uuid.UUID{p}, id, &id}
		raw := marshal(t, reg, in)
		for _, path := range [][]string{{"u"}, {"p"}, {"q"}, {"s", "0"}, {"i"}, {"j"}} {
			wantStored(t, raw, 4, octetsStandard, path...)
		}
		var out doc
		unmarshal(t, reg, raw, &out)
		if !reflect.DeepEqual(in, out) {
			t.Errorf("got %v, want %v", out, in)
		}
		// Other types are the hook's.
		if raw := marshal(t, reg, bson.M{"v": textStrangerID{}}); raw.Lookup("v").StringValue() != "hook" {
			t.Errorf("got %v", raw)
		}
	}
}

// Codecs of the caller's for pointers stay: for one type of pointer, and for all.
func TestCallersPointerCodecs(t *testing.T) {
	for name, f := range map[string]func(*bson.Registry){
		"type": func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[*uuid.UUID](), stringEncoder("mine"))
		},
		"kind": func(reg *bson.Registry) { reg.RegisterKindEncoder(reflect.Pointer, stringEncoder("mine")) },
	} {
		reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(f))
		raw := marshal(t, reg, struct {
			U uuid.UUID
			P *uuid.UUID
		}{testUUID, &testUUID})
		wantStored(t, raw, 4, octetsStandard, "u")
		if raw.Lookup("p").Type != bson.TypeString {
			t.Errorf("%s: got %v", name, raw)
		}
	}
}

// Whatever is decoded into a NullUUID is an error that leaves it alone, or comes back after encoding.
func FuzzNullUUID(f *testing.F) {
	reg := build(f, bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecodeSubtype0().AlsoDecodeString())
	for _, v := range []any{
		testUUID, testUUID.String(), nil, bson.D{{Key: "uuid", Value: bson.Binary{Data: octetsStandard}}, {Key: "valid", Value: true}},
		bson.D{{Key: "VALID", Value: false}, {Key: "Uuid", Value: testUUID}}, bson.D{{Key: "valid", Value: bson.D{}}}, bson.A{},
	} {
		f.Add([]byte(marshal(f, reg, bson.M{"v": v})))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bson.Raw(data).Validate() != nil {
			return
		}
		before := uuid.NullUUID{UUID: uuid.Max, Valid: true}
		d := struct{ V uuid.NullUUID }{before}
		if err := bsoncodec.Unmarshal(reg, data, &d); err != nil {
			return
		}
		if !d.V.Valid && d.V.UUID != uuid.Nil {
			t.Errorf("%v: got %v", bson.Raw(data), d)
		}
		back := d
		back.V = before
		unmarshal(t, reg, marshal(t, reg, d), &back)
		if back != d {
			t.Errorf("%v: %v comes back as %v", bson.Raw(data), d, back)
		}
	})
}

// The types below are UUIDs that can be null, by other names.
type (
	privateMaybe struct {
		id uuid.UUID
		ok bool
	}
	halfMaybe struct {
		Found bool `bson:"f"`
		id    privateID
		_     [0]string
		cache string `bson:"-"`
	}
	otherHalf struct {
		ID    orderID `bson:"theID"`
		known bool
	}
	taggedMaybe struct {
		ID    orderID `bson:"theID"`
		Known known   `bson:"isKnown"`
	}
	known bool
)

// A struct of a UUID and a bool is one that can be null, whatever their names, and whether they are exported.
func TestRegisterNullUUIDTypeByAnyName(t *testing.T) {
	type doc struct {
		P    privateMaybe
		H    halfMaybe
		O    *otherHalf
		T    []taggedMaybe
		M    map[string]privateMaybe
		A    any
		None *privateMaybe
	}
	u := testUUID
	in := doc{
		privateMaybe{u, true}, halfMaybe{Found: true, id: privateID{u}}, &otherHalf{orderID(u), true}, []taggedMaybe{{orderID(u), true}, {}},
		map[string]privateMaybe{"k": {u, true}, "n": {}}, u, nil,
	}
	for _, tt := range table {
		for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
			return bsoncodec.NewRegistryBuilder(tt.rep).RegisterNullUUIDType(reflect.TypeFor[privateMaybe]()).RegisterNullUUIDType(reflect.TypeFor[halfMaybe]()).
				RegisterNullUUIDType(reflect.TypeFor[otherHalf]()).RegisterNullUUIDType(reflect.TypeFor[taggedMaybe]())
		}) {
			for _, v := range []any{in, &in} {
				raw := marshal(t, reg, v)
				for _, path := range [][]string{{"p"}, {"h"}, {"o"}, {"t", "0"}, {"m", "k"}} {
					wantStored(t, raw, tt.subtype, tt.octets, path...)
				}
				for _, path := range [][]string{{"t", "1"}, {"m", "n"}, {"none"}} {
					if raw.Lookup(path...).Type != bson.TypeNull {
						t.Errorf("%s, %v: got %v", mode, path, raw)
					}
				}
				var out doc
				unmarshal(t, reg, raw, &out)
				if !reflect.DeepEqual(in, out) {
					t.Errorf("%s: got %v, want %v", mode, out, in)
				}
			}
			// Null takes the UUID and the bool, and nothing else.
			for _, null := range []any{nil, bson.Undefined{}} {
				out := struct{ H halfMaybe }{halfMaybe{Found: true, id: privateID{u}, cache: "kept"}}
				unmarshal(t, reg, marshal(t, reg, bson.M{"h": null}), &out)
				if out.H != (halfMaybe{cache: "kept"}) && !zeroes(reg) {
					t.Errorf("%s, %v: got %v", mode, null, out)
				}
			}
			binary := bson.Binary{Subtype: tt.subtype, Data: tt.octets}
			var out struct{ V taggedMaybe }
			if unmarshal(t, reg, marshal(t, reg, bson.M{"v": bson.M{"theID": binary, "isKnown": true}}), &out); out.V != in.T[0] {
				t.Errorf("%s: got %v", mode, out)
			}
			for _, v := range []any{bson.M{"f": true}, bson.D{{Key: "theid", Value: binary}}, bson.D{}} {
				for _, target := range []any{new(struct{ V halfMaybe }), new(struct{ V otherHalf }), new(struct{ V privateMaybe })} {
					if err := decode(t, reg, marshal(t, reg, bson.M{"v": v}), target); err == nil || !strings.Contains(err.Error(), "lost") {
						t.Errorf("%s, %v: got %v", mode, v, err)
					}
				}
			}
		}
	}
}

// A codec of the caller's for the UUID is called for a field that is not exported, too.
func TestNullUUIDOfTheCallersUUID(t *testing.T) {
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterNullUUIDType(reflect.TypeFor[privateMaybe]())
	}) {
		reg.RegisterTypeEncoder(reflect.TypeFor[uuid.UUID](), bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			return vw.WriteString("mine: " + v.Interface().(uuid.UUID).String())
		}))
		reg.RegisterTypeDecoder(reflect.TypeFor[uuid.UUID](), bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			s, err := vr.ReadString()
			v.Set(reflect.ValueOf(uuid.MustParse(strings.TrimPrefix(s, "mine: "))))
			return err
		}))
		in := struct{ V privateMaybe }{privateMaybe{testUUID, true}}
		raw, err := bsoncodec.Marshal(reg, in)
		if err != nil || bson.Raw(raw).Lookup("v").StringValue() != "mine: "+testUUID.String() {
			t.Fatalf("%s: got %v, %v", mode, bson.Raw(raw), err)
		}
		out := in
		out.V = privateMaybe{}
		if err := bsoncodec.Unmarshal(reg, raw, &out); err != nil || out != in {
			t.Errorf("%s: got %v, %v", mode, out, err)
		}
	}
}
