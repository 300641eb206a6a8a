package bsoncodec_test

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The UUID of the specification's test plan and its octets in each order.
var (
	testUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

	octetsStandard = unhex("00112233445566778899AABBCCDDEEFF")
	octetsJava     = unhex("7766554433221100FFEEDDCCBBAA9988")
	octetsCSharp   = unhex("33221100554477668899AABBCCDDEEFF")
)

// table is the specification's table, "Implicit decoding and encoding".
var table = []struct {
	rep     uuidrep.Representation
	subtype byte // that is written and read as a UUID
	octets  []byte
}{
	{uuidrep.Standard, 4, octetsStandard},
	{uuidrep.CSharpLegacy, 3, octetsCSharp},
	{uuidrep.JavaLegacy, 3, octetsJava},
	{uuidrep.PythonLegacy, 3, octetsStandard},
}

// orderID is a defined type with no methods; textID has those of a map key.
type orderID [16]byte

type textID [16]byte

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func build(t testing.TB, b *bsoncodec.RegistryBuilder) *bson.Registry {
	t.Helper()
	reg, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	without := *b
	twin, err := without.WithoutPlans().Build()
	if err != nil {
		t.Fatal(err)
	}
	twins.Store(reg, twin)
	return reg
}

// registry returns one for r that knows the test's own types too.
func registry(t testing.TB, r uuidrep.Representation) *bson.Registry {
	t.Helper()
	return build(t, bsoncodec.NewRegistryBuilder(r).
		RegisterUUIDType(reflect.TypeFor[orderID]()).
		RegisterUUIDType(reflect.TypeFor[textID]()))
}

func marshal(t testing.TB, reg *bson.Registry, v any) bson.Raw {
	t.Helper()
	raw, err := encode(t, reg, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := bson.Raw(raw).Validate(); err != nil {
		t.Fatalf("%T is not valid BSON: %v", v, err)
	}
	return raw
}

func unmarshal(t testing.TB, reg *bson.Registry, raw bson.Raw, v any) {
	t.Helper()
	if err := decode(t, reg, raw, v); err != nil {
		t.Fatal(err)
	}
}

func wantStored(t *testing.T, raw bson.Raw, subtype byte, octets []byte, path ...string) {
	t.Helper()
	gotSubtype, got, ok := raw.Lookup(path...).BinaryOK()
	if !ok || gotSubtype != subtype || !bytes.Equal(got, octets) {
		t.Errorf("%s: got %v, want subtype %d, %X", strings.Join(path, "."), raw.Lookup(path...), subtype, octets)
	}
}

type embedded struct {
	In uuid.UUID
}

// everywhere holds a UUID in every place of a document.
type everywhere struct {
	ID        embedded `bson:"_id"`
	Field     uuid.UUID
	Pointer   *uuid.UUID
	Nil       *uuid.UUID
	Pointers  **uuid.UUID
	Slice     []uuid.UUID
	PtrSlice  []*uuid.UUID
	Array     [2]uuid.UUID
	Nested    [][]uuid.UUID
	Map       map[string]uuid.UUID
	Keys      map[uuid.UUID]int32
	Any       any
	D         bson.D
	M         bson.M
	A         bson.A
	Valid     uuid.NullUUID
	Invalid   uuid.NullUUID
	NullPtr   *uuid.NullUUID
	Nulls     []uuid.NullUUID
	Order     orderID
	OrderPtr  *orderID
	Orders    []orderID
	OrderKeys map[orderID]string
	TextKeys  map[textID]orderID
	Omitted   *uuid.UUID           `bson:",omitempty"`
	Inline    embedded             `bson:",inline"`
	InlineMap map[string]uuid.UUID `bson:",inline"`
}

func newEverywhere() everywhere {
	u, p := testUUID, &testUUID
	o := orderID(testUUID)
	null := uuid.NullUUID{UUID: u, Valid: true}
	return everywhere{
		ID: embedded{u}, Field: u, Pointer: p, Pointers: &p, Slice: []uuid.UUID{u, {}}, PtrSlice: []*uuid.UUID{p, nil},
		Array: [2]uuid.UUID{u, {}}, Nested: [][]uuid.UUID{{u}, {}}, Map: map[string]uuid.UUID{"k": u},
		Keys: map[uuid.UUID]int32{u: 7}, Any: u, D: bson.D{{Key: "k", Value: u}}, M: bson.M{"k": bson.A{u}},
		A: bson.A{u, bson.D{{Key: "k", Value: u}}}, Valid: null, NullPtr: &null, Nulls: []uuid.NullUUID{null, {}},
		Order: o, OrderPtr: &o, Orders: []orderID{o}, OrderKeys: map[orderID]string{o: "x"}, TextKeys: map[textID]orderID{textID(o): o},
		Inline: embedded{u}, InlineMap: map[string]uuid.UUID{"inlined": u},
	}
}

// A UUID has the octets of the table of the specification ("Handling of Native UUID Types", Implicit decoding
// and encoding) in every place of a document, and is read back from each.
func TestEveryPlaceOfADocument(t *testing.T) {
	for _, tt := range table {
		t.Run(tt.rep.String(), func(t *testing.T) {
			reg := registry(t, tt.rep)
			in := newEverywhere()
			for name, v := range map[string]any{"value": in, "pointer": &in} {
				raw := marshal(t, reg, v)
				text := testUUID.String()
				for _, path := range [][]string{
					{"_id", "in"}, {"field"}, {"pointer"}, {"pointers"}, {"slice", "0"}, {"ptrslice", "0"}, {"array", "0"},
					{"nested", "0", "0"}, {"map", "k"}, {"any"}, {"d", "k"}, {"m", "k", "0"}, {"a", "0"}, {"a", "1", "k"},
					{"valid"}, {"nullptr"}, {"nulls", "0"}, {"order"}, {"orderptr"}, {"orders", "0"}, {"textkeys", text},
					{"in"}, {"inlined"},
				} {
					wantStored(t, raw, tt.subtype, tt.octets, path...)
				}
				for _, path := range [][]string{{"nil"}, {"invalid"}, {"nulls", "1"}, {"ptrslice", "1"}} {
					if v := raw.Lookup(path...); v.Type != bson.TypeNull {
						t.Errorf("%s %v: got %v, want null", name, path, v)
					}
				}
				for _, path := range [][]string{{"keys", text}, {"orderkeys", text}} {
					if v := raw.Lookup(path...); v.Type == 0 {
						t.Errorf("%s: no key %v", name, path)
					}
				}
				if v := raw.Lookup("omitted"); v.Type != 0 {
					t.Errorf("%s: omitted is stored: %v", name, v)
				}
				var back everywhere
				unmarshal(t, reg, raw, &back)
				if !reflect.DeepEqual(back, in) {
					t.Errorf("%s: got %+v\nwant %+v", name, back, in)
				}
			}
		})
	}
}

// Decoding into any follows the table at every depth, and what does not fit stays a Binary, octet for octet.
func TestImplicitDecoding(t *testing.T) {
	binaries := []bson.Binary{
		{Subtype: 4, Data: octetsStandard}, {Subtype: 3, Data: octetsStandard}, {Subtype: 3, Data: octetsJava},
		{Subtype: 3, Data: octetsCSharp}, {Subtype: 0, Data: octetsStandard}, {Subtype: 1, Data: octetsStandard},
		{Subtype: 2, Data: octetsStandard}, {Subtype: 5, Data: octetsStandard}, {Subtype: 0x80, Data: octetsStandard},
		{Subtype: 4, Data: []byte{}}, {Subtype: 3, Data: octetsStandard[:15]}, {Subtype: 4, Data: make([]byte, 17)},
		{Subtype: 4, Data: make([]byte, 1<<14)}, {Subtype: 3, Data: make([]byte, 1<<14)},
	}
	all := append(table[:len(table):len(table)], struct {
		rep     uuidrep.Representation
		subtype byte
		octets  []byte
	}{uuidrep.Unspecified, 255, nil})
	for _, tt := range all {
		t.Run(tt.rep.String(), func(t *testing.T) {
			reg := registry(t, tt.rep)
			for _, b := range binaries {
				var want any = b
				if b.Subtype == tt.subtype && len(b.Data) == 16 {
					// The orders are their own inverses: the stored octets of the stored octets are the UUID's.
					u, err := uuidrep.AsWithRepresentation[uuid.UUID](b, tt.rep)
					if err != nil {
						t.Fatal(err)
					}
					if bytes.Equal(b.Data, tt.octets) && u != testUUID {
						t.Fatalf("%X is %v", b.Data, u)
					}
					want = u
				}
				raw, err := bson.Marshal(bson.D{
					{Key: "v", Value: b},
					{Key: "d", Value: bson.D{{Key: "v", Value: b}, {Key: "a", Value: bson.A{b, bson.D{{Key: "v", Value: b}}}}}},
				})
				if err != nil {
					t.Fatal(err)
				}
				wantD := bson.D{
					{Key: "v", Value: want},
					{Key: "d", Value: bson.D{{Key: "v", Value: want}, {Key: "a", Value: bson.A{want, bson.D{{Key: "v", Value: want}}}}}},
				}
				var d bson.D
				unmarshal(t, reg, raw, &d)
				if !reflect.DeepEqual(d, wantD) {
					t.Errorf("bson.D: got %v, want %v", d, wantD)
				}
				var m bson.M
				unmarshal(t, reg, raw, &m)
				if wantM := (bson.M{"v": want, "d": wantD[1].Value}); !reflect.DeepEqual(m, wantM) {
					t.Errorf("bson.M: got %v, want %v", m, wantM)
				}
				var a any
				unmarshal(t, reg, raw, &a)
				if !reflect.DeepEqual(a, any(wantD)) {
					t.Errorf("any: got %v, want %v", a, wantD)
				}
				var s struct {
					V any
					D struct {
						A []any
						V bson.Binary // a field typed as Binary always gets Binary
					}
				}
				unmarshal(t, reg, raw, &s)
				if !reflect.DeepEqual(s.V, want) || !reflect.DeepEqual(s.D.A[0], want) || !reflect.DeepEqual(s.D.V, b) {
					t.Errorf("struct: got %v, want %v", s, want)
				}
				binaries := map[string]map[string]bson.Binary{}
				unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "m", Value: bson.M{"v": b}}}), &binaries)
				if !reflect.DeepEqual(binaries["m"]["v"], b) {
					t.Errorf("map of Binary: got %v, want %v", binaries, b)
				}
			}
		})
	}
}

// An any receives a UUID as the type of SetImplicitType, and what is no UUID as before.
func TestSetImplicitType(t *testing.T) {
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).SetImplicitType(reflect.TypeFor[orderID]()))
	raw := marshal(t, reg, bson.M{"a": bson.A{testUUID}, "b": orderID(testUUID)})
	var m bson.M
	unmarshal(t, reg, raw, &m)
	if want := (bson.M{"a": bson.A{orderID(testUUID)}, "b": orderID(testUUID)}); !reflect.DeepEqual(m, want) {
		t.Errorf("got %#v", m)
	}
	var d bson.D
	unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "k", Value: testUUID}}), &d)
	if !reflect.DeepEqual(d, bson.D{{Key: "k", Value: orderID(testUUID)}}) {
		t.Errorf("got %#v", d)
	}
}

type target struct {
	name string
	new  func() any
	get  func(any) any
}

func of[T any]() target {
	return target{
		name: reflect.TypeFor[T]().String(),
		new:  func() any { return new(struct{ V T }) },
		get:  func(p any) any { return p.(*struct{ V T }).V },
	}
}

var typed = []target{
	of[uuid.UUID](), of[orderID](), of[textID](), of[*uuid.UUID](), of[uuid.NullUUID](), of[[]uuid.UUID](),
	of[[1]uuid.UUID](), of[map[string]uuid.UUID](), of[[]orderID](), of[[]*uuid.UUID](),
}

// wrap puts v where a target of the type name reads it.
func wrap(name string, v any) any {
	switch {
	case strings.HasPrefix(name, "["):
		return bson.A{v}
	case strings.HasPrefix(name, "map"):
		return bson.M{"k": v}
	}
	return v
}

// Every typed target refuses what is not a UUID of its representation, with an error that says what came.
func TestTypedTargetsRefuse(t *testing.T) {
	for _, tt := range table {
		reg := registry(t, tt.rep)
		for _, target := range typed {
			decode := func(v any) error {
				return decode(t, reg, marshal(t, reg, bson.M{"v": wrap(target.name, v)}), target.new())
			}
			for _, subtype := range []byte{0, 1, 2, 3, 4, 5, 6, 0x80} {
				err := decode(bson.Binary{Subtype: subtype, Data: octetsStandard})
				if subtype == tt.subtype {
					if err != nil {
						t.Errorf("%v, %s: %v", tt.rep, target.name, err)
					}
					continue
				}
				var e *uuidrep.SubtypeError
				if !errors.As(err, &e) || e.Subtype != subtype || e.Representation != tt.rep {
					t.Errorf("%v, %s, subtype %d: got %v", tt.rep, target.name, subtype, err)
				}
			}
			for _, length := range []int{0, 15, 17, 1 << 12} {
				var e *uuidrep.LengthError
				if err := decode(bson.Binary{Subtype: tt.subtype, Data: make([]byte, length)}); !errors.As(err, &e) || e.Length != length {
					t.Errorf("%v, %s, %d octets: got %v", tt.rep, target.name, length, err)
				}
			}
			for _, v := range []any{testUUID.String(), int32(1), int64(1), 1.5, true, bson.D{{Key: "a", Value: 1}}, bson.A{1}, bson.NewObjectID(), bson.MinKey{}} {
				if err := decode(v); err == nil || !strings.Contains(err.Error(), "bsoncodec: cannot decode") {
					t.Errorf("%v, %s, %T: got %v", tt.rep, target.name, v, err)
				}
			}
		}
	}
}

// The text of a UUID in a binary value is refused as such by every typed target, whatever the registry reads.
func TestTypedTargetsRefuseTextInBinary(t *testing.T) {
	texts := [][]byte{ // the UUID of the test plan in ASCII: 36 characters in lower and upper case, and 32 digits
		unhex("30303131323233332D343435352D363637372D383839392D616162626363646465656666"),
		unhex("30303131323233332D343435352D363637372D383839392D414142424343444445454646"),
		unhex("3030313132323333343435353636373738383939616162626363646465656666"),
	}
	type around struct{ uuid.UUID }
	type func1 struct{ u uuid.UUID }
	targets := append([]target{of[around](), of[func1](), of[sql.Null[uuid.UUID]](), of[uuidrep.ID[int]](), of[uuidrep.ID[string]](), of[uuidrep.JavaLegacyUUID]()}, typed...)
	for _, tt := range table {
		other := uuidrep.Standard
		if tt.rep == other {
			other = uuidrep.JavaLegacy
		}
		for options, b := range map[string]*bsoncodec.RegistryBuilder{
			"none": bsoncodec.NewRegistryBuilder(tt.rep),
			"all":  bsoncodec.NewRegistryBuilder(tt.rep).AlsoDecode(other).AlsoDecodeSubtype0().AlsoDecodeString().EncodeAsString(),
		} {
			b.RegisterUUIDType(reflect.TypeFor[orderID]()).RegisterUUIDType(reflect.TypeFor[textID]()).RegisterUUIDType(reflect.TypeFor[around]()).
				RegisterUUIDType(reflect.TypeFor[uuidrep.ID[int]]()).RegisterNullUUIDType(reflect.TypeFor[sql.Null[uuid.UUID]]())
			bsoncodec.RegisterUUIDFunc(b, func(f func1) (uuid.UUID, bool) { return f.u, true }, func(u uuid.UUID, _ bool) (func1, error) { return func1{u}, nil })
			reg := build(t, b)
			for _, octets := range texts {
				for _, subtype := range []byte{0, 2, 3, 4} {
					value := bson.Binary{Subtype: subtype, Data: octets}
					for _, target := range targets {
						raw := marshal(t, reg, bson.M{"v": wrap(target.name, value)})
						decode(t, reg, raw, target.new()) // compares the ways
						for name, reg := range withTwin(reg) {
							err := bsoncodec.Unmarshal(reg, raw, target.new())
							var e *uuidrep.LengthError
							if !errors.As(err, &e) || *e != (uuidrep.LengthError{Length: len(octets), Text: true}) || errors.As(err, new(*uuidrep.SubtypeError)) ||
								!strings.Contains(err.Error(), "text of a UUID") || !strings.Contains(err.Error(), "bsonids converts") || strings.Contains(err.Error(), "AlsoDecode") {
								t.Errorf("%v, options %s, %s, %s, subtype %d, %d bytes: got %v", tt.rep, options, name, target.name, subtype, len(octets), err)
							}
						}
					}
					var e *uuidrep.LengthError
					if err := bsoncodec.UnmarshalValue(reg, marshal(t, reg, bson.M{"v": value}).Lookup("v"), new(uuid.UUID)); !errors.As(err, &e) || !e.Text {
						t.Errorf("UnmarshalValue, subtype %d: got %v", subtype, err)
					}
					if got, err := bsoncodec.DecodeNative(reg, value); err != nil || !reflect.DeepEqual(got, value) {
						t.Errorf("DecodeNative, subtype %d: got %v, %v", subtype, got, err)
					}
				}
			}
		}
	}
	unspecified := registry(t, uuidrep.Unspecified)
	raw := marshal(t, unspecified, bson.M{"v": bson.Binary{Subtype: 3, Data: texts[0]}})
	if err := decode(t, unspecified, raw, new(struct{ V uuid.UUID })); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("unspecified: got %v", err)
	}
}

// Null and undefined give the zero UUID, as the driver's codecs give the zero value.
func TestNullAndUndefinedGiveTheZeroValue(t *testing.T) {
	for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy, uuidrep.Unspecified} {
		reg := registry(t, r)
		for _, v := range []any{bson.Null{}, bson.Undefined{}} {
			raw := marshal(t, reg, bson.M{"v": v})
			for _, target := range typed {
				p := target.new()
				if err := decode(t, reg, raw, p); err != nil || !reflect.ValueOf(target.get(p)).IsZero() {
					t.Errorf("%v, %s from %T: got %v, %v", r, target.name, v, target.get(p), err)
				}
			}
			full := newEverywhere()
			unmarshal(t, reg, marshal(t, reg, bson.M{"field": v, "pointer": v, "valid": v, "slice": v, "order": v}), &full)
			if full.Field != uuid.Nil || full.Pointer != nil || full.Valid.Valid || full.Valid.UUID != uuid.Nil || full.Slice != nil || full.Order != (orderID{}) {
				t.Errorf("%v: %T left %+v", r, v, full)
			}
		}
	}
}

// A failed decoding leaves no octets of the value behind.
func TestErrorLeavesTheTarget(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, b := range []bson.Binary{{Subtype: 3, Data: octetsJava}, {Subtype: 4, Data: octetsJava[:15]}, {Subtype: 4, Data: make([]byte, 17)}} {
		s := struct{ V uuid.UUID }{testUUID}
		if err := decode(t, reg, marshal(t, reg, bson.M{"v": b}), &s); err == nil || s.V != testUUID {
			t.Errorf("%v: got %v, %v", b, s.V, err)
		}
		ids := struct{ V []uuid.UUID }{[]uuid.UUID{testUUID}}
		err := decode(t, reg, marshal(t, reg, bson.M{"v": bson.A{uuid.New(), b}}), &ids)
		if err == nil || len(ids.V) != 1 || ids.V[0] != testUUID {
			t.Errorf("%v: got %v, %v", b, ids.V, err)
		}
	}
}

// With unspecified, the default of the specification, a UUID is not encoded.
func TestUnspecifiedRefusesToEncode(t *testing.T) {
	reg := registry(t, uuidrep.Unspecified)
	null := uuid.NullUUID{UUID: testUUID, Valid: true}
	for _, v := range []any{
		testUUID, &testUUID, orderID(testUUID), null, []uuid.UUID{testUUID}, [1]uuid.UUID{testUUID}, []orderID{{}},
		map[string]uuid.UUID{"k": testUUID}, bson.A{testUUID}, bson.D{{Key: "k", Value: testUUID}}, embedded{testUUID}, uuid.Nil,
	} {
		_, err := encode(t, reg, bson.M{"v": v})
		if !errors.Is(err, uuidrep.ErrUnspecified) || !strings.Contains(err.Error(), "uuidRepresentation") {
			t.Errorf("%T: got %v", v, err)
		}
	}
	// What holds no UUID is encoded.
	marshal(t, reg, bson.D{{Key: "a", Value: uuid.NullUUID{}}, {Key: "b", Value: (*uuid.UUID)(nil)}, {Key: "c", Value: []uuid.UUID{}},
		{Key: "d", Value: bson.Binary{Subtype: 4, Data: octetsStandard}}, {Key: "e", Value: uuidrep.JavaLegacyUUID{UUID: testUUID}}})
	for _, target := range typed {
		raw := marshal(t, reg, bson.M{"v": wrap(target.name, bson.Binary{Subtype: 4, Data: octetsStandard})})
		if err := decode(t, reg, raw, target.new()); !errors.Is(err, uuidrep.ErrUnspecified) {
			t.Errorf("decoding into %s: got %v", target.name, err)
		}
	}
}

// With AlsoDecode both subtypes are read, each in its order, and only that of the registry is written.
func TestAlsoDecode(t *testing.T) {
	type doc struct {
		S, L uuid.UUID
		Ids  []uuid.UUID
		Any  bson.A
	}
	for _, legacy := range table[1:] {
		for _, reps := range [][2]uuidrep.Representation{{uuidrep.Standard, legacy.rep}, {legacy.rep, uuidrep.Standard}} {
			reg := build(t, bsoncodec.NewRegistryBuilder(reps[0]).AlsoDecode(reps[1]).AlsoDecode(reps[1]))
			s, l := bson.Binary{Subtype: 4, Data: octetsStandard}, bson.Binary{Subtype: 3, Data: legacy.octets}
			raw := marshal(t, reg, bson.M{"s": s, "l": l, "ids": bson.A{s, l}, "any": bson.A{s, l}})
			var got doc
			unmarshal(t, reg, raw, &got)
			want := doc{testUUID, testUUID, []uuid.UUID{testUUID, testUUID}, bson.A{testUUID, testUUID}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v: got %v", reps, got)
			}
			_, octets := marshal(t, reg, bson.M{"v": testUUID}).Lookup("v").Binary()
			if want, _ := uuidrep.NewBinaryWithRepresentation(testUUID, reps[0]); !bytes.Equal(octets, want.Data) {
				t.Errorf("%v: wrote %X", reps, octets)
			}
			var e *uuidrep.SubtypeError
			if err := decode(t, reg, marshal(t, reg, bson.M{"s": bson.Binary{Subtype: 0, Data: octetsStandard}}), &got); !errors.As(err, &e) {
				t.Errorf("subtype 0: got %v", err)
			}
		}
	}
}

// UUID fields read subtype 0 and text if the builder says so, and any does not.
func TestAlsoDecodeSubtype0AndString(t *testing.T) {
	generic := bson.Binary{Subtype: 0, Data: octetsStandard}
	for _, tt := range table {
		reg := build(t, bsoncodec.NewRegistryBuilder(tt.rep).AlsoDecodeSubtype0().AlsoDecodeString())
		for _, v := range []any{generic, testUUID.String(), strings.ToUpper(testUUID.String()), "{" + testUUID.String() + "}"} {
			raw := marshal(t, reg, bson.D{{Key: "v", Value: v}, {Key: "ids", Value: bson.A{v}}, {Key: "null", Value: v}})
			var got struct {
				V    uuid.UUID
				Ids  []uuid.UUID
				Null uuid.NullUUID
			}
			unmarshal(t, reg, raw, &got)
			if got.V != testUUID || got.Ids[0] != testUUID || got.Null != (uuid.NullUUID{UUID: testUUID, Valid: true}) {
				t.Errorf("%v, %v: got %v", tt.rep, v, got)
			}
			var m bson.M
			unmarshal(t, reg, raw, &m)
			if !reflect.DeepEqual(m["v"], v) {
				t.Errorf("%v: any got %v, want %v", tt.rep, m["v"], v)
			}
		}
		for _, v := range []any{"", "nonsense", testUUID.String()[1:], "x" + testUUID.String() + "y", bson.Binary{Data: octetsStandard[:15]}} {
			var got struct{ V uuid.UUID }
			if err := decode(t, reg, marshal(t, reg, bson.M{"v": v}), &got); err == nil || got.V != uuid.Nil {
				t.Errorf("%v, %v: got %v, %v", tt.rep, v, got, err)
			}
		}
	}
}

// An error of decoding names the method of the builder, or the type, that would read the value.
func TestErrorsSayTheWayOut(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for want, v := range map[string]any{
		"AlsoDecode ":        bson.Binary{Subtype: 3, Data: octetsJava},
		"AlsoDecodeSubtype0": bson.Binary{Subtype: 0, Data: octetsJava},
		"AlsoDecodeString":   testUUID.String(),
		"bson.Binary":        bson.Binary{Subtype: 5, Data: octetsJava},
		"has 3":              bson.Binary{Subtype: 4, Data: octetsJava[:3]},
		"32-bit integer":     int32(1),
		"representation sta": bson.Binary{Subtype: 3, Data: octetsJava},
	} {
		err := decode(t, reg, marshal(t, reg, bson.M{"v": v}), new(embeddedV))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q is not in %q", v, want, fmt.Sprint(err))
		}
	}
}

type embeddedV struct{ V uuid.UUID }

// A random UUID of every type comes back through every representation, from every kind of document.
func TestRoundTripProperty(t *testing.T) {
	for _, tt := range table {
		reg := registry(t, tt.rep)
		for range 300 {
			var u uuid.UUID
			for i := range u {
				u[i] = byte(rand.Uint32())
			}
			n := rand.IntN(20)
			type doc struct {
				U    uuid.UUID
				P    *uuid.UUID
				O    orderID
				N    uuid.NullUUID
				Us   []uuid.UUID
				Os   []orderID
				Any  any
				Keys map[orderID]uuid.UUID
			}
			in := doc{U: u, P: &u, O: orderID(u), N: uuid.NullUUID{UUID: u, Valid: n%2 == 0}, Us: make([]uuid.UUID, n), Os: make([]orderID, n), Any: u, Keys: map[orderID]uuid.UUID{orderID(u): u}}
			if !in.N.Valid {
				in.N.UUID = uuid.Nil
			}
			for i := range n {
				in.Us[i], in.Os[i] = u, orderID(u)
				in.Us[i][i%16] ^= byte(i)
			}
			var out doc
			raw := marshal(t, reg, in)
			unmarshal(t, reg, raw, &out)
			if !reflect.DeepEqual(in, out) {
				t.Fatalf("%v: got %v, want %v", tt.rep, out, in)
			}
			b, err := uuidrep.NewBinaryWithRepresentation(u, tt.rep)
			if err != nil {
				t.Fatal(err)
			}
			wantStored(t, raw, b.Subtype, b.Data, "u")
			wantStored(t, raw, b.Subtype, b.Data, "o")
			wantStored(t, raw, b.Subtype, b.Data, "any")
		}
	}
}

// The values that a codec is not for are the driver's own errors.
func TestCodecsGuardTheirTypes(t *testing.T) {
	reg := build(t, wrappedTypes(bsoncodec.NewRegistryBuilder(uuidrep.Standard)).RegisterUUIDType(reflect.TypeFor[orderID]()))
	implicit, err := reg.LookupTypeMapEntry(bson.TypeBinary)
	if err != nil {
		t.Fatal(err)
	}
	other := reflect.ValueOf(1)
	for mode, reg := range withTwin(reg) {
		for _, typ := range []reflect.Type{
			reflect.TypeFor[uuid.UUID](), reflect.TypeFor[uuid.NullUUID](), reflect.TypeFor[[]uuid.UUID](), reflect.TypeFor[[]orderID](),
			reflect.TypeFor[bson.D](), reflect.TypeFor[[]any](), reflect.TypeFor[bson.A](), reflect.TypeFor[embeddedID](),
			reflect.TypeFor[map[string]int](), reflect.TypeFor[struct{}](), implicit,
		} {
			if typ != implicit {
				enc, err := reg.LookupEncoder(typ)
				if err != nil {
					t.Fatal(err)
				}
				var encErr bson.ValueEncoderError
				if err := enc.EncodeValue(bson.EncodeContext{Registry: reg}, nil, other); !errors.As(err, &encErr) {
					t.Errorf("%s: encoding an int as %v: got %v", mode, typ, err)
				}
				if err := enc.EncodeValue(bson.EncodeContext{Registry: reg}, nil, reflect.Value{}); err == nil {
					t.Errorf("%s: encoding nothing as %v", mode, typ)
				}
			}
			dec, err := reg.LookupDecoder(typ)
			if err != nil {
				t.Fatal(err)
			}
			for what, val := range map[string]reflect.Value{
				"an int": reflect.New(other.Type()).Elem(), "a constant int": other, "nothing": {}, "a constant": reflect.Zero(typ),
			} {
				for _, raw := range []bson.RawValue{{}, {Type: bson.TypeNull}, {Type: bson.TypeBinary, Value: []byte{0, 0, 0, 0, 0}}, {Type: bson.TypeArray, Value: []byte{5, 0, 0, 0, 0}}} {
					var err error
					readValue(t, raw, func(vr bson.ValueReader) {
						err = dec.DecodeValue(bson.DecodeContext{Registry: reg}, vr, val)
					})
					if err == nil {
						t.Errorf("%s: decoding %v of %v into %s: no error", mode, raw.Type, typ, what)
					}
				}
			}
		}
	}
}

// A codec of this package that a caller registers for another type, or for another BSON type, does the same with plans and
// without.
func TestCodecsOfOtherTypes(t *testing.T) {
	type ids []uuid.UUID
	type object any
	type document struct{ A int32 }
	types := []bson.Type{bson.TypeInt32, bson.TypeString, bson.TypeNull, bson.TypeBoolean, bson.TypeArray, bson.TypeEmbeddedDocument}
	values := bson.D{
		{Key: "u", Value: testUUID}, {Key: "b", Value: bson.Binary{Data: []byte{1}}}, {Key: "us", Value: bson.A{testUUID}}, {Key: "d", Value: bson.D{{Key: "a", Value: int32(1)}}},
		{Key: "i", Value: int32(1)}, {Key: "s", Value: ""}, {Key: "n", Value: nil}, {Key: "t", Value: true},
	}
	kept, err := registry(t, uuidrep.Standard).LookupTypeMapEntry(bson.TypeBinary)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ of, other reflect.Type }{
		{reflect.TypeFor[uuid.UUID](), reflect.TypeFor[strangerID]()}, {reflect.TypeFor[uuid.UUID](), reflect.TypeFor[string]()},
		{reflect.TypeFor[[]uuid.UUID](), reflect.TypeFor[ids]()}, {reflect.TypeFor[[]uuid.UUID](), reflect.TypeFor[[2]int32]()},
		{reflect.TypeFor[uuid.NullUUID](), reflect.TypeFor[sql.Null[uuid.UUID]]()},
		{reflect.TypeFor[map[strangerID]int](), reflect.TypeFor[document]()}, {kept, reflect.TypeFor[object]()},
	} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "V", Type: tt.other}})
		outcome := map[string]string{}
		for mode, reg := range modes(t, standard) {
			enc, encErr := reg.LookupEncoder(tt.of)
			dec, decErr := reg.LookupDecoder(tt.of)
			if encErr == nil {
				reg.RegisterTypeEncoder(tt.other, enc)
			}
			if decErr == nil {
				reg.RegisterTypeDecoder(tt.other, dec)
			}
			for _, opts := range [][]bsoncodec.Options{nil, {{NilSliceAsEmpty: true, BinaryAsSlice: true}}} {
				raw, err := bsoncodec.Marshal(reg, reflect.Zero(typ).Interface(), opts...)
				outcome[mode] += fmt.Sprintln(raw, err)
				for _, e := range values {
					target := reflect.New(typ)
					err := bsoncodec.Unmarshal(reg, marshal(t, registry(t, uuidrep.Standard), bson.D{{Key: "v", Value: e.Value}}), target.Interface(), opts...)
					outcome[mode] += fmt.Sprintln(e.Key, target.Elem(), err)
				}
			}
		}
		if outcome["plans"] != outcome["WithoutPlans"] {
			t.Errorf("the codec of %v for %v:\n%s\nwithout plans:\n%s", tt.of, tt.other, outcome["plans"], outcome["WithoutPlans"])
		}
	}
	raw := marshal(t, registry(t, uuidrep.Standard), values)
	for _, opts := range []bsoncodec.Options{{}, {BinaryAsSlice: true}} {
		for _, typ := range types {
			outcome := map[string]string{}
			for mode, reg := range modes(t, standard) {
				reg.RegisterTypeMapEntry(typ, kept)
				for i := range values {
					var v struct{ V any }
					one := marshal(t, bson.NewRegistry(), bson.D{{Key: "v", Value: raw.Lookup(values[i].Key)}})
					err := bsoncodec.Unmarshal(reg, one, &v, opts)
					outcome[mode] += fmt.Sprintln(values[i].Key, v, err)
				}
			}
			if outcome["plans"] != outcome["WithoutPlans"] {
				t.Errorf("the type of binary values for %v:\n%s\nwithout plans:\n%s", typ, outcome["plans"], outcome["WithoutPlans"])
			}
		}
	}
}

// A decoder of documents that another registry has decodes with the registry that it is used in.
func TestDecoderOfAnotherRegistry(t *testing.T) {
	standard, java := registry(t, uuidrep.Standard), registry(t, uuidrep.JavaLegacy)
	dec, err := standard.LookupDecoder(reflect.TypeFor[bson.D]())
	if err != nil {
		t.Fatal(err)
	}
	register(java, func(reg *bson.Registry) { reg.RegisterTypeDecoder(reflect.TypeFor[bson.D](), dec) })
	raw := marshal(t, java, bson.D{{Key: "v", Value: testUUID}})
	var d, want bson.D
	if err := decodeWith(java, raw, &want); err != nil {
		t.Fatal(err)
	}
	if unmarshal(t, java, raw, &d); d[0].Value != any(testUUID) || !reflect.DeepEqual(d, want) {
		t.Errorf("got %v, the driver's Decoder %v", d, want)
	}
}

// readValue calls f with a reader at raw, and at a whole document if raw has no type.
func readValue(t *testing.T, raw bson.RawValue, f func(bson.ValueReader)) {
	t.Helper()
	if raw.Type == 0 {
		f(bson.NewDocumentReader(bytes.NewReader([]byte{5, 0, 0, 0, 0})))
		return
	}
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: raw}})
	if err != nil {
		t.Fatal(err)
	}
	dr, err := bson.NewDocumentReader(bytes.NewReader(doc)).ReadDocument()
	if err != nil {
		t.Fatal(err)
	}
	_, vr, err := dr.ReadElement()
	if err != nil {
		t.Fatal(err)
	}
	f(vr)
}

func (u textID) MarshalText() ([]byte, error) { return uuid.UUID(u).MarshalText() }

func (u *textID) UnmarshalText(text []byte) error { return (*uuid.UUID)(u).UnmarshalText(text) }

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
