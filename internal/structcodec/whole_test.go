package structcodec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// newWholeCodec returns the Codec of a registry of the driver that it encodes and decodes all documents of.
func newWholeCodec() *Codec {
	c := newOwnCodec()
	slices, _ := c.reg.LookupEncoder(reflect.TypeFor[[]int]())
	maps, _ := c.reg.LookupEncoder(reflect.TypeFor[map[string]int]())
	c.reg.RegisterKindEncoder(reflect.Slice, c.DocumentEncoder(slices))
	c.reg.RegisterKindEncoder(reflect.Map, c.DocumentEncoder(maps))
	d, _ := c.reg.LookupDecoder(tD)
	mapDecoder, _ := c.reg.LookupDecoder(reflect.TypeFor[map[string]int]())
	c.reg.RegisterTypeDecoder(tD, c.DocumentDecoder(d))
	c.reg.RegisterKindDecoder(reflect.Map, c.DocumentDecoder(mapDecoder))
	return c
}

// Documents and values, and pointers to them, are encoded by plans, as the driver does it. What is nil, what a hook
// encodes and what is no document is left to the driver.
func TestAppendDocument(t *testing.T) {
	type inner struct{ N int32 }
	c := newWholeCodec()
	ec := bson.EncodeContext{Registry: c.reg}
	d, m := bson.D{{Key: "a", Value: 1}}, bson.M{"a": "x"}
	for _, tt := range []struct {
		v       any
		planned bool
	}{
		{inner{1}, true}, {&inner{1}, true}, {d, true}, {&d, true}, {m, true}, {&m, true}, {map[string]int{"k": 1}, true}, {bson.D{}, true}, {bson.M{}, true},
		{(*inner)(nil), false}, {bson.D(nil), false}, {bson.M(nil), false}, {1, false}, {"x", false}, {ownHook{}, false}, {ownDocument{}, false}, {&ownDocument{}, false}, {[]int{1}, false}, {struct{ C chan int }{}, false},
	} {
		doc, planned, err := c.AppendDocument(&ec, []byte{9}, tt.v)
		if planned != tt.planned || err != nil {
			t.Errorf("%#v: planned is %v, and the error %v", tt.v, planned, err)
			continue
		}
		if !planned {
			continue
		}
		want, err := bson.Marshal(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		if string(doc) != "\x09"+string(want) {
			t.Errorf("%#v: got %x, the driver %x", tt.v, doc, want)
		}
		other := bson.EncodeContext{Registry: bson.NewRegistry()}
		if _, planned, _ := c.AppendDocument(&other, nil, tt.v); planned {
			t.Errorf("%#v: encoded with another registry", tt.v)
		}
		target := reflect.New(reflect.TypeOf(tt.v))
		if target.Type().Elem().Kind() == reflect.Struct {
			if planned, err := c.ReadDocument(&bson.DecodeContext{Registry: c.reg}, want, target.Interface()); !planned || err != nil || !reflect.DeepEqual(target.Elem().Interface(), tt.v) {
				t.Errorf("%#v: read %v, %v, %v", tt.v, target.Elem(), planned, err)
			}
			if planned, _ := c.ReadDocument(&bson.DecodeContext{Registry: other.Registry}, want, target.Interface()); planned {
				t.Errorf("%#v: read with another registry", tt.v)
			}
		}
	}
	for _, v := range []any{1, "x", inner{1}, d, m, []int{1}, true} {
		bt, value, planned, err := c.AppendValue(&ec, []byte{9}, v)
		wantType, want, wantErr := bson.MarshalValue(v)
		if !planned || err != nil || wantErr != nil || bt != wantType || string(value) != "\x09"+string(want) {
			t.Errorf("%#v: got %v %x, %v, %v; the driver %v %x", v, bt, value, planned, err, wantType, want)
		}
		target := reflect.New(reflect.TypeOf(v))
		if planned, err := c.ReadValue(&bson.DecodeContext{Registry: c.reg}, bt, want, target.Interface()); !planned || err != nil || fmt.Sprint(target.Elem()) != fmt.Sprint(v) {
			t.Errorf("%#v: read %v, %v, %v", v, target.Elem(), planned, err)
		}
		if planned, err := c.ReadValue(&bson.DecodeContext{Registry: c.reg}, bt, append(want, 0), target.Interface()); planned && len(want) > 1 || err != nil {
			t.Errorf("%#v: a value with a byte too many was read: %v", v, err)
		}
	}
	if _, _, planned, err := c.AppendValue(&ec, nil, make(chan int)); planned || err != nil {
		t.Errorf("a channel: got %v, %v", planned, err)
	}
	if _, _, planned, err := c.AppendValue(&ec, nil, nil); planned || err != nil {
		t.Errorf("nil: got %v, %v", planned, err)
	}
}

// writersOf returns writers in several states: at the top, within a document where a value must be, within one where a key
// must be, of Extended JSON, and one whose bytes go nowhere.
func writersOf() map[string]bson.ValueWriter {
	within := bson.NewDocumentWriter(io.Discard)
	_, _ = within.WriteDocument()
	value := bson.NewDocumentWriter(io.Discard)
	dw, _ := value.WriteDocument()
	value, _ = dw.WriteDocumentElement("k")
	return map[string]bson.ValueWriter{
		"top": bson.NewDocumentWriter(io.Discard), "within": within, "value": value, "json": bson.NewExtJSONValueWriter(io.Discard, true, false),
	}
}

// The errors of encoding are those of the driver, whatever state the writer is in.
func TestErrorsOfEncoding(t *testing.T) {
	stock := bson.NewRegistry()
	c := newWholeCodec()
	for name := range writersOf() {
		for _, v := range []any{
			struct{ C chan int }{make(chan int)}, struct{ A any }{make(chan int)}, struct{ N int }{1}, bson.D{{Key: "a", Value: make(chan int)}, {Key: "b"}, {Key: "c"}, {Key: "d"}}, bson.M{"a": make(chan int)},
			bson.D{{Key: "a", Value: 1}, {Key: "b"}, {Key: "c"}, {Key: "d"}}, struct {
				A int `bson:"a"`
				B int `bson:"a"`
			}{},
		} {
			var errs [2]error
			for i, reg := range []*bson.Registry{stock, c.reg} {
				enc, err := reg.LookupEncoder(reflect.TypeOf(v))
				if err != nil {
					t.Fatal(err)
				}
				errs[i] = enc.EncodeValue(bson.EncodeContext{Registry: reg}, writersOf()[name], reflect.ValueOf(v))
			}
			if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
				t.Errorf("%s, a %T: got %v, the driver %v", name, v, errs[1], errs[0])
			}
		}
		for _, v := range []any{1, "x", []int{1}} {
			err := c.EncodeValue(bson.EncodeContext{Registry: c.reg}, writersOf()[name], reflect.ValueOf(v))
			want, _ := stock.LookupEncoder(reflect.TypeFor[struct{}]())
			if wanted := want.EncodeValue(bson.EncodeContext{Registry: stock}, writersOf()[name], reflect.ValueOf(v)); wanted == nil || fmt.Sprint(err) != fmt.Sprint(wanted) {
				t.Errorf("%s, a %T: got %v, the driver %v", name, v, err, wanted)
			}
		}
	}
}

// A document that is cut off or changed in one byte is decoded into each type, or refused, as the driver does it.
func TestDamagedValues(t *testing.T) {
	type inner struct{ N int32 }
	n := int32(7)
	plans, stock := newWholeCodec().reg, bson.NewRegistry()
	for _, v := range []any{
		true, n, int64(8), 1.5, "text", time.UnixMilli(5).UTC(), bson.DateTime(6), bson.ObjectID{1, 2}, inner{1}, &inner{2}, &n, []int32{1, 2}, []string{"a"}, [2]int32{1, 2}, map[string]int32{"k": 1},
		bson.D{{Key: "a", Value: "x"}}, bson.M{"a": n}, bson.A{n, "x"}, []byte{1, 2}, bson.Binary{Subtype: 2, Data: []byte{1, 2}}, bson.Binary{Subtype: 4, Data: []byte{1}}, bson.Timestamp{T: 1, I: 2},
		bson.NewDecimal128(1, 2), bson.Regex{Pattern: "p", Options: "i"}, bson.JavaScript("j"), bson.Symbol("s"), bson.Null{}, bson.CodeWithScope{Code: "c", Scope: bson.D{}},
		bson.DBPointer{DB: "d"}, bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}},
	} {
		doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}, {Key: "z", Value: n}})
		if err != nil {
			t.Fatal(err)
		}
		z := reflect.StructField{Name: "Z", Type: reflect.TypeFor[int32]()}
		field := func(t reflect.Type) reflect.StructField { return reflect.StructField{Name: "V", Type: t} }
		targets := []reflect.Type{
			reflect.StructOf([]reflect.StructField{field(reflect.TypeOf(v)), z}), reflect.StructOf([]reflect.StructField{field(tAny), z}), reflect.StructOf([]reflect.StructField{z}),
			reflect.StructOf([]reflect.StructField{z, {Name: "Rest", Type: reflect.MapOf(tString, reflect.TypeOf(v)), Tag: `bson:",inline"`}}), tD,
		}
		check := func(doc []byte) {
			if allocates(doc) {
				return
			}
			for _, typ := range targets {
				if got, want := readOutcome(plans, doc, typ), readOutcome(stock, doc, typ); got != want {
					t.Errorf("%x into a %v: got %s, the driver %s", doc, typ, got, want)
				}
			}
		}
		check(doc)
		for i := 4; i < len(doc); i++ {
			for _, b := range []byte{0, 1, 8, doc[i] + 1} {
				if b < 0x80 && (doc[i-1] != 0 || doc[i-2] != 0) { // the driver allocates what a length says
					other := bytes.Clone(doc)
					other[i] = b
					check(other)
				}
			}
			cut := append(bytes.Clone(doc[:i]), 0)
			binary.LittleEndian.PutUint32(cut, uint32(len(cut)))
			check(cut)
		}
	}
}

// allocates reports whether a length in the document makes the driver, which reads from a stream, allocate far more than the
// document has.
func allocates(doc []byte) bool {
	rest := doc[min(4, len(doc)):]
	for len(rest) > 0 && rest[0] != 0 {
		typ := bson.Type(rest[0])
		_, value, ok := bytes.Cut(rest[1:], []byte{0})
		if !ok {
			return false
		}
		switch typ {
		case bson.TypeString, bson.TypeBinary, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeDBPointer, bson.TypeCodeWithScope:
			lengths := value[:min(4, len(value))]
			if typ == bson.TypeCodeWithScope {
				lengths = value[:min(8, len(value))]
			}
			for ; len(lengths) >= 4; lengths = lengths[4:] {
				if int32(binary.LittleEndian.Uint32(lengths)) > 1<<20 {
					return true
				}
			}
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if allocates(value) {
				return true
			}
		}
		if _, rest, ok = bsoncore.ReadValue(value, bsoncore.Type(typ)); !ok {
			return false
		}
	}
	return false
}

// The fields of the usual types are read and written by the plan of the struct itself.
func TestDirectFields(t *testing.T) {
	type inner struct{ N int32 }
	type text string
	c := newOwnCodec()
	for _, tt := range []struct {
		v                 any
		read, written     directly
		readTo, writtenAs bson.Type // 0 if it is not known before
	}{
		{"", directString, directString, bson.TypeString, bson.TypeString}, {text(""), directString, directString, bson.TypeString, bson.TypeString}, {true, directBool, directBool, bson.TypeBoolean, bson.TypeBoolean},
		{1.5, directFloat, directFloat, bson.TypeDouble, bson.TypeDouble}, {float32(1.5), notDirectly, directFloat, 0, bson.TypeDouble}, {int32(1), directInt32, directInt32, bson.TypeInt32, bson.TypeInt32},
		{int64(1), directInt64, directInt64, bson.TypeInt64, bson.TypeInt64}, {int16(1), notDirectly, directInt32, 0, bson.TypeInt32}, {int8(1), notDirectly, directInt32, 0, bson.TypeInt32}, {1, notDirectly, directFunc, 0, 0},
		{uint32(1), notDirectly, directFunc, 0, 0}, {inner{}, directFunc, directFunc, bson.TypeEmbeddedDocument, 0}, {[]int{}, directFunc, directFunc, bson.TypeArray, 0}, {time.Time{}, directFunc, directFunc, bson.TypeDateTime, 0},
		{bson.DateTime(0), directFunc, directFunc, bson.TypeDateTime, 0}, {bson.ObjectID{}, directFunc, directFunc, bson.TypeObjectID, 0}, {map[string]int{}, notDirectly, directFunc, 0, 0}, {[]byte{}, notDirectly, directFunc, 0, 0},
		{bson.Binary{}, notDirectly, directFunc, 0, 0}, {plannedPrice{}, directCodec, directCodec, bson.TypeBinary, 0}, {ownPrice{}, notDirectly, notDirectly, 0, 0}, {chan int(nil), notDirectly, notDirectly, 0, 0}, {new(int), notDirectly, directFunc, 0, 0},
	} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(tt.v)}})
		if f := c.decodeMode.decodePlan(typ).fields[0]; f.direct != tt.read || tt.read != notDirectly && f.header != string(rune(tt.readTo))+"v\x00" {
			t.Errorf("a field of type %T is read as %d, with %q", tt.v, f.direct, f.header)
		}
		p := c.encodeMode.encodePlan(typ)
		if hasCodec := reflect.TypeOf(tt.v).Kind() != reflect.Chan; p.planned != hasCodec || (p.why == "") != hasCodec {
			t.Errorf("a field of type %T has a plan: %v", tt.v, p.planned)
		} else if p.planned && (p.fields[0].direct != tt.written || string(p.fields[0].header) != string(rune(tt.writtenAs))+"v\x00") {
			t.Errorf("a field of type %T is written as %d, with %q", tt.v, p.fields[0].direct, p.fields[0].header)
		}
	}
}

// A field is read by the plan of the struct if the value is whole and the end of the document is behind it.
func TestValuesOfDirectFields(t *testing.T) {
	c := newOwnCodec()
	for _, tt := range []struct {
		b    string
		want any
		size int
	}{
		{"\x01\x00\x00\x00\x00\x00", "", 5}, {"\x02\x00\x00\x00a\x00\x00", "a", 6}, {"\x02\x00\x00\x00a\x00", "", 0}, {"\x02\x00\x00\x00ab\x00", "", 0}, {"\x00\x00\x00\x00\x00\x00", "", 0}, {"\x00\x00\x00\x00", "", 0}, {"", "", 0},
		{"\x07\x00\x00\x00\x00", int32(7), 4}, {"\x07\x00\x00\x00", int32(0), 0}, {"\x07\x00\x00", int32(0), 0},
		{"\x07\x00\x00\x00\x00\x00\x00\x00\x00", int64(7), 8}, {"\x07\x00\x00\x00\x00\x00\x00\x00", int64(0), 0},
		{"\x00\x00\x00\x00\x00\x00\xf8\x3f\x00", 1.5, 8}, {"\x00\x00\x00\x00\x00\x00\xf8\x3f", 0.0, 0},
		{"\x01\x00", true, 1}, {"\x00\x00", false, 1}, {"\x02\x00", false, 0}, {"\x01", false, 0}, {"", false, 0},
		{"\x00\x00\x00\x00\x00\x00", plannedPrice{}, 5}, {"\x01\x00\x00\x00\x00a\x00", plannedPrice{}, 6}, {"\x01\x00\x00\x00\x00a", plannedPrice{}, 0}, {"\x00\x00\x00\x00\x00", plannedPrice{}, 0},
		{"\x04\x00\x00\x00\x02\x00\x00\x00\x00\x00", plannedPrice{}, 0}, {"\xff\xff\xff\xff\x00\x00", plannedPrice{}, 0}, {"", plannedPrice{}, 0},
		{"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x00", bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 12}, {"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", bson.ObjectID{}, 0},
	} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(tt.want)}})
		p, v := c.decodeMode.decodePlan(typ), reflect.New(typ).Elem()
		size, err := p.readDirect(&p.fields[0], []byte(tt.b), v)
		if err != nil || size != tt.size || !reflect.DeepEqual(v.Field(0).Interface(), tt.want) {
			t.Errorf("%T from %x: got %v, %d and %v, want %v and %d", tt.want, tt.b, v.Field(0), size, err, tt.want, tt.size)
		}
	}
}

// A document is read into a struct, into what a pointer to it points to, and into a new struct if that pointer is nil.
func TestReadDocument(t *testing.T) {
	type inner struct{ N int32 }
	c := newWholeCodec()
	data, err := bson.Marshal(bson.D{{Key: "n", Value: int32(7)}})
	if err != nil {
		t.Fatal(err)
	}
	old := &inner{1}
	into, fresh := old, (*inner)(nil)
	for _, v := range []any{new(inner), &into, &fresh} {
		if planned, err := c.ReadDocument(nil, data, v); !planned || err != nil {
			t.Errorf("a %T: got %v and %v", v, planned, err)
		}
	}
	if into != old || *old != (inner{7}) || fresh == nil || *fresh != (inner{7}) {
		t.Errorf("got %v and %v", into, fresh)
	}
	for _, v := range []any{inner{}, (*inner)(nil), new(int), new(*int), new(**inner), nil} {
		if planned, err := c.ReadDocument(nil, data, v); planned || err != nil {
			t.Errorf("a %T: got %v and %v", v, planned, err)
		}
	}
}

// The elements of an array are read in parts, the first of the given size, and are where they belong in the end.
func TestChunksOfArrays(t *testing.T) {
	want := []int32{1, 2, 3, 4, 5, 6, 7}
	_, array, err := bson.MarshalValue(want)
	if err != nil {
		t.Fatal(err)
	}
	elem := func(_ byte, data []byte, v reflect.Value) error {
		v.SetInt(int64(int32At(data)))
		return nil
	}
	for size := 1; size <= len(want)+1; size++ {
		for _, v := range []reflect.Value{reflect.New(reflect.TypeFor[[]int32]()).Elem(), reflect.New(reflect.TypeFor[[7]int32]()).Elem()} {
			if err := readChunks(array, 4, 0, len(want), size, reflect.TypeFor[[]int32](), v, elem); err != nil || fmt.Sprint(v) != fmt.Sprint(want) {
				t.Errorf("parts of %d: got %v and %v", size, v, err)
			}
		}
	}
}

// A key that holds a zero byte is refused before the value is encoded, as by the driver, whatever the value is in.
func TestKeysComeBeforeValues(t *testing.T) {
	type holder struct{ P ownPrice }
	type text string
	v := &holder{}
	var inAny any = v
	calls := 0
	counted := bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
		calls++
		return vw.WriteNull()
	})
	c, driver := newWholeCodec(), bson.NewRegistry()
	for _, reg := range []*bson.Registry{c.reg, driver} {
		reg.RegisterTypeEncoder(reflect.TypeFor[ownPrice](), counted)
	}
	for _, key := range []string{"a\x00", "\x00", "\x00a"} {
		for _, doc := range []any{
			bson.D{{Key: key, Value: *v}}, bson.D{{Key: key, Value: v}}, bson.D{{Key: key, Value: &v}}, map[string]any{key: v}, map[string]any{key: *v}, map[string]*holder{key: v}, map[string]holder{key: *v},
			map[text]any{text(key): v}, map[text]any{text(key): *v}, map[text]*any{text(key): &inAny},
		} {
			enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
			enc.SetRegistry(driver)
			want := enc.Encode(doc)
			if want == nil || calls != 0 {
				t.Fatalf("%#v: the driver returns %v after %d calls", doc, want, calls)
			}
			if _, planned, err := c.AppendDocument(&bson.EncodeContext{Registry: c.reg}, nil, doc); !planned || fmt.Sprint(err) != want.Error() || calls != 0 {
				t.Errorf("%#v: got %v and %v after %d calls, the driver %v", doc, planned, err, calls, want)
			}
		}
	}
}

// A namedFallback is a fallback that knows more about errors.
type namedFallback struct {
	bson.ValueEncoder
	bson.ValueDecoder
	name string
}

func (f namedFallback) EncodeError(_ bson.EncodeContext, _ reflect.Value, err error) error {
	return fmt.Errorf("%s: %w", f.name, err)
}
func (f namedFallback) DecodeError(err error) error { return fmt.Errorf("%s: %w", f.name, err) }
func (f namedFallback) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder {
	return f.ValueEncoder
}

// An error of a plan is told to the fallback of the document, or to that of structs if that one does not ask for it.
func TestFallbacksKnowMoreAboutErrors(t *testing.T) {
	reg := bson.NewRegistry()
	named := func(typ reflect.Type, name string) namedFallback {
		enc, _ := reg.LookupEncoder(typ)
		dec, _ := reg.LookupDecoder(typ)
		return namedFallback{enc, dec, name}
	}
	structs, maps := named(reflect.TypeFor[struct{}](), "struct"), named(reflect.TypeFor[map[string]int](), "map")
	slices, d := named(reflect.TypeFor[[]int](), ""), named(tD, "")
	c := New(reg, structs, structs, errOwnCodec)
	reg.RegisterKindEncoder(reflect.Struct, c)
	reg.RegisterKindDecoder(reflect.Struct, c)
	reg.RegisterKindEncoder(reflect.Map, c.DocumentEncoder(maps))
	reg.RegisterKindEncoder(reflect.Slice, c.DocumentEncoder(slices.ValueEncoder))
	reg.RegisterTypeDecoder(tD, c.DocumentDecoder(d.ValueDecoder))
	price := reflect.TypeFor[failingPrice]()
	reg.RegisterTypeEncoder(price, failingCodec{})
	reg.RegisterTypeDecoder(price, failingCodec{})
	reg.RegisterTypeMapEntry(bson.TypeInt64, price)
	type holder struct {
		Long string `bson:",omitempty"`
		V    failingPrice
	}
	ec := bson.EncodeContext{Registry: reg}
	for want, v := range map[string]any{
		"struct: failing": holder{}, "map: failing": map[string]failingPrice{"k": {}}, "struct: failing ": bson.D{{Key: "v", Value: failingPrice{}}}, "struct: failing  ": []failingPrice{{}},
	} {
		want = strings.TrimRight(want, " ")
		if _, _, planned, err := c.AppendValue(&ec, nil, v); !planned || fmt.Sprint(err) != want {
			t.Errorf("the value %T: got %v and %v, want %s", v, planned, err, want)
		}
		if reflect.TypeOf(v) == reflect.TypeFor[[]failingPrice]() {
			continue
		}
		if _, planned, err := c.AppendDocument(&ec, nil, v); !planned || fmt.Sprint(err) != want {
			t.Errorf("the document %T: got %v and %v, want %s", v, planned, err, want)
		}
	}
	for _, long := range []string{"", strings.Repeat("x", 1<<10), strings.Repeat("x", 1<<16)} {
		doc, err := bson.Marshal(bson.D{{Key: "long", Value: long}, {Key: "v", Value: int64(1)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []io.Reader{bytes.NewReader(doc), io.MultiReader(bytes.NewReader(doc))} {
			dec := bson.NewDecoder(bson.NewDocumentReader(in))
			dec.SetRegistry(reg)
			_, unread := in.(*bytes.Reader) // of another stream, the first document is one of unknown length
			if err := dec.Decode(new(holder)); fmt.Sprint(err) != "struct: error decoding key v: failing" && unread {
				t.Errorf("%d bytes: got %v", len(doc), err)
			}
		}
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
		dec.SetRegistry(reg)
		if err := dec.Decode(new(bson.D)); fmt.Sprint(err) != "failing" {
			t.Errorf("a bson.D of %d bytes: got %v", len(doc), err)
		}
	}
}

// A wrappingWriter passes everything on to writer, and elements to element.
type wrappingWriter struct {
	bson.ValueWriter
	element func(bson.DocumentWriter, string) (bson.ValueWriter, error)
}

func (w wrappingWriter) Unwrap() bson.ValueWriter { return w.ValueWriter }
func (w wrappingWriter) WriteDocument() (bson.DocumentWriter, error) {
	dw, err := w.ValueWriter.WriteDocument()
	return wrappingDocument{dw, w.element}, err
}

type wrappingDocument struct {
	bson.DocumentWriter
	element func(bson.DocumentWriter, string) (bson.ValueWriter, error)
}

func (w wrappingDocument) WriteDocumentElement(key string) (bson.ValueWriter, error) {
	return w.element(w.DocumentWriter, key)
}

// An error of a writer around the driver's is returned, and what is not around the driver's is written to one by one.
func TestWritersAroundOthers(t *testing.T) {
	c := newWholeCodec()
	ec := bson.EncodeContext{Registry: c.reg}
	v := struct{ A, B int32 }{1, 2}
	pass := bson.DocumentWriter.WriteDocumentElement
	for name, element := range map[string]func(bson.DocumentWriter, string) (bson.ValueWriter, error){
		"element": func(bson.DocumentWriter, string) (bson.ValueWriter, error) { return nil, errFailing },
		"value":   func(bson.DocumentWriter, string) (bson.ValueWriter, error) { return writersOf()["within"], nil },
	} {
		if err := c.EncodeValue(ec, wrappingWriter{bson.NewDocumentWriter(io.Discard), element}, reflect.ValueOf(v)); err == nil {
			t.Errorf("an error of the %s is lost", name)
		}
	}
	around := wrappingWriter{bson.NewDocumentWriter(io.Discard), pass}
	for want, vws := range map[bool][]bson.ValueWriter{
		true:  {bson.NewDocumentWriter(io.Discard), around},
		false: {struct{ bson.ValueWriter }{around}, wrappingWriter{bson.NewExtJSONValueWriter(io.Discard, true, false), pass}, bson.NewExtJSONValueWriter(io.Discard, true, false)},
	} {
		for _, vw := range vws {
			if got := isDriverWriter(vw); got != want {
				t.Errorf("%T: got %v, want %v", vw, got, want)
			}
		}
	}
	var plain, wrapped, text, wrappedText bytes.Buffer
	for _, vw := range []bson.ValueWriter{
		bson.NewDocumentWriter(&plain), struct{ bson.ValueWriter }{bson.NewDocumentWriter(&wrapped)},
		bson.NewExtJSONValueWriter(&text, true, false), wrappingWriter{bson.NewExtJSONValueWriter(&wrappedText, true, false), pass},
	} {
		if err := c.EncodeValue(ec, vw, reflect.ValueOf(v)); err != nil {
			t.Errorf("%T: %v", vw, err)
		}
	}
	if !bytes.Equal(plain.Bytes(), wrapped.Bytes()) || text.String() != wrappedText.String() || text.Len() == 0 {
		t.Errorf("got %x and %x, %s and %s", plain.Bytes(), wrapped.Bytes(), &text, &wrappedText)
	}
}

// A value of no type is read by the driver's reader from memory, which plans take for no stream.
func TestRawValueWithoutType(t *testing.T) {
	plans, stock := newWholeCodec().reg, bson.NewRegistry()
	doc, err := bson.Marshal(bson.D{{Key: "n", Value: int32(1)}})
	if err != nil {
		t.Fatal(err)
	}
	type inner struct{ N int32 }
	for _, target := range []func() any{func() any { return new(inner) }, func() any { return new(bson.D) }, func() any { return new(bson.M) }} {
		got, want := target(), target()
		gotErr := bson.RawValue{Value: doc}.UnmarshalWithRegistry(plans, got)
		wantErr := bson.RawValue{Value: doc}.UnmarshalWithRegistry(stock, want)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
			t.Errorf("a %T: got %v and %v, the driver %v and %v", want, got, gotErr, want, wantErr)
		}
	}
}
