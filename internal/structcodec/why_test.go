package structcodec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

var errOwnCodec = errors.New("left to the other method")

// ownCodec is a codec of an application. That of plannedPrice takes part in plans without options, and optionPrice's with any.
type (
	ownCodec     struct{}
	plannedCodec struct{ ownCodec }
	optionCodec  struct{ plannedCodec }
	ownPrice     struct{ N int64 }
	plannedPrice struct{ N int64 }
	optionPrice  struct{ N int64 }
)

func (ownCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
	return vw.WriteNull()
}
func (ownCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
	return vr.Skip()
}
func (plannedCodec) AppendValue(dst []byte, _ reflect.Value) (bson.Type, []byte, error) {
	return bson.TypeNull, dst, nil
}
func (plannedCodec) ReadValue(bson.Type, []byte, reflect.Value) error { return nil }
func (c optionCodec) EncoderIn(bson.EncodeContext) ValueCodec         { return c }
func (c optionCodec) DecoderIn(bson.DecodeContext) ValueCodec         { return c }
func (ownHook) MarshalBSONValue() (byte, []byte, error)               { return byte(bson.TypeNull), nil, nil }
func (*ownHook) UnmarshalBSONValue(byte, []byte) error                { return nil }
func (*ownDocument) MarshalBSON() ([]byte, error)                     { return bson.Marshal(bson.D{}) }
func (*ownDocument) UnmarshalBSON([]byte) error                       { return nil }

type (
	ownHook     struct{ N int }
	ownDocument struct{ N int }
)

// newOwnCodec returns the Codec of a registry of the driver with the codecs above.
func newOwnCodec() *Codec {
	reg := bson.NewRegistry()
	enc, _ := reg.LookupEncoder(reflect.TypeFor[struct{}]())
	dec, _ := reg.LookupDecoder(reflect.TypeFor[struct{}]())
	c := New(reg, enc, dec, errOwnCodec)
	reg.RegisterKindEncoder(reflect.Struct, c)
	reg.RegisterKindDecoder(reflect.Struct, c)
	for t, codec := range map[reflect.Type]interface {
		bson.ValueEncoder
		bson.ValueDecoder
	}{reflect.TypeFor[ownPrice](): ownCodec{}, reflect.TypeFor[plannedPrice](): plannedCodec{}, reflect.TypeFor[optionPrice](): optionCodec{}} {
		reg.RegisterTypeEncoder(t, codec)
		reg.RegisterTypeDecoder(t, codec)
	}
	return c
}

// A plan does not do the work for a part that has a codec or a method of an application, that the driver's codec alone can
// do, or that has no codec, and the reasons name each such part once.
func TestReasons(t *testing.T) {
	type inline struct {
		A int
		M map[string]ownPrice `bson:",inline"`
	}
	type inlineInItself struct {
		Name string
		Next *inlineInItself `bson:",inline"`
	}
	type recursive struct {
		Next  *recursive
		Price ownPrice
	}
	tagged := reflect.StructOf([]reflect.StructField{ // whose keys are one under "json" struct tags
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	})
	c := newOwnCodec()
	none := bson.EncodeContext{Registry: c.reg}
	own, hook, alone := "goes through its codec, structcodec.ownCodec", "goes through its method ", "goes through the driver's codec"
	options := "goes through its codec, structcodec.plannedCodec, which takes part in plans without options only"
	for _, tt := range []struct {
		v                any
		encoded, decoded []string // "PATH TYPE TEXT"
	}{
		{v: 1}, {v: "x"}, {v: []string{}}, {v: map[string]int{}}, {v: bson.D{}}, {v: bson.M{}}, {v: bson.A{}}, {v: time.Time{}}, {v: []byte{}}, {v: new(int)},
		{v: struct {
			A []map[string]*int
			B any
			C bson.ObjectID
			D plannedPrice
			E optionPrice
		}{}},
		{ownPrice{}, []string{" structcodec.ownPrice " + own}, []string{" structcodec.ownPrice " + own}},
		{[]ownPrice{}, []string{" structcodec.ownPrice " + own}, []string{" structcodec.ownPrice " + own}},
		{[1]ownPrice{}, []string{" structcodec.ownPrice " + own}, []string{" structcodec.ownPrice " + own}},
		{new(ownPrice), []string{" structcodec.ownPrice " + own}, []string{" structcodec.ownPrice " + own}},
		{map[string]ownPrice{}, []string{" structcodec.ownPrice " + own}, []string{" structcodec.ownPrice " + own}},
		{struct{ In struct{ P []ownPrice } }{}, []string{"in.p structcodec.ownPrice " + own}, []string{"in.p structcodec.ownPrice " + own}},
		{recursive{}, []string{"price structcodec.ownPrice " + own}, []string{"price structcodec.ownPrice " + own}},
		{struct{ A, B ownPrice }{}, []string{"a structcodec.ownPrice " + own}, []string{"a structcodec.ownPrice " + own}},
		{struct{ V inline }{}, []string{"v structcodec.inline is encoded by the driver: the values of M, an inline map, have no codec that takes part in plans"},
			[]string{"v.* structcodec.ownPrice " + own}},
		{struct {
			M map[string][]int `bson:",inline"`
		}{}, nil, nil},
		{inlineInItself{}, []string{" structcodec.inlineInItself is encoded by the driver: Next is inline in its own type"},
			[]string{" structcodec.inlineInItself is decoded by the driver: Next is inline in its own type"}},
		{ownHook{}, []string{" structcodec.ownHook " + hook + "MarshalBSONValue"}, []string{" structcodec.ownHook " + hook + "UnmarshalBSONValue"}},
		{&ownDocument{}, []string{" *structcodec.ownDocument " + hook + "MarshalBSON"}, []string{" *structcodec.ownDocument " + hook + "UnmarshalBSON"}},
		{make(chan int), []string{" chan int has no codec"}, []string{" chan int has no codec"}},
		{new(chan int), []string{" chan int has no codec"}, []string{" chan int has no codec"}},
		{bson.CodeWithScope{}, []string{" bson.CodeWithScope " + alone}, []string{" bson.CodeWithScope " + alone}},
		{[1]byte{}, []string{" [1]uint8 " + alone}, []string{" [1]uint8 " + alone}},
		{[]bson.E{}, nil, []string{" []bson.E " + alone}},
		{struct{ S fmt.Stringer }{}, nil, []string{"s fmt.Stringer has no codec"}},
	} {
		typ := reflect.TypeOf(tt.v)
		if got := texts(c.WhyNotEncoded(none, typ)); !slices.Equal(got, tt.encoded) {
			t.Errorf("encoding a %v: got %q, want %q", typ, got, tt.encoded)
		}
		if got := texts(c.WhyNotDecoded(bson.DecodeContext{Registry: c.reg}, typ)); !slices.Equal(got, tt.decoded) {
			t.Errorf("decoding a %v: got %q, want %q", typ, got, tt.decoded)
		}
	}
	for _, ec := range []bson.EncodeContext{{}, {Registry: bson.NewRegistry()}} {
		if got := texts(c.WhyNotEncoded(ec, reflect.TypeFor[int]())); len(got) != 1 || got[0] != " int has a registry or options that are not known" {
			t.Errorf("another registry: got %q", got)
		}
		if got := texts(c.WhyNotDecoded(bson.DecodeContext{Registry: ec.Registry}, reflect.TypeFor[int]())); len(got) != 1 || got[0] != " int has a registry or options that are not known" {
			t.Errorf("another registry: got %q", got)
		}
	}
	for ec, o := range driver.EncodeContexts() {
		if ec.Registry = c.reg; !o.NilMapAsEmpty {
			continue
		}
		if got := texts(c.WhyNotEncoded(ec, reflect.TypeFor[struct {
			P plannedPrice
			O optionPrice
		}]())); !slices.Equal(got, []string{"p structcodec.plannedPrice " + options}) {
			t.Fatalf("%+v: got %q", o, got)
		}
		if got := c.WhyNotEncoded(ec, tagged); (len(got) > 0) != o.UseJSONStructTags {
			t.Fatalf("%+v: got %q", o, got)
		}
		break
	}
	for dc, o := range driver.DecodeContexts() {
		if dc.Registry = c.reg; o.ZeroMaps {
			if got := texts(c.WhyNotDecoded(dc, reflect.TypeFor[plannedPrice]())); !slices.Equal(got, []string{" structcodec.plannedPrice " + options}) {
				t.Fatalf("%+v: got %q", o, got)
			}
			if got := texts(c.WhyNotDecoded(dc, reflect.TypeFor[optionPrice]())); len(got) > 0 {
				t.Fatalf("%+v: got %q", o, got)
			}
			break
		}
	}
}

func texts(reasons []Reason) (all []string) {
	for _, r := range reasons {
		all = append(all, fmt.Sprintf("%s %v %s", r.Path, r.Type, r.Text))
	}
	return all
}

// A notCalled stands before a codec of the driver, and fails if it is called itself.
type notCalled struct {
	enc bson.ValueEncoder
	dec bson.ValueDecoder
}

func (c notCalled) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return c.enc }
func (c notCalled) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder { return c.dec }
func (c notCalled) EncodeValue(bson.EncodeContext, bson.ValueWriter, reflect.Value) error {
	return errFailing
}
func (c notCalled) DecodeValue(bson.DecodeContext, bson.ValueReader, reflect.Value) error {
	return errFailing
}

// Plans encode and decode a value of each type that they know by themselves, as the driver does it.
func TestPlansKnowTheTypes(t *testing.T) {
	c := newOwnCodec()
	n, s, now := 7, "x", time.UnixMilli(1700000000123).UTC()
	type inner struct{ N int32 }
	type text string
	for _, v := range []any{
		true, false, int8(-1), int16(2), int32(3), int64(4), int64(1) << 40, n, math.MaxInt, uint8(1), uint16(2), uint32(3), uint64(4), uint(5), uint64(1) << 40, uint64(math.MaxInt64),
		float32(1.5), 2.5, s, text("t"), "", now, []byte{1, 2}, []byte{}, []byte(nil), &n, &s, (*int)(nil), []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, []int(nil), []string{},
		[2]int{1, 2}, [0]string{}, map[string]int{"a": 1}, map[string]int(nil), map[text]string{"k": "v"}, map[string]any{"a": 1.5}, inner{1}, &inner{2}, []inner{{3}, {}}, []*inner{{4}, nil},
		struct{ A any }{int64(1)}, struct{ A any }{}, bson.D{{Key: "a", Value: 1.5}}, bson.M{"k": "v"}, bson.A{"a", nil, 1.5}, bson.ObjectID{1}, bson.NewDecimal128(1, 2),
		bson.Binary{Subtype: 0, Data: []byte{1}}, bson.Binary{Subtype: 2, Data: []byte{1}}, bson.Binary{Subtype: 4, Data: []byte{1}}, bson.DateTime(5), bson.Null{}, bson.Undefined{}, bson.MinKey{}, bson.MaxKey{},
		bson.Timestamp{T: 1, I: 2}, bson.JavaScript("j"), bson.Symbol("s"), bson.Raw{5, 0, 0, 0, 0}, bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}, bson.Regex{Pattern: "p", Options: "im"}, bson.Regex{Pattern: "p", Options: "ii"},
	} {
		typ := reflect.TypeOf(v)
		wantType, want, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := c.encoderOf(typ)
		if err != nil {
			t.Fatal(err)
		}
		var appendValue appendFunc
		var known bool
		c.encodeMode.compileEncoder(func(plans encodeCompiler) { appendValue, known = plans.compile(typ, notCalled{enc: enc}) })
		if !known || sameCode(appendValue, c.encodeMode.opaque(enc, "")) {
			t.Errorf("a %v is not encoded by plans", typ)
			continue
		}
		addressable := reflect.New(typ).Elem()
		addressable.Set(reflect.ValueOf(v))
		for _, val := range []reflect.Value{reflect.ValueOf(v), addressable} {
			if got, data, err := appendValue([]byte{9}, val); err != nil || got != wantType || string(data) != "\x09"+string(want) {
				t.Errorf("a %v: got %v %x and %v, the driver %v %x", typ, got, data, err, wantType, want)
			}
		}
		dec, err := c.decoderOf(typ)
		if err != nil {
			t.Fatal(err)
		}
		var read readFunc
		c.decodeMode.compileDecoder(func(plans decodeCompiler) { read, known = plans.compile(typ, notCalled{dec: dec}) })
		if !known || sameCode(read, c.decodeMode.slow(dec)) {
			t.Errorf("a %v is not decoded by plans", typ)
			continue
		}
		got, wanted := reflect.New(typ), reflect.New(typ)
		if err := bson.UnmarshalValue(wantType, want, wanted.Interface()); err != nil {
			t.Fatal(err)
		}
		if err := read(byte(wantType), want, got.Elem()); err != nil || !reflect.DeepEqual(got.Interface(), wanted.Interface()) {
			t.Errorf("a %v: got %v and %v, the driver %v", typ, got.Elem(), err, wanted.Elem())
		}
	}
	// What they leave to the codec is the same, too.
	driver, plans := bothCodecs(func(*bson.Registry) {})
	for _, v := range []any{struct{ R bson.Regex }{bson.Regex{Options: "mi"}}, struct{ R bson.Regex }{bson.Regex{Options: "\x80"}}, struct{ D bson.D }{}, struct{ U uint64 }{1 << 63}} {
		if got, want := outcome(plans, v), outcome(driver, v); got != want {
			t.Errorf("%v: got %s, the driver %s", v, got, want)
		}
	}
}

// Plans read a value of each type into an any by themselves, as the driver does it, if the decoder of the type is the driver's.
func TestPlansReadAny(t *testing.T) {
	for _, tt := range []struct {
		v     any
		known bool
	}{
		{1.5, true}, {"text", true}, {bson.ObjectID{1}, true}, {true, true}, {false, true}, {bson.DateTime(5), true}, {int32(5), true}, {int64(5), true}, {bson.Timestamp{T: 1, I: 2}, true},
		{bson.NewDecimal128(1, 2), true}, {bson.Binary{Data: []byte{1}}, true}, {bson.Binary{Subtype: 2, Data: []byte{1}}, true}, {bson.Binary{Subtype: 4, Data: []byte{1}}, true}, {bson.Null{}, true},
		{bson.D{{Key: "a", Value: bson.D{}}}, true}, {bson.A{"x"}, true}, {bson.Regex{Pattern: "p"}, false}, {bson.MinKey{}, false}, {bson.Symbol("s"), false}, {bson.JavaScript("j"), false}, {bson.Undefined{}, false},
	} {
		bt, data, err := bson.MarshalValue(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := bson.UnmarshalValue(bt, data, &want); err != nil {
			t.Fatal(err)
		}
		got, ok, err := newOwnCodec().decodeMode.any().read(byte(bt), data)
		if ok != tt.known || err != nil || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %#v, %v and %v; the driver %#v", bt, got, ok, err, want)
		}
		// The decoder of an application decides.
		c := newOwnCodec()
		if want == nil || !tt.known {
			continue
		}
		c.reg.RegisterTypeDecoder(reflect.TypeOf(want), ownCodec{})
		if got, ok, err := c.decodeMode.any().read(byte(bt), data); ok || err != nil {
			t.Errorf("%v with a decoder of its own: got %#v and %v", bt, got, err)
		}
		// And one that takes part in plans is called by them.
		c = newOwnCodec()
		c.reg.RegisterTypeMapEntry(bt, reflect.TypeFor[plannedPrice]())
		if got, ok, err := c.decodeMode.any().read(byte(bt), data); bt != bson.TypeEmbeddedDocument && bt != bson.TypeArray && (!ok || err != nil || got != any(plannedPrice{})) {
			t.Errorf("%v with a codec that takes part in plans: got %#v, %v and %v", bt, got, ok, err)
		}
	}
	if got, ok, err := newOwnCodec().decodeMode.any().read(byte(bson.TypeBoolean), []byte{2}); ok || err != nil {
		t.Errorf("a boolean of 2, which the driver refuses: got %v and %v", got, err)
	}
	for _, typ := range []reflect.Type{tD, tM, tMap} {
		c := newOwnCodec()
		c.reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, typ)
		_, data, err := bson.MarshalValue(bson.D{{Key: "a", Value: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok, err := c.decodeMode.any().read(byte(bson.TypeEmbeddedDocument), data); !ok || err != nil || reflect.TypeOf(got) != typ {
			t.Errorf("a document as %v: got %#v, %v and %v", typ, got, ok, err)
		}
		c = newOwnCodec()
		c.reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, typ)
		c.reg.RegisterTypeDecoder(typ, ownCodec{})
		if got, ok, err := c.decodeMode.any().read(byte(bson.TypeEmbeddedDocument), data); ok || err != nil {
			t.Errorf("a document as %v with a decoder of its own: got %#v and %v", typ, got, err)
		}
	}
}

type (
	ownList  []ownList
	ownTree  map[string]ownTree
	ownBytes []byte
	ownMap   map[*int]ownMapOf // which the driver refuses to encode, if it is not empty
	ownMapOf struct {
		N int32
		M ownMap
	}
)

// Plans encode and decode types that hold themselves by themselves, and encode slices of bytes with a name and maps by keys
// that are no strings.
func TestPlansOfOtherTypes(t *testing.T) {
	for _, tt := range []struct {
		v       any
		decoded bool
	}{
		{ownList{{}, {{}, nil}}, true}, {ownTree{"a": {"b": {}}}, true}, {ownBytes{1, 2}, false}, {ownBytes{}, false}, {ownBytes(nil), false}, {map[int]string{-1: "a"}, false}, {map[uint8]string{1: "a"}, false},
		{map[bson.ObjectID]int{{1}: 2}, false},
	} {
		c, typ := newOwnCodec(), reflect.TypeOf(tt.v)
		enc, err := c.reg.LookupEncoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		dec, err := c.reg.LookupDecoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		c.reg.RegisterTypeEncoder(typ, notCalled{enc: enc})
		c.reg.RegisterTypeDecoder(typ, notCalled{dec: dec})
		wantType, want, err := bson.MarshalValue(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		if got, data, planned, err := c.AppendValue(&bson.EncodeContext{Registry: c.reg}, nil, tt.v); !planned || err != nil || got != wantType || string(data) != string(want) {
			t.Errorf("%#v: got %v %x, %v and %v; the driver %v %x", tt.v, got, data, planned, err, wantType, want)
		}
		got, wanted := reflect.New(typ), reflect.New(typ)
		if err := bson.UnmarshalValue(wantType, want, wanted.Interface()); err != nil {
			t.Fatal(err)
		}
		if !tt.decoded {
			continue
		}
		if planned, err := c.ReadValue(&bson.DecodeContext{Registry: c.reg}, wantType, want, got.Interface()); !planned || err != nil || !reflect.DeepEqual(got.Interface(), wanted.Interface()) {
			t.Errorf("%#v: got %v, %v and %v; the driver %v", tt.v, got.Elem(), planned, err, wanted.Elem())
		}
	}
	// A type without a plan that is met while it is compiled is left to its codec.
	driver, plans := bothCodecs(func(*bson.Registry) {})
	for _, v := range []any{struct{ M ownMap }{ownMap{nil: {}}}, struct{ M ownMap }{}, ownMapOf{1, ownMap{}}} {
		if got, want := outcome(plans, v), outcome(driver, v); got != want {
			t.Errorf("%#v: got %s, the driver %s", v, got, want)
		}
	}
}

// Plans read whole numbers of the other types, and null, into numbers by themselves.
func TestPlansReadNumbersOfOtherTypes(t *testing.T) {
	for _, v := range []any{2.0, int32(2), int64(2), 0.0, int32(0), int64(0), bson.Null{}} {
		bt, data, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64]()} {
			c := newOwnCodec()
			dec, err := c.reg.LookupDecoder(typ)
			if err != nil {
				t.Fatal(err)
			}
			c.reg.RegisterTypeDecoder(typ, notCalled{dec: dec})
			got := reflect.New(typ)
			want := fmt.Sprint(v)
			if v == (bson.Null{}) {
				want = "0"
			}
			if planned, err := c.ReadValue(nil, bt, data, got.Interface()); !planned || err != nil || fmt.Sprint(got.Elem()) != want {
				t.Errorf("%T into %v: got %v, %v and %v", v, typ, got.Elem(), planned, err)
			}
		}
	}
}

// Code of a caller can keep a pointer to what it reads, and not to what a plan reads.
func TestKeepers(t *testing.T) {
	type plain struct{ N int32 }
	type holds struct{ P plannedPrice }
	type holdsHolder struct{ H holds }
	type pointsTo struct{ P *plannedPrice }
	c := newOwnCodec()
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[int](): false, reflect.TypeFor[plain](): false, reflect.TypeFor[ownPrice](): true, reflect.TypeFor[holds](): true, reflect.TypeFor[holdsHolder](): true,
		reflect.TypeFor[pointsTo](): false, reflect.TypeFor[plannedPrice](): true, reflect.TypeFor[*ownPrice](): false, reflect.TypeFor[[]ownPrice](): false, reflect.TypeFor[chan int](): true,
	} {
		var k *keeper
		c.decodeMode.compileDecoder(func(plans decodeCompiler) { k = plans.keptElem(typ) })
		if k.isKept() != want {
			t.Errorf("%v: got %v, want %v", typ, k.isKept(), want)
		}
	}
}
