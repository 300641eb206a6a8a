package uuidrep_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

type fields struct {
	S uuidrep.StandardUUID
	C uuidrep.CSharpLegacyUUID
	J uuidrep.JavaLegacyUUID
	P uuidrep.PythonLegacyUUID
}

func sample() fields {
	return fields{
		uuidrep.StandardUUID{UUID: testUUID},
		uuidrep.CSharpLegacyUUID{UUID: testUUID},
		uuidrep.JavaLegacyUUID{UUID: testUUID},
		uuidrep.PythonLegacyUUID{UUID: testUUID},
	}
}

func marshal(t *testing.T, v any) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestFieldsAreStoredAsTheirNames(t *testing.T) {
	raw := marshal(t, sample())
	for key, want := range map[string]struct {
		subtype byte
		octets  []byte
	}{"s": {4, octetsStandard}, "c": {3, octetsCSharp}, "j": {3, octetsJava}, "p": {3, octetsStandard}} {
		subtype, octets, ok := raw.Lookup(key).BinaryOK()
		if !ok || subtype != want.subtype || !bytes.Equal(octets, want.octets) {
			t.Errorf("%s: got subtype %d, %X", key, subtype, octets)
		}
	}
	var back fields
	if err := bson.Unmarshal(raw, &back); err != nil || back != sample() {
		t.Errorf("got %v, %v", back, err)
	}
}

func TestFieldsInEveryShape(t *testing.T) {
	type shapes struct {
		Pointer *uuidrep.JavaLegacyUUID
		Nil     *uuidrep.JavaLegacyUUID
		Slice   []uuidrep.CSharpLegacyUUID
		Array   [2]uuidrep.StandardUUID
		Map     map[string]uuidrep.PythonLegacyUUID
		Keys    map[uuidrep.JavaLegacyUUID]int
		Omitted uuidrep.StandardUUID                `bson:",omitempty"`
		NoneAtP *uuidrep.StandardUUID               `bson:",omitempty"`
		Inline  struct{ In uuidrep.JavaLegacyUUID } `bson:",inline"`
	}
	j := uuidrep.JavaLegacyUUID{UUID: testUUID}
	in := shapes{
		Pointer: &j,
		Slice:   []uuidrep.CSharpLegacyUUID{{UUID: testUUID}, {}},
		Array:   [2]uuidrep.StandardUUID{{UUID: testUUID}},
		Map:     map[string]uuidrep.PythonLegacyUUID{"k": {UUID: testUUID}},
		Keys:    map[uuidrep.JavaLegacyUUID]int{j: 1},
	}
	in.Inline.In = j
	raw := marshal(t, in)
	for _, key := range []string{"omitted", "noneatp"} {
		if v := raw.Lookup(key); v.Type != 0 {
			t.Errorf("%s is stored: %v", key, v)
		}
	}
	if v := raw.Lookup("nil"); v.Type != bson.TypeNull {
		t.Errorf("nil pointer: %v", v)
	}
	if _, octets := raw.Lookup("pointer").Binary(); !bytes.Equal(octets, octetsJava) {
		t.Errorf("pointer: %X", octets)
	}
	if _, octets := raw.Lookup("slice", "0").Binary(); !bytes.Equal(octets, octetsCSharp) {
		t.Errorf("slice: %X", octets)
	}
	if v := raw.Lookup("keys", testUUID.String()); v.Type != bson.TypeInt32 {
		t.Errorf("map key: %v", raw.Lookup("keys"))
	}
	var back shapes
	if err := bson.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("got %+v, %v; want %+v", back, err, in)
	}
}

// What the package's documentation warns of: by Go's rules for embedded types the struct has the
// methods of the UUID.
func TestEmbeddedField(t *testing.T) {
	embedded := struct {
		uuidrep.JavaLegacyUUID `bson:"_id"`
		Name                   string
	}{uuidrep.JavaLegacyUUID{UUID: testUUID}, "Ada"}
	if raw, err := bson.Marshal(embedded); err == nil {
		t.Errorf("a document: %v", bson.Raw(raw))
	}
	if _, octets, ok := marshal(t, bson.M{"v": embedded}).Lookup("v").BinaryOK(); !ok || !bytes.Equal(octets, octetsJava) {
		t.Errorf("an element: %X", octets)
	}
}

// Every field type reads its own subtype alone.
func TestFieldsRefuseWhatIsNotTheirs(t *testing.T) {
	targets := map[byte]func() any{
		4: func() any { return new(struct{ V uuidrep.StandardUUID }) },
		3: func() any { return new(struct{ V uuidrep.JavaLegacyUUID }) },
	}
	for own, target := range targets {
		for _, subtype := range []byte{0, 1, 2, 3, 4, 5, 6, 0x80} {
			err := bson.Unmarshal(marshal(t, bson.M{"v": bson.Binary{Subtype: subtype, Data: octetsStandard}}), target())
			var e *uuidrep.SubtypeError
			if subtype == own {
				if err != nil {
					t.Errorf("subtype %d: %v", subtype, err)
				}
			} else if !errors.As(err, &e) || e.Subtype != subtype {
				t.Errorf("subtype %d into the type for %d: got %v", subtype, own, err)
			}
		}
		for _, length := range []int{0, 15, 17, 1 << 20} {
			err := bson.Unmarshal(marshal(t, bson.M{"v": bson.Binary{Subtype: own, Data: make([]byte, length)}}), target())
			var e *uuidrep.LengthError
			if !errors.As(err, &e) || e.Length != length {
				t.Errorf("%d octets: got %v", length, err)
			}
		}
		for _, v := range []any{"00112233-4455-6677-8899-aabbccddeeff", int32(1), bson.D{}, bson.A{}, true} {
			if err := bson.Unmarshal(marshal(t, bson.M{"v": v}), target()); err == nil {
				t.Errorf("%T decoded", v)
			}
		}
	}
}

// The text of a UUID in a binary value is refused as such by every field type, StringUUID and ID included, and leaves the
// field as it was.
func TestFieldsRefuseTextInBinary(t *testing.T) {
	type order struct{}
	type doc struct {
		S uuidrep.StandardUUID
		C uuidrep.CSharpLegacyUUID
		J uuidrep.JavaLegacyUUID
		P uuidrep.PythonLegacyUUID
		T uuidrep.StringUUID
		I uuidrep.ID[order]
		L []uuidrep.ID[order]
	}
	for _, octets := range asciiTexts {
		for _, subtype := range []byte{0, 2, 3, 4} {
			for _, key := range []string{"s", "c", "j", "p", "t", "i", "l"} {
				var v any = bson.Binary{Subtype: subtype, Data: octets}
				if key == "l" {
					v = bson.A{v}
				}
				want := doc{T: uuidrep.StringUUID{UUID: testUUID}, J: uuidrep.JavaLegacyUUID{UUID: testUUID}, I: uuidrep.ID[order](testUUID)}
				got := want
				checkTextError(t, bson.Unmarshal(marshal(t, bson.M{key: v}), &got), len(octets))
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, subtype %d: got %v", key, subtype, got)
				}
			}
		}
	}
	// A document that no encoder made: the old subtype 2 repeats the length.
	raw := unhex("31000000" + "05" + "7300" + "24000000" + "02" + "20000000" + hex.EncodeToString(asciiTexts[2]) + "00")
	checkTextError(t, bson.Unmarshal(raw, new(doc)), 32)
}

// A value of another type is refused by every field type, is named, and leaves the field as it was.
func TestFieldsRefuseOtherTypes(t *testing.T) {
	for _, v := range []any{testUUID.String(), bson.Symbol(testUUID.String()), int32(1), bson.NewObjectID()} {
		for _, key := range []string{"s", "c", "j", "p"} {
			got := sample()
			raw := marshal(t, bson.M{key: v})
			err := bson.Unmarshal(raw, &got)
			_, text := v.(string)
			if err == nil || strings.Contains(err.Error(), "StringUUID") != text || !strings.Contains(err.Error(), raw.Lookup(key).Type.String()) {
				t.Errorf("%s, %T: got %v", key, v, err)
			}
			if got != sample() {
				t.Errorf("%s, %T: got %v", key, v, got)
			}
		}
	}
}

// The struct tag omitempty and uuid.Nil agree about what is zero, for every field type.
func TestFieldsIsZero(t *testing.T) {
	zero := fields{}
	for i, v := range []bson.Zeroer{zero.S, zero.C, zero.J, zero.P, uuidrep.StringUUID{}} {
		if !v.IsZero() {
			t.Errorf("%d: a zero %T is not zero", i, v)
		}
	}
	last := uuid.UUID{15: 1}
	for _, v := range []bson.Zeroer{
		uuidrep.StandardUUID{UUID: last}, uuidrep.CSharpLegacyUUID{UUID: last}, uuidrep.JavaLegacyUUID{UUID: last},
		uuidrep.PythonLegacyUUID{UUID: last}, uuidrep.StringUUID{UUID: last},
	} {
		if v.IsZero() {
			t.Errorf("%v is zero", v)
		}
	}
}

// A value is one allocation of its own length.
func TestMarshalBSONValueAllocatesItsValue(t *testing.T) {
	for _, v := range []bson.ValueMarshaler{sample().S, sample().J, uuidrep.StringUUID{UUID: testUUID}} {
		_, data, err := v.MarshalBSONValue()
		if err != nil || cap(data) > len(data)+3 { // to the allocator's next size
			t.Errorf("%T: %d bytes of %d, %v", v, len(data), cap(data), err)
		}
	}
}

func TestNullAndUndefinedAreZero(t *testing.T) {
	for _, v := range []any{bson.Null{}, bson.Undefined{}} {
		got := sample()
		if err := bson.Unmarshal(marshal(t, bson.D{{Key: "s", Value: v}, {Key: "c", Value: v}, {Key: "j", Value: v}, {Key: "p", Value: v}}), &got); err != nil {
			t.Errorf("%T: %v", v, err)
		}
		if got != (fields{}) {
			t.Errorf("%T: got %v", v, got)
		}
	}
}

func TestUnmarshalBSONValueTruncated(t *testing.T) {
	whole := append([]byte{16, 0, 0, 0, 4}, octetsStandard...)
	for n := range whole {
		u := uuidrep.StandardUUID{UUID: testUUID}
		err := u.UnmarshalBSONValue(byte(bson.TypeBinary), whole[:n])
		if err == nil || !strings.Contains(err.Error(), "truncated") || u.UUID != testUUID {
			t.Errorf("%d octets: got %v, %v", n, u, err)
		}
	}
	huge := append([]byte{0xFF, 0xFF, 0xFF, 0x7F, 4}, octetsStandard...)
	if err := new(uuidrep.StandardUUID).UnmarshalBSONValue(byte(bson.TypeBinary), huge); err == nil {
		t.Error("a length beyond the data decoded")
	}
}

// JSON and text are those of uuid.UUID.
func TestFieldsInJSON(t *testing.T) {
	want, err := json.Marshal(map[string]uuid.UUID{"S": testUUID, "C": testUUID, "J": testUUID, "P": testUUID})
	if err != nil {
		t.Fatal(err)
	}
	var back, wantBack map[string]uuid.UUID
	got, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &wantBack); err != nil || !reflect.DeepEqual(back, wantBack) {
		t.Errorf("got %s, want %s", got, want)
	}
	var f fields
	if err := json.Unmarshal(want, &f); err != nil || f != sample() {
		t.Errorf("got %v, %v", f, err)
	}
	if err := json.Unmarshal([]byte(`{"S":"nonsense"}`), &f); err == nil {
		t.Error("nonsense decoded")
	}
}

func FuzzUnmarshalBSONValue(f *testing.F) {
	f.Add(byte(5), append([]byte{16, 0, 0, 0, 4}, octetsStandard...))
	f.Add(byte(5), append([]byte{20, 0, 0, 0, 2, 16, 0, 0, 0}, octetsStandard...))
	f.Add(byte(5), []byte{0xFF, 0xFF, 0xFF, 0xFF, 4})
	f.Add(byte(10), []byte{})
	f.Fuzz(func(t *testing.T, typ byte, data []byte) {
		u := uuidrep.StandardUUID{UUID: testUUID}
		if err := u.UnmarshalBSONValue(typ, data); err != nil {
			if u.UUID != testUUID {
				t.Errorf("changed to %v by an error", u)
			}
			return
		}
		if u.IsZero() {
			return
		}
		_, back, err := u.MarshalBSONValue()
		if err != nil || !bytes.HasPrefix(data, back) {
			t.Errorf("%X decoded as %X, %v", data, back, err)
		}
	})
}

// The types that embed a uuid.UUID read the same text as ParseID: google/uuid reads any two characters for braces.
func TestFieldText(t *testing.T) {
	const text = "00112233-4455-6677-8899-aabbccddeeff"
	testFieldText(t, text, func(u *uuidrep.StandardUUID) *uuid.UUID { return &u.UUID })
	testFieldText(t, text, func(u *uuidrep.CSharpLegacyUUID) *uuid.UUID { return &u.UUID })
	testFieldText(t, text, func(u *uuidrep.JavaLegacyUUID) *uuid.UUID { return &u.UUID })
	testFieldText(t, text, func(u *uuidrep.PythonLegacyUUID) *uuid.UUID { return &u.UUID })
	testFieldText(t, text, func(u *uuidrep.StringUUID) *uuid.UUID { return &u.UUID })
}

func testFieldText[T any](t *testing.T, text string, in func(*T) *uuid.UUID) {
	t.Helper()
	want := uuid.MustParse(text)
	for _, s := range []string{text, "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", ""), strings.ToUpper(text)} {
		if _, err := uuidrep.ParseID[int](s); err != nil {
			t.Fatal(err)
		}
		var v struct{ V T }
		if err := json.Unmarshal([]byte(`{"V": "`+s+`"}`), &v); err != nil || *in(&v.V) != want {
			t.Errorf("%T: %s gave %v, %v", v.V, s, *in(&v.V), err)
		}
		if back, err := json.Marshal(v); err != nil || string(back) != `{"V":"`+text+`"}` {
			t.Errorf("%T: %s, %v", v.V, back, err)
		}
	}
	for _, s := range []string{"", "x" + text + "y", "(" + text + ")", "}" + text + "{", text + "0", text[1:], "urn:uuix:" + text} {
		if _, err := uuidrep.ParseID[int](s); err == nil {
			t.Fatalf("ParseID reads %q", s)
		}
		var v struct{ V T }
		*in(&v.V) = want
		if err := json.Unmarshal([]byte(`{"V": "`+s+`"}`), &v); err == nil || *in(&v.V) != want {
			t.Errorf("%T: %q gave %v, %v", v.V, s, *in(&v.V), err)
		}
	}
	var null struct{ V T }
	if err := json.Unmarshal([]byte(`{"V": null}`), &null); err != nil || *in(&null.V) != uuid.Nil {
		t.Errorf("null gave %v, %v", *in(&null.V), err)
	}
}
