package structcodec

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A document that is decoded from another reader than that of this version of the driver is left to it.
func TestShapesOfReaders(t *testing.T) {
	type source struct{ br *bufio.Reader }
	type named struct{ src any }
	type inside struct{ named }
	type deepSource struct{ source }
	for _, vr := range []any{
		1, new(int), named{}, &struct{ other any }{}, &struct{ src int }{}, &inside{named: named{&source{br: nil}}}, &named{}, &named{1}, &named{new(int)}, &named{source{}},
		&named{&struct{ other *bufio.Reader }{}}, &named{&struct{ br int }{}}, &named{&struct{ br *int }{}}, &named{&deepSource{source: source{}}}, &named{&struct{ br *bytes.Reader }{}},
	} {
		if got := shapeOf(reflect.ValueOf(vr)); got != nil {
			t.Errorf("a %T: got %+v", vr, got)
		}
	}
	if got := shapeOf(reflect.ValueOf(&named{&source{}})); got == nil || got.source != 0 || got.buffered != 0 || got.sourceType != reflect.TypeFor[*source]() {
		t.Errorf("got %+v", got)
	}
	type moved struct {
		n  int
		br *bufio.Reader
	}
	if got := shapeOf(reflect.ValueOf(&struct {
		n   int
		src any
	}{src: &moved{n: 0, br: nil}})); got == nil || got.source != 1 || got.buffered != 1 {
		t.Errorf("got %+v", got)
	}
}

// countedDecoder counts the calls of a fallback.
type countedDecoder struct {
	bson.ValueDecoder
	calls *int
}

func (c countedDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	*c.calls++
	return c.ValueDecoder.DecodeValue(dc, vr, v)
}

// A document of a stream is read by a plan if its length was read with the one before it, or all of it is in memory.
func TestDocumentsOfStreams(t *testing.T) {
	type target struct{ S string }
	document := func(n int) []byte { return marshalled(t, bson.D{{Key: "s", Value: strings.Repeat("x", n)}}) }
	small, longest, large := document(10), document(maxCopied-len(document(0))), document(maxCopied-len(document(0))+1)
	calls := 0
	codec := func() *bson.Registry {
		reg := bson.NewRegistry()
		enc, _ := reg.LookupEncoder(reflect.TypeFor[struct{}]())
		dec, _ := reg.LookupDecoder(reflect.TypeFor[struct{}]())
		reg.RegisterKindDecoder(reflect.Struct, New(reg, enc, countedDecoder{dec, &calls}, errOwnCodec))
		return reg
	}
	join := func(docs ...[]byte) []byte { return bytes.Join(docs, nil) }
	parts := func(parts ...[]byte) io.Reader {
		var all []io.Reader
		for _, p := range parts {
			all = append(all, bytes.NewReader(p))
		}
		return struct{ io.Reader }{io.MultiReader(all...)}
	}
	for name, tt := range map[string]struct {
		r     io.Reader
		docs  int
		calls int // of the fallback
	}{
		"memory":                     {bytes.NewReader(join(small, large, small, longest)), 4, 0},
		"a buffer":                   {bytes.NewBuffer(join(small, large, small, longest)), 4, 0},
		"a stream":                   {parts(join(small, small), small), 3, 2}, // the first one, and the one after the end of a part
		"a length":                   {parts(join(small, small[:4]), small[4:]), 2, 1},
		"a part of a length":         {parts(join(small, small[:3]), small[3:]), 2, 2},
		"as long as what is copied":  {parts(join(small, longest)), 2, 1},
		"longer than what is copied": {parts(join(small, large)), 2, 2},
	} {
		calls = 0
		dec := bson.NewDecoder(bson.NewDocumentReader(tt.r))
		dec.SetRegistry(codec())
		for i := range tt.docs {
			var v target
			if err := dec.Decode(&v); err != nil || strings.Trim(v.S, "x") != "" || v.S == "" {
				t.Errorf("%s, document %d: got %.20q and %v", name, i, v.S, err)
			}
		}
		if calls != tt.calls {
			t.Errorf("%s: the fallback was called %d times, want %d", name, calls, tt.calls)
		}
	}
}

// A reader that a caller moves, and whose bytes a caller changes, after a part of it was read ahead, is read as by the driver.
func TestReadersThatAreMoved(t *testing.T) {
	first := marshalled(t, bson.D{{Key: "n", Value: int32(1)}})
	long := marshalled(t, bson.D{{Key: "n", Value: int32(2)}, {Key: "s", Value: strings.Repeat("x", 30_000)}})
	other := marshalled(t, bson.D{{Key: "n", Value: int32(3)}, {Key: "s", Value: strings.Repeat("y", 30_000)}})
	type target struct {
		N int32
		S string
	}
	plans, driver := newWholeCodec().reg, bson.NewRegistry()
	for name, move := range map[string]func(*bytes.Reader){
		"not":           func(*bytes.Reader) {},
		"to the start":  func(r *bytes.Reader) { _, _ = r.Seek(0, io.SeekStart) },
		"to the end":    func(r *bytes.Reader) { _, _ = r.Seek(0, io.SeekEnd) },
		"beyond":        func(r *bytes.Reader) { _, _ = r.Seek(1<<20, io.SeekStart) },
		"on":            func(r *bytes.Reader) { _, _ = r.Seek(100, io.SeekCurrent) },
		"back":          func(r *bytes.Reader) { _, _ = r.Seek(-3000, io.SeekCurrent) },
		"another":       func(r *bytes.Reader) { r.Reset(other); _, _ = r.Seek(4096, io.SeekStart) },
		"a shorter one": func(r *bytes.Reader) { r.Reset(first) },
		"none":          func(r *bytes.Reader) { r.Reset(nil) },
	} {
		read := func(reg *bson.Registry) (text string) {
			defer func() {
				if r := recover(); r != nil {
					text += fmt.Sprint("panic: ", r)
				}
			}()
			r := bytes.NewReader(bytes.Join([][]byte{first, long, other}, nil))
			dec := bson.NewDecoder(bson.NewDocumentReader(r))
			dec.SetRegistry(reg)
			for i := range 4 {
				var v target
				err := dec.Decode(&v)
				text += fmt.Sprint(v, err, "; ")
				if err != nil {
					return text
				}
				if i == 0 {
					move(r)
				}
			}
			return text
		}
		if got, want := read(plans), read(driver); got != want {
			t.Errorf("moved %s: got %d bytes: %.200s; the driver %d: %.200s", name, len(got), got, len(want), want)
		}
	}
}

// A stream that fails within a document has the error of the stream.
func TestStreamsThatFail(t *testing.T) {
	doc := marshalled(t, bson.D{{Key: "n", Value: int32(1)}})
	for _, reg := range []*bson.Registry{newWholeCodec().reg, bson.NewRegistry()} {
		for n := range len(doc) {
			dec := bson.NewDecoder(bson.NewDocumentReader(io.MultiReader(bytes.NewReader(append(bytes.Clone(doc), doc[:n]...)), iotest.ErrReader(errFailing))))
			dec.SetRegistry(reg)
			for i := range 2 {
				var v struct{ N int32 }
				if err := dec.Decode(&v); (i == 0) != (err == nil) || err != nil && !errors.Is(err, errFailing) {
					t.Errorf("document %d before %d bytes: got %v", i, n, err)
				}
			}
		}
	}
}

// A long document that is malformed is decoded as by the driver, unless a length in it is so wrong that its reader of streams
// would allocate far more than the document has, or not come back.
func TestLongMalformedDocuments(t *testing.T) {
	type target struct {
		S string
		D bson.D
		N int32
	}
	plans, driver := newWholeCodec().reg, bson.NewRegistry()
	doc := marshalled(t, bson.D{{Key: "s", Value: strings.Repeat("x", 30_000)}, {Key: "d", Value: bson.D{{Key: "t", Value: "text"}}}, {Key: "n", Value: int32(7)}})
	at := bytes.Index(doc, []byte("\x05\x00\x00\x00text")) // a length
	for _, length := range []int32{4, 6, 20, 1000, 16 << 10, 1 << 20, 1 << 28} {
		for _, typ := range []reflect.Type{reflect.TypeFor[target](), tD, tM} {
			other := bytes.Clone(doc)
			binary.LittleEndian.PutUint32(other[at:], uint32(length))
			got, want := readOutcome(plans, other, typ), readOutcome(driver, other, typ)
			if got != want || !strings.Contains(got, "EOF") && !strings.Contains(got, "invalid") && !strings.Contains(got, "null") {
				t.Errorf("a length of %d, into a %v: got %.100s, the driver %.100s", length, typ, got, want)
			}
		}
	}
	// A negative length, and another one beyond the end.
	other := bytes.Clone(doc)
	binary.LittleEndian.PutUint32(other[at:], uint32(1<<30))
	other = append(other[:len(other)-1], "\x02z\x00\xff\xff\xff\xff\x00"...)
	binary.LittleEndian.PutUint32(other, uint32(len(other)))
	for _, typ := range []reflect.Type{reflect.TypeFor[target](), tD, tM} {
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(other)))
		dec.SetRegistry(plans)
		if err := dec.Decode(reflect.New(typ).Interface()); err == nil || errors.Is(err, errMalformed) {
			t.Errorf("a %v: got %v", typ, err)
		}
	}
}

// A value that is not valid BSON does not reach a writer that reads what is written to it, other than from the driver.
func TestInvalidValuesBeforeOtherWriters(t *testing.T) {
	plans, driver := newOwnCodec().reg, bson.NewRegistry()
	for _, v := range []any{
		struct{ V bson.RawValue }{bson.RawValue{Type: bson.TypeString, Value: []byte{9, 0, 0, 0, 'x'}}}, struct{ V bson.RawValue }{bson.RawValue{Type: bson.TypeInt32, Value: make([]byte, 9)}},
		struct{ V any }{bson.RawValue{Type: 0x44, Value: []byte{1}}}, struct{ V bson.Raw }{bson.Raw{9, 0, 0, 0, 0}}, struct{ V []bson.RawValue }{[]bson.RawValue{{Type: bson.TypeInt64, Value: []byte{1}}}},
	} {
		write := func(reg *bson.Registry) string {
			var buf bytes.Buffer
			enc, err := reg.LookupEncoder(reflect.TypeOf(v))
			if err == nil {
				vw := wrappingWriter{bson.NewDocumentWriter(&buf), bson.DocumentWriter.WriteDocumentElement}
				err = enc.EncodeValue(bson.EncodeContext{Registry: reg}, vw, reflect.ValueOf(v))
			}
			return fmt.Sprintf("%x %v", buf.Bytes(), err)
		}
		if got, want := write(plans), write(driver); got != want {
			t.Errorf("%+v: got %s, the driver %s", v, got, want)
		}
	}
}

// Documents of other types than structs are read from memory into what they can be read into.
func TestReadDocumentOfOtherTypes(t *testing.T) {
	c := newWholeCodec()
	doc := marshalled(t, bson.D{{Key: "n", Value: int32(7)}})
	of := func(typ reflect.Type) *DocumentDecoder {
		dec, _ := c.reg.LookupDecoder(typ)
		d, _ := dec.(*DocumentDecoder)
		return d
	}
	maps, ds := of(tM), of(tD)
	into := map[string]int32{}
	for _, tt := range []struct {
		d    *DocumentDecoder
		v    any
		want any
	}{
		{ds, new(bson.D), &bson.D{{Key: "n", Value: int32(7)}}}, {maps, new(bson.M), &bson.M{"n": int32(7)}}, {maps, bson.M{"m": 1}, bson.M{"m": 1, "n": int32(7)}}, {maps, into, map[string]int32{"n": 7}},
		{maps, new(map[string]int64), &map[string]int64{"n": 7}},
	} {
		if planned, err := tt.d.ReadDocument(nil, doc, tt.v); !planned || err != nil || !reflect.DeepEqual(tt.v, tt.want) {
			t.Errorf("a %T: got %v, %v and %v", tt.v, tt.v, planned, err)
		}
	}
	var x any
	if planned, err := maps.ReadDocument(nil, doc, &x); !planned || err != nil || !reflect.DeepEqual(x, any(bson.D{{Key: "n", Value: int32(7)}})) {
		t.Errorf("an any: got %v, %v and %v", x, planned, err)
	}
	for _, v := range []any{(*any)(nil), bson.M(nil), (*bson.M)(nil), (*bson.D)(nil), 1, "x", bson.D{}, []int{1}, new(int), new([]int), new(map[string]chan int), nil} {
		if planned, err := maps.ReadDocument(nil, doc, v); planned || err != nil {
			t.Errorf("a %T: got %v and %v", v, planned, err)
		}
	}
	other := bson.DecodeContext{Registry: bson.NewRegistry()}
	damaged := append(bytes.Clone(doc[:len(doc)-1]), 1)
	for _, v := range []any{new(any), new(bson.M), bson.M{}} {
		if planned, err := maps.ReadDocument(&other, doc, v); planned || err != nil {
			t.Errorf("a %T, with another registry: got %v and %v", v, planned, err)
		}
		before := fmt.Sprint(reflect.Indirect(reflect.ValueOf(v)))
		if planned, err := maps.ReadDocument(nil, damaged, v); planned || err != nil || fmt.Sprint(reflect.Indirect(reflect.ValueOf(v))) != before {
			t.Errorf("a %T, from a malformed document: got %v, %v and %v", v, v, planned, err)
		}
	}
	// An error leaves an any as it was.
	c.reg.RegisterTypeDecoder(reflect.TypeFor[failingPrice](), failingCodec{})
	c.reg.RegisterTypeMapEntry(bson.TypeInt32, reflect.TypeFor[failingPrice]())
	x = "old"
	if planned, err := maps.ReadDocument(nil, doc, &x); !planned || !errors.Is(err, errFailing) || x != "old" {
		t.Errorf("an error: got %v, %v and %v", x, planned, err)
	}
}

// A decoder of documents has plans for the types that the decoder behind it decodes as documents.
func TestDocumentDecodersOfOtherTypes(t *testing.T) {
	type namedD bson.D
	c := newOwnCodec()
	dec := func(typ reflect.Type) bson.ValueDecoder {
		d, _ := c.reg.LookupDecoder(typ)
		return d
	}
	for _, tt := range []struct {
		next bson.ValueDecoder
		t    reflect.Type
		want bool
	}{
		{dec(tD), tD, true}, {dec(tM), tM, true}, {dec(tM), reflect.TypeFor[map[string]int](), true}, {dec(tD), reflect.TypeFor[namedD](), false}, {dec(tD), tM, false}, {dec(tM), tD, false}, {dec(tM), reflect.TypeFor[int](), false},
		{dec(reflect.TypeFor[int]()), tM, false}, {dec(reflect.TypeFor[int]()), tD, false}, {ownCodec{}, tM, false}, {ownCodec{}, tD, false}, {dec(tM), reflect.TypeFor[map[string]chan int](), false},
	} {
		if got := c.DocumentDecoder(tt.next).plan(c.decodeMode, tt.t); (got != nil) != tt.want {
			t.Errorf("%T for a %v: there is a plan: %v", tt.next, tt.t, got != nil)
		}
	}
}

// skippingCodec is a codec that takes part in plans and reads nothing into a value.
type skippingCodec struct{ ownCodec }

func (skippingCodec) AppendValue(dst []byte, _ reflect.Value) (bson.Type, []byte, error) {
	return bson.TypeNull, dst, nil
}

func (skippingCodec) ReadValue(bson.Type, []byte, reflect.Value) error { return nil }

// A field that is a nil pointer is allocated before a codec of a caller for pointers reads it, as by the driver.
func TestPointersAreAllocatedForCallers(t *testing.T) {
	type target struct {
		A *ownPrice
		B *int32
		C *ownHook
		S []*ownPrice
	}
	driver, plans := bothCodecs(func(reg *bson.Registry) { reg.RegisterTypeDecoder(reflect.TypeFor[*ownPrice](), skippingCodec{}) })
	var docs [][]byte
	for _, v := range []any{int32(1), nil, "x", bson.D{}, bson.A{nil, int32(1)}} {
		docs = append(docs, marshalled(t, bson.D{{Key: "a", Value: v}, {Key: "c", Value: v}}), marshalled(t, bson.D{{Key: "b", Value: v}}), marshalled(t, bson.D{{Key: "s", Value: v}}))
	}
	for _, doc := range docs {
		var got, want target
		gotErr := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
		gotErr.SetRegistry(plans)
		wantErr := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
		wantErr.SetRegistry(driver)
		if a, b := gotErr.Decode(&got), wantErr.Decode(&want); fmt.Sprint(a) != fmt.Sprint(b) || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v and %v, the driver %+v and %v", bson.Raw(doc), got, a, want, b)
		}
	}
}

// An error of a codec that takes part in plans is returned, and its other method is not called, for a binary value, too.
func TestErrorsOfBinaryValueCodecs(t *testing.T) {
	c := newOwnCodec()
	c.reg.RegisterTypeDecoder(reflect.TypeFor[failingPrice](), failingCodec{})
	doc := marshalled(t, bson.D{{Key: "v", Value: bson.Binary{Subtype: 4, Data: []byte{1}}}})
	if planned, err := c.ReadDocument(nil, doc, new(struct{ V failingPrice })); !planned || !errors.Is(err, errFailing) {
		t.Errorf("got %v and %v", planned, err)
	}
}

// An encoder that leaves a document open is left to the driver, however long the key is.
func TestEncodersThatLeaveDocumentsOpen(t *testing.T) {
	driver, plans := bothCodecs(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[ownPrice](), bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			_, err := vw.WriteDocument()
			return err
		}))
	})
	for _, v := range []any{struct{ P ownPrice }{}, struct{ APriceWithALongName ownPrice }{}, struct{ A any }{ownPrice{}}, struct{ M map[string]ownPrice }{map[string]ownPrice{"a price with a long name": {}}}} {
		if got, want := outcome(plans, v), outcome(driver, v); got != want {
			t.Errorf("%T: got %s, the driver %s", v, got, want)
		}
	}
}

// A countedFallback is a codec of the driver that counts its calls, and passes the types that it is asked for on.
type countedFallback struct {
	bson.ValueEncoder
	bson.ValueDecoder
	calls *int
}

func (c countedFallback) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	*c.calls++
	return c.ValueEncoder.EncodeValue(ec, vw, v)
}

func (c countedFallback) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	*c.calls++
	return c.ValueDecoder.DecodeValue(dc, vr, v)
}

func (c countedFallback) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder {
	return c.ValueEncoder
}

func (c countedFallback) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder {
	return c.ValueDecoder
}

// What is not a whole document of the driver's writer or reader, in a context of the registry, is left to the fallback.
func TestWhatIsLeftToTheFallback(t *testing.T) {
	type inner struct{ N int32 }
	calls := 0
	reg := bson.NewRegistry()
	fallback := func(typ reflect.Type) countedFallback {
		enc, _ := reg.LookupEncoder(typ)
		dec, _ := reg.LookupDecoder(typ)
		return countedFallback{enc, dec, &calls}
	}
	structs, maps := fallback(reflect.TypeFor[struct{}]()), fallback(tM)
	c := New(reg, structs, structs, errOwnCodec)
	encoders := map[reflect.Type]bson.ValueEncoder{reflect.TypeFor[inner](): c, tM: c.DocumentEncoder(maps)}
	decoders := map[reflect.Type]bson.ValueDecoder{reflect.TypeFor[inner](): c, tM: c.DocumentDecoder(maps)}
	pass := bson.DocumentWriter.WriteDocumentElement
	element := func() bson.ValueWriter {
		dw, _ := bson.NewDocumentWriter(io.Discard).WriteDocument()
		vw, _ := dw.WriteDocumentElement("k")
		return vw
	}
	for name, tt := range map[string]struct {
		reg  *bson.Registry
		vw   func() bson.ValueWriter
		want int
	}{
		"the driver's writer":    {reg, func() bson.ValueWriter { return bson.NewDocumentWriter(io.Discard) }, 0},
		"an element":             {reg, element, 0},
		"a writer around it":     {reg, func() bson.ValueWriter { return wrappingWriter{bson.NewDocumentWriter(io.Discard), pass} }, 0},
		"another registry":       {bson.NewRegistry(), func() bson.ValueWriter { return bson.NewDocumentWriter(io.Discard) }, 1},
		"Extended JSON":          {reg, func() bson.ValueWriter { return bson.NewExtJSONValueWriter(io.Discard, true, false) }, 1},
		"a writer of a caller's": {reg, func() bson.ValueWriter { return struct{ bson.ValueWriter }{bson.NewDocumentWriter(io.Discard)} }, 1},
	} {
		for _, v := range []any{inner{1}, bson.M{"a": "b"}} {
			calls = 0
			err := encoders[reflect.TypeOf(v)].EncodeValue(bson.EncodeContext{Registry: tt.reg}, tt.vw(), reflect.ValueOf(v))
			if calls != tt.want || err != nil {
				t.Errorf("%s, a %T: the fallback was called %d times, want %d; error %v", name, v, calls, tt.want, err)
			}
		}
	}
	doc := marshalled(t, bson.D{{Key: "n", Value: int32(7)}})
	within := func() bson.ValueReader {
		dr, _ := bson.NewDocumentReader(bytes.NewReader(marshalled(t, bson.D{{Key: "d", Value: bson.Raw(doc)}}))).ReadDocument()
		_, vr, _ := dr.ReadElement()
		return vr
	}
	for name, tt := range map[string]struct {
		reg  *bson.Registry
		vr   func() bson.ValueReader
		want int
	}{
		"the driver's reader": {reg, func() bson.ValueReader { return bson.NewDocumentReader(bytes.NewReader(doc)) }, 0},
		"an element":          {reg, within, 1},
		"another registry":    {bson.NewRegistry(), func() bson.ValueReader { return bson.NewDocumentReader(bytes.NewReader(doc)) }, 1},
		"Extended JSON": {reg, func() bson.ValueReader {
			vr, _ := bson.NewExtJSONValueReader(strings.NewReader(`{"n": 7}`), false)
			return vr
		}, 1},
		"a reader of a caller's": {reg, func() bson.ValueReader {
			return struct{ bson.ValueReader }{bson.NewDocumentReader(bytes.NewReader(doc))}
		}, 1},
	} {
		for _, v := range []any{new(inner), new(bson.M), bson.M{}} {
			calls = 0
			val := reflect.Indirect(reflect.ValueOf(v))
			if decoder := decoders[val.Type()]; decoder != nil {
				err := decoder.DecodeValue(bson.DecodeContext{Registry: tt.reg}, tt.vr(), val)
				if calls != tt.want || err != nil || !strings.Contains(fmt.Sprint(val), "7") {
					t.Errorf("%s, a %T: the fallback was called %d times, want %d; got %v and error %v", name, v, calls, tt.want, val, err)
				}
			}
		}
	}
	// What cannot be set, or is no struct.
	for _, val := range []reflect.Value{reflect.ValueOf(inner{}), reflect.ValueOf(new(int)).Elem(), reflect.ValueOf(bson.M(nil)), {}} {
		for _, dec := range decoders {
			calls = 0
			func() {
				defer func() { _ = recover() }() // as the driver
				_ = dec.DecodeValue(bson.DecodeContext{Registry: reg}, bson.NewDocumentReader(bytes.NewReader(doc)), val)
			}()
			if calls != 1 {
				t.Errorf("%v: the fallback was called %d times", val, calls)
			}
		}
	}
	for _, v := range []any{1, "x", []int{1}, bson.M{}, bson.M(nil)} {
		for _, enc := range encoders {
			calls = 0
			_ = enc.EncodeValue(bson.EncodeContext{Registry: reg}, bson.NewDocumentWriter(io.Discard), reflect.ValueOf(v))
			if calls != 1 {
				t.Errorf("%v: the fallback was called %d times", v, calls)
			}
		}
	}
}

// After an error, the next document of a stream that is in memory is decoded, however long the document before it was.
// The driver stays within that one.
func TestReadersAfterErrors(t *testing.T) {
	type target struct {
		S string
		N int32
	}
	wrong := marshalled(t, bson.D{{Key: "s", Value: strings.Repeat("x", 30_000)}, {Key: "n", Value: "no number"}})
	right := marshalled(t, bson.D{{Key: "n", Value: 7}})
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(bytes.Join([][]byte{wrong, right, wrong, right}, nil))))
	dec.SetRegistry(newWholeCodec().reg)
	want := bson.Unmarshal(wrong, new(target)).Error()
	for i := range 4 {
		var v target
		switch err := dec.Decode(&v); {
		case i%2 == 0 && (err == nil || err.Error() != want):
			t.Errorf("document %d: error %v, want %s", i, err, want)
		case i%2 == 1 && (err != nil || v.N != 7):
			t.Errorf("document %d: got %+v and error %v", i, v, err)
		}
	}
	if err := dec.Decode(new(target)); err != io.EOF {
		t.Errorf("at the end: error %v", err)
	}
}

// A value is not read in a context of another registry.
func TestReadValueOfAnotherRegistry(t *testing.T) {
	var n int32
	planned, err := newOwnCodec().ReadValue(&bson.DecodeContext{Registry: bson.NewRegistry()}, bson.TypeInt32, []byte{7, 0, 0, 0}, &n)
	if planned || err != nil || n != 0 {
		t.Errorf("got %d, %v and %v", n, planned, err)
	}
}

// A document whose length or end is wrong, or that is too short for either, has no plan.
func TestDocumentsWithoutAnEnd(t *testing.T) {
	doc := marshalled(t, bson.D{{Key: "n", Value: int32(7)}})
	longer, shorter, open := bytes.Clone(doc), bytes.Clone(doc), append(bytes.Clone(doc[:len(doc)-1]), 1)
	longer[0]++
	shorter[0]--
	for _, damaged := range [][]byte{nil, {}, {0}, {5, 0, 0}, {4, 0, 0, 0}, {5, 0, 0, 0}, {5, 0, 0, 0, 1}, longer, shorter, open, append(bytes.Clone(doc), 0), doc[:len(doc)-1]} {
		if planned, err := newOwnCodec().ReadDocument(nil, damaged, new(struct{ N int32 })); planned || err != nil {
			t.Errorf("%x: got %v and %v", damaged, planned, err)
		}
	}
}

// What a field without a decoder holds after the error is what it holds with the driver, with every option.
func TestFieldsWithoutDecoders(t *testing.T) {
	type target struct {
		N int32
		P *chan int
		C chan int
	}
	plans, driver := newOwnCodec().reg, bson.NewRegistry()
	for _, set := range []func(*bson.Decoder){func(*bson.Decoder) {}, (*bson.Decoder).ZeroStructs, (*bson.Decoder).ZeroMaps} {
		for _, key := range []string{"p", "c", "n"} {
			for _, v := range []any{int32(1), nil, "x"} {
				doc := marshalled(t, bson.D{{Key: "n", Value: int32(1)}, {Key: key, Value: v}})
				read := func(reg *bson.Registry) (text string) {
					into := target{N: 9}
					defer func() {
						if recover() != nil {
							text = fmt.Sprint("panic ", into.N, into.P != nil, into.C != nil)
						}
					}()
					dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
					dec.SetRegistry(reg)
					set(dec)
					err := dec.Decode(&into)
					return fmt.Sprint(into.N, into.P != nil, into.C != nil, err)
				}
				if got, want := read(plans), read(driver); got != want {
					t.Errorf("%v: got %s, the driver %s", bson.Raw(doc), got, want)
				}
			}
		}
	}
}

// A refusingFallback refuses a type.
type refusingFallback struct {
	countedFallback
	t reflect.Type
}

func (f refusingFallback) Refuses(t reflect.Type) bool { return t == f.t }

// A type that the fallback refuses has no plan, and a pointer that has a codec of its own is not followed.
func TestTypesThatAreRefused(t *testing.T) {
	type inner struct{ N int32 }
	reg := bson.NewRegistry()
	enc, _ := reg.LookupEncoder(reflect.TypeFor[struct{}]())
	dec, _ := reg.LookupDecoder(reflect.TypeFor[struct{}]())
	fallback := refusingFallback{countedFallback{enc, dec, new(int)}, reflect.TypeFor[inner]()}
	c := New(reg, fallback, fallback, errOwnCodec)
	reg.RegisterKindEncoder(reflect.Struct, c)
	reg.RegisterKindDecoder(reflect.Struct, c)
	for typ, want := range map[reflect.Type]bool{reflect.TypeFor[inner](): false, reflect.TypeFor[struct{ N int32 }](): true} {
		e, d := c.encodeMode.encodePlan(typ), c.decodeMode.decodePlan(typ)
		if e.planned != want || d.planned != want || (e.why == "") != want || (d.why == "") != want {
			t.Errorf("%v: got %v, %q, %v and %q", typ, e.planned, e.why, d.planned, d.why)
		}
	}
	doc := marshalled(t, inner{7})
	for _, own := range []bool{false, true} {
		c := newWholeCodec()
		if own {
			for _, typ := range []reflect.Type{reflect.TypeFor[*inner](), reflect.TypeFor[*bson.D](), reflect.TypeFor[*bson.M]()} {
				c.reg.RegisterTypeEncoder(typ, ownCodec{})
				c.reg.RegisterTypeDecoder(typ, ownCodec{})
			}
		}
		if planned, err := c.ReadDocument(nil, doc, new(*inner)); planned == own || err != nil {
			t.Errorf("a pointer with a codec of its own, %v: it is read: %v, %v", own, planned, err)
		}
		for _, v := range []any{&inner{1}, &bson.D{{Key: "a", Value: 1}}, &bson.M{"a": 1}} {
			if _, planned, err := c.AppendDocument(&c.encodeMode.ec, nil, v); planned == own || err != nil {
				t.Errorf("a %T with a codec of its own, %v: it is written: %v, %v", v, own, planned, err)
			}
		}
	}
}

// Documents of few elements that are no maps are left to the fallback, and others are not.
func TestDocumentsThatAreLeftToTheFallback(t *testing.T) {
	calls := 0
	reg := bson.NewRegistry()
	c := New(reg, ownCodec{}, ownCodec{}, errOwnCodec)
	for _, typ := range []reflect.Type{reflect.TypeFor[[]int](), reflect.TypeFor[map[string]int]()} {
		enc, _ := reg.LookupEncoder(typ)
		reg.RegisterKindEncoder(typ.Kind(), c.DocumentEncoder(countedFallback{enc, nil, &calls}))
	}
	for _, tt := range []struct {
		v     any
		calls int
	}{
		{bson.D{}, 1}, {bson.D{{Key: "a"}}, 1}, {bson.D{{Key: "a"}, {Key: "b"}, {Key: "c"}}, 1}, {bson.D{{Key: "a"}, {Key: "b"}, {Key: "c"}, {Key: "d"}}, 0}, {bson.D{{Key: "a", Value: bson.A{}}}, 0}, {bson.M{}, 1}, {bson.M{"a": 1}, 0},
	} {
		calls = 0
		enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
		enc.SetRegistry(reg)
		if err := enc.Encode(tt.v); err != nil || calls != tt.calls {
			t.Errorf("%T %v: the fallback was called %d times, want %d; error %v", tt.v, tt.v, calls, tt.calls, err)
		}
	}
}
