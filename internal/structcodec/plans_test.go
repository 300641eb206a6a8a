package structcodec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// callerKey is a key of maps that code of a caller reads.
type callerKey string

func (k *callerKey) UnmarshalText(text []byte) error {
	*k = callerKey(text)
	return nil
}

type (
	keyedMap    map[callerKey]keyedHolder
	keyedHolder struct {
		N int32
		M keyedMap
	}
	plainMap    map[string]plainHolder
	plainHolder struct {
		N int32
		M plainMap
	}
	outerOfInner struct {
		P *innerOfOuter
		X plannedPrice
	}
	innerOfOuter struct{ O outerOfInner }
	chainA       struct {
		P *chainB
		X plannedPrice
	}
	chainB    struct{ C chainC }
	chainC    struct{ D chainD }
	chainD    struct{ E chainE }
	chainE    struct{ F chainF }
	chainF    struct{ A chainA }
	toPointer int32 // with the driver's decoder of pointers
	toMap     int32
	intMap    map[int]intMapOf // whose keys plans do not read
	intMapOf  struct {
		N int32
		M intMap
	}
	againPrice struct{ N int64 }
	againCodec struct{ optionCodec }
)

// ReadsAgain says that the codec is not code of a caller.
func (againCodec) ReadsAgain() {}

// The whole document is checked first if code of a caller takes part in reading it, wherever it is, and only then.
func TestPlansThatAreChecked(t *testing.T) {
	type inner struct{ N int32 }
	type holder struct{ P ownPrice }
	for _, tt := range []struct {
		v       any
		checked bool
	}{
		{struct {
			A int
			B string
			C []int
			D [2]string
			E map[string]int
			F *inner
			G []inner
			H map[string][]*inner
			I time.Time
			J []byte
			K bson.ObjectID
			L bson.Raw
			M bson.RawValue
			N ownList
			O againPrice
			P []againPrice
		}{}, false},
		{struct {
			M map[string]int `bson:",inline"`
		}{}, false},
		{plainHolder{}, false},
		{struct{ V ownPrice }{}, true}, {struct{ V plannedPrice }{}, true}, {struct{ V optionPrice }{}, true}, {struct{ V *plannedPrice }{}, true}, {struct{ V []plannedPrice }{}, true},
		{struct{ V [1]plannedPrice }{}, true}, {struct{ V map[string]plannedPrice }{}, true}, {struct{ V holder }{}, true}, {struct{ V []holder }{}, true}, {struct{ V map[string]*holder }{}, true},
		{struct{ V any }{}, true}, {struct{ V []any }{}, true}, {struct{ V [1]any }{}, true}, {struct{ V bson.D }{}, true}, {struct{ V bson.M }{}, true}, {struct{ V bson.A }{}, true}, {struct{ V []bson.E }{}, true},
		{struct{ V [1]bson.E }{}, true}, {struct{ V ownBytes }{}, true}, {struct{ V [1]byte }{}, true}, {struct{ V fmt.Stringer }{}, true}, {struct{ V chan int }{}, true}, {struct{ V ownHook }{}, true}, {struct{ V *ownDocument }{}, true},
		{struct{ V map[callerKey]int }{}, true}, {keyedHolder{}, true},
		{struct {
			M map[string]ownPrice `bson:",inline"`
		}{}, true},
		{struct {
			M map[string]plannedPrice `bson:",inline"`
		}{}, true},
		{struct {
			V struct {
				V struct {
					V struct {
						V struct{ V struct{ V plannedPrice } }
					}
				}
			}
		}{}, true},
		{struct{ V toPointer }{}, true}, {struct{ V toMap }{}, true},
		{struct {
			V struct {
				A int `bson:"x"`
				B int `bson:"x"`
			}
		}{}, true},
	} {
		c := newOwnCodec()
		c.reg.RegisterTypeDecoder(reflect.TypeFor[againPrice](), againCodec{})
		for typ, of := range map[reflect.Type]reflect.Type{reflect.TypeFor[toPointer](): reflect.TypeFor[*int](), reflect.TypeFor[toMap](): tM} {
			dec, _ := c.reg.LookupDecoder(of)
			c.reg.RegisterTypeDecoder(typ, dec)
		}
		if p := c.decodeMode.decodePlan(reflect.TypeOf(tt.v)); !p.planned || p.checked != tt.checked {
			t.Errorf("a %T has a plan: %v. It checks the document: %v, want %v", tt.v, p.planned, p.checked, tt.checked)
		}
	}
	// A type within itself is checked, too, wherever it was first met.
	for _, first := range []any{keyedMap{}, struct{ M keyedMap }{}, struct{ M []keyedMap }{}, struct{ H *keyedHolder }{}, keyedHolder{}} {
		c := newOwnCodec()
		typ := reflect.TypeOf(first)
		c.decodeMode.valuePlan(typ)
		if p := c.decodeMode.decodePlan(reflect.TypeFor[keyedHolder]()); !p.planned || !p.checked {
			t.Errorf("after a %T: code of a caller reads keys, and the document is not checked", first)
		}
	}
}

// Code of a caller can keep a pointer into a struct if it reads a part of the struct's memory.
func TestStructsThatAreKept(t *testing.T) {
	type twoKeys struct {
		A int `bson:"x"`
		B int `bson:"x"`
	}
	c := newOwnCodec()
	c.reg.RegisterTypeDecoder(reflect.TypeFor[againPrice](), againCodec{})
	c.decodeMode.decodePlan(reflect.TypeFor[outerOfInner]())
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[outerOfInner](): true, reflect.TypeFor[innerOfOuter](): true, reflect.TypeFor[struct{ I innerOfOuter }](): true, reflect.TypeFor[struct{ I *innerOfOuter }](): false,
		reflect.TypeFor[struct{ P againPrice }](): false, reflect.TypeFor[struct{ C chan int }](): true, reflect.TypeFor[struct{ S fmt.Stringer }](): true, reflect.TypeFor[twoKeys](): true,
		reflect.TypeFor[struct{ T twoKeys }](): true, reflect.TypeFor[struct{ T *twoKeys }](): false, reflect.TypeFor[struct{ T ownHook }](): true, reflect.TypeFor[struct{ A any }](): false,
		reflect.TypeFor[plainHolder](): false, reflect.TypeFor[keyedHolder](): false, reflect.TypeFor[chainA](): true, reflect.TypeFor[chainB](): true, reflect.TypeFor[chainF](): true,
	} {
		if p := c.decodeMode.decodePlan(typ); p.isKept() != want {
			t.Errorf("%v: got %v, want %v", typ, p.isKept(), want)
		}
	}
}

// inlineIn returns a struct type with an inline struct in an inline struct, and so on, n deep.
func inlineIn(n int) reflect.Type {
	typ := reflect.StructOf([]reflect.StructField{{Name: "N", Type: reflect.TypeFor[int32]()}})
	for range n {
		typ = reflect.StructOf([]reflect.StructField{{Name: "I", Type: typ, Tag: `bson:",inline"`}})
	}
	return typ
}

// Inline structs have a plan at any depth, and behind pointers as far as the driver allocates these.
func TestPlansOfInlineStructs(t *testing.T) {
	type inner struct{ N int32 }
	type pointer struct {
		P *inner `bson:",inline"`
	}
	c := newOwnCodec()
	for _, tt := range []struct {
		t               reflect.Type
		encoded, decode bool
	}{
		{inlineIn(100), true, true}, {reflect.TypeFor[pointer](), true, true},
		{reflect.TypeFor[struct {
			S pointer `bson:",inline"`
		}](), true, true},
		{reflect.TypeFor[struct {
			P *pointer `bson:",inline"`
		}](), true, true},
		{reflect.TypeFor[struct {
			P *struct {
				I inner `bson:",inline"`
			} `bson:",inline"`
		}](), true, false},
		{reflect.TypeFor[struct {
			A map[string]int `bson:",inline"`
			B map[string]int `bson:",inline"`
		}](), false, false},
		{reflect.TypeFor[struct {
			A map[int]int `bson:",inline"`
		}](), false, false},
		{reflect.TypeFor[struct {
			A int `bson:",inline"`
		}](), false, false},
		{reflect.StructOf([]reflect.StructField{{Name: "A", Type: tString, Tag: `bson:"a\x00"`}}), false, false},
		{reflect.StructOf([]reflect.StructField{{Name: "A", Type: tString, Tag: `bson:"\x00a"`}}), false, false},
		{reflect.TypeFor[struct {
			N int64
			I inner `bson:",inline"`
		}](), true, true},
		{reflect.TypeFor[struct {
			I inner `bson:",inline"`
			J inner `bson:",inline"`
		}](), false, false},
		{reflect.TypeFor[struct {
			A any
			M map[string]int `bson:",inline"`
		}](), true, false},
	} {
		if p := c.encodeMode.encodePlan(tt.t); p.planned != tt.encoded || !p.planned && p.why == "" {
			t.Errorf("encoding a %v: got %v, %s", tt.t, p.planned, p.why)
		}
		if p := c.decodeMode.decodePlan(tt.t); p.planned != tt.decode || !p.planned && p.why == "" {
			t.Errorf("decoding a %v: got %v, %s", tt.t, p.planned, p.why)
		}
	}
}

// countingDelegator stands before a codec of the driver, and counts how often it is asked for that.
type countingDelegator struct {
	notCalled
	asked *int
}

func (c countingDelegator) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder {
	*c.asked++
	return c.enc
}

func (c countingDelegator) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder {
	*c.asked++
	return c.dec
}

// A plan is compiled once, whatever holds the value: what passes a type on is not asked again.
func TestPlansAreCompiledOnce(t *testing.T) {
	type number int32
	asked := 0
	c := newWholeCodec()
	enc, _ := c.reg.LookupEncoder(reflect.TypeFor[number]())
	dec, _ := c.reg.LookupDecoder(reflect.TypeFor[number]())
	c.reg.RegisterTypeEncoder(reflect.TypeFor[number](), countingDelegator{notCalled{enc: enc}, &asked})
	c.reg.RegisterTypeDecoder(reflect.TypeFor[number](), countingDelegator{notCalled{dec: dec}, &asked})
	ec, dc := bson.EncodeContext{Registry: c.reg}, bson.DecodeContext{Registry: c.reg}
	for _, v := range []any{struct{ N number }{1}, map[string]number{"n": 1}, struct{ A any }{number(1)}, bson.D{{Key: "n", Value: number(1)}}, struct{ N []number }{[]number{1}}} {
		typ := reflect.TypeOf(v)
		use := func() {
			doc, planned, err := c.AppendDocument(&ec, nil, v)
			if !planned || err != nil {
				t.Fatalf("a %T: %v, %v", v, planned, err)
			}
			if _, _, planned, err := c.AppendValue(&ec, nil, v); !planned || err != nil {
				t.Fatalf("a %T: %v, %v", v, planned, err)
			}
			if planned, err := c.ReadValue(&dc, bson.TypeEmbeddedDocument, doc, reflect.New(typ).Interface()); !planned || err != nil {
				t.Fatalf("a %T: %v, %v", v, planned, err)
			}
			decoder := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
			decoder.SetRegistry(c.reg)
			if err := decoder.Decode(reflect.New(typ).Interface()); err != nil {
				t.Fatalf("a %T: %v", v, err)
			}
			if typ.Kind() == reflect.Struct {
				if planned, err := c.ReadDocument(&dc, doc, reflect.New(typ).Interface()); !planned || err != nil {
					t.Fatalf("a %T: %v, %v", v, planned, err)
				}
			}
		}
		use()
		before := asked
		use()
		if before == 0 || asked != before {
			t.Errorf("a %T: a codec was asked %d times, and %d times more when it was used again", v, before, asked-before)
		}
	}
}

// Two codecs are the same if they are equal. Functions are not equal to any codec.
func TestSame(t *testing.T) {
	f := bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return nil })
	type of struct{ n int }
	p := new(int)
	for _, tt := range []struct {
		a, b any
		want bool
	}{{of{1}, of{1}, true}, {of{1}, of{2}, false}, {of{1}, 1, false}, {f, f, false}, {f, 1, false}, {1, f, false}, {p, p, true}, {p, new(int), false}, {1, int64(1), false}} {
		if got := same(tt.a, tt.b); got != tt.want {
			t.Errorf("%T and %T: got %v", tt.a, tt.b, got)
		}
	}
}

// A value of every type equals itself, unless it is not a number or holds what is not one.
func TestEqualsItself(t *testing.T) {
	nan := math.NaN()
	for _, v := range []any{
		true, 1, int8(1), uint64(1), uintptr(1), "s", new(float64), [2]int{}, struct{ A, B string }{}, [0]string{}, make(chan float64), struct{}{},
		nan, float32(nan), complex(nan, 0), complex64(complex(nan, 0)), [1]float64{nan}, struct {
			A int
			B float32
		}{1, float32(nan)}, [1]struct{ F complex128 }{{complex(0, nan)}},
	} {
		if got, want := equalsItself(reflect.TypeOf(v)), v == v; got != want { //nolint:staticcheck // of what is not a number
			t.Errorf("%T: got %v, want %v", v, got, want)
		}
	}
	if equalsItself(tAny) || equalsItself(reflect.TypeFor[struct{ A any }]()) {
		t.Error("an interface can hold what is not a number")
	}
}

// Every set of options has its context, and the contexts of the fields of structs are known.
func TestContextsOfAllOptions(t *testing.T) {
	c := newOwnCodec()
	encoded, decoded := map[driver.Options]bool{}, map[driver.Options]bool{}
	for ec, o := range driver.EncodeContexts() {
		encoded[o] = true
		ec.Registry = c.reg
		e := c.encodeModeIn(&ec)
		if e == nil || e.field(false) == nil || e.field(true) == nil || !e.field(true).IntMinSize || e.field(false).IntMinSize != o.IntMinSize || e.plain != (o == driver.Options{}) {
			t.Fatalf("%+v: the context of a field is not known", o)
		}
	}
	for dc, o := range driver.DecodeContexts() {
		decoded[o] = true
		dc.Registry = c.reg
		d := c.decodeModeIn(&dc)
		if d == nil || d.field(false) == nil || d.field(true) == nil || !d.field(true).AllowTruncatingDoubles || d.field(false).AllowTruncatingDoubles != o.AllowTruncatingDoubles || d.plain != (o == driver.Options{}) {
			t.Fatalf("%+v: the context of a field is not known", o)
		}
		// DefaultDocumentMap decides if DefaultDocumentM is set, too.
		if want := map[bool]reflect.Type{o.DefaultDocumentM: tM, o.DefaultDocumentMap: tMap}[true]; d.documentType != want || o.DefaultDocumentM && o.DefaultDocumentMap {
			t.Fatalf("%+v: documents in any are of type %v", o, d.documentType)
		}
	}
	if len(encoded) != 1<<9 || len(decoded) != 1<<9-1<<7 {
		t.Errorf("got %d and %d sets of options", len(encoded), len(decoded))
	}
}

// A slot of a map takes the bytes that are allocated for it: one, the key and the value, or pointers to what is long.
func TestSlotSize(t *testing.T) {
	const slots = 8 << 11
	for _, typ := range []reflect.Type{
		reflect.TypeFor[map[int64]int64](), reflect.TypeFor[map[int64][128]byte](), reflect.TypeFor[map[int64][136]byte](), reflect.TypeFor[map[int64][1000]byte](),
		reflect.TypeFor[map[[128]byte]int64](), reflect.TypeFor[map[[136]byte][136]byte](), reflect.TypeFor[map[uint8]uint8](),
	} {
		least := uint64(math.MaxUint64) // others can allocate at the same time
		for range 3 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m := reflect.MakeMapWithSize(typ, slots/8*7)
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(m)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		// The sizes of allocations are rounded up.
		if got, per := slotSize(typ), int(least)/slots; got > per || per > got*9/8 {
			t.Errorf("%v: got %d bytes, and %d are allocated", typ, got, per)
		}
	}
}

// What is allocated before elements are read is not more than maxAhead times their bytes, but for the first one, and all
// that this allows.
func TestAhead(t *testing.T) {
	for n := 1; n < 40; n++ {
		for least := 2; least < 40; least++ {
			for _, size := range []int{0, 1, 8, 31, 32, 33, 100, 512, 4096} {
				all := n*size <= maxAhead*n*least
				if got := ahead(n, least, size); all && got != n || !all && got != 1 {
					t.Errorf("%d elements of %d bytes in memory and %d in the document: %d are allocated", n, size, least, got)
				}
				// A map of that many entries has at most 16 slots for 7 of them.
				got := entriesAhead(n, least, size+1)
				if bytes := got * (size + 1) * 16 / 7; got > n || bytes > maxAhead*n*least || got < n && (got+1)*(size+1)*16 <= maxAhead*7*n*least*6/7 {
					t.Errorf("%d entries of %d bytes and %d in the document: %d are allocated", n, size+1, least, got)
				}
			}
		}
	}
}

// marshalled returns the document of v as the driver writes it.
func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	doc, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Containers have plans though the driver's codec of an element has none.
func TestPlansOfElementsThatTheDriverKnows(t *testing.T) {
	c := newOwnCodec()
	u, _ := url.Parse("http://h/")
	for _, v := range []any{json.Number("1"), *u, bson.DBPointer{DB: "d"}, bson.CodeWithScope{Scope: bson.D{}}, bson.NewVector([]float32{1})} {
		typ := reflect.TypeOf(v)
		for _, of := range []reflect.Type{reflect.SliceOf(typ), reflect.ArrayOf(1, typ), reflect.MapOf(tString, typ), reflect.PointerTo(typ)} {
			enc, _ := c.encoderOf(of)
			dec, _ := c.decoderOf(of)
			var encoded, decoded bool
			c.encodeMode.compileEncoder(func(plans encodeCompiler) { _, encoded = plans.compile(of, enc) })
			c.decodeMode.compileDecoder(func(plans decodeCompiler) { _, decoded = plans.compile(of, dec) })
			if !encoded || !decoded {
				t.Errorf("a %v is encoded by a plan: %v, decoded by one: %v", of, encoded, decoded)
			}
		}
	}
}

// A D of few elements is worth a plan if it holds an array, or as many elements as a longer one together with those of the
// documents in it.
func TestIsWorth(t *testing.T) {
	one, two := bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}}
	for _, tt := range []struct {
		d    bson.D
		want bool
	}{
		{one, false}, {two, false}, {bson.D{{Key: "a", Value: bson.A{}}}, true}, {bson.D{{Key: "a", Value: one}}, false}, {bson.D{{Key: "a", Value: two}}, false}, {bson.D{{Key: "a", Value: two}, {Key: "b", Value: 1}}, true},
		{bson.D{{Key: "a", Value: bson.M{"a": 1}}, {Key: "b", Value: 1}}, false}, {bson.D{{Key: "a", Value: bson.M{"a": 1, "b": 2}}, {Key: "b", Value: 1}}, true}, {bson.D{{Key: "a", Value: one}, {Key: "b", Value: one}}, true},
		{bson.D{{Key: "a", Value: append(two, one...)}}, true}, {bson.D{{Key: "a", Value: []int{1, 2, 3, 4}}}, false},
	} {
		if got := isWorth(tt.d, 4); got != tt.want {
			t.Errorf("%v: got %v", tt.d, got)
		}
	}
}

// Maps of any value have a loop of their own in both directions.
func TestPlansOfMapsOfAny(t *testing.T) {
	type named map[string]any
	c := newOwnCodec()
	for typ, want := range map[reflect.Type]bool{tM: true, tMap: true, reflect.TypeFor[named](): true, reflect.TypeFor[map[string]int](): false, reflect.TypeFor[map[int]any](): false} {
		c.encodeMode.compileEncoder(func(plans encodeCompiler) {
			if f, _ := plans.appendMap(typ); sameCode(f, c.encodeMode.appendEntries) != want {
				t.Errorf("a %v is encoded by another loop", typ)
			}
		})
		c.decodeMode.compileDecoder(func(plans decodeCompiler) {
			m, _ := plans.readEntries(tMap)
			if f, _ := plans.readEntries(typ); f != nil && sameCode(f, m) != want {
				t.Errorf("a %v is decoded by another loop", typ)
			}
		})
	}
	// Not if any has a codec of its own.
	c.reg.RegisterTypeEncoder(tAny, ownCodec{})
	c.reg.RegisterTypeDecoder(tAny, ownCodec{})
	c = New(c.reg, c.encoder, c.decoder, c.notPlain)
	c.encodeMode.compileEncoder(func(plans encodeCompiler) {
		if f, _ := plans.appendMap(tMap); f != nil && sameCode(f, c.encodeMode.appendEntries) {
			t.Error("the loop is used though any has an encoder of its own")
		}
	})
}

// A key without capital letters is looked up as it is, and any other one in lower case, as the driver does it.
func TestKeysOfFields(t *testing.T) {
	type target struct {
		Name  string
		Other int32 `bson:"\ufffd"`
		Lower int32 `bson:"é"`
		Kept  int32 `bson:"Kept"`
	}
	plans, driver := newOwnCodec().reg, bson.NewRegistry()
	for _, key := range []string{"name", "Name", "NAME", "nAmE", "namE", "\x80", "\ufffd", "é", "É", "Kept", "kept", "KEPT", "@ame", "[ame", "nam", "names"} {
		doc := marshalled(t, bson.D{{Key: key, Value: int32(7)}})
		if key == "name" || strings.EqualFold(key, "name") {
			doc = marshalled(t, bson.D{{Key: key, Value: "x"}})
		}
		if got, want := readOutcome(plans, doc, reflect.TypeFor[target]()), readOutcome(driver, doc, reflect.TypeFor[target]()); got != want {
			t.Errorf("%q: got %s, the driver %s", key, got, want)
		}
	}
	p := newOwnCodec().decodeMode.decodePlan(reflect.TypeFor[target]())
	key := []byte("a key of no field that is longer than what is on the stack")
	if n := testing.AllocsPerRun(10, func() { p.lookup(key) }); n > 0 {
		t.Errorf("looking up a key in lower case allocates %v times", n)
	}
}

// Keys of maps are written by a plan if they are text or whole numbers, and with the option for it if fmt writes them and
// equals finds them.
func TestKeysThatPlansWrite(t *testing.T) {
	type text string
	type number int16
	c := newOwnCodec()
	stringKeys := c.newEncodeMode(c.encodeMode.ec, driver.Options{StringifyMapKeysWithFmt: true})
	for _, tt := range []struct {
		k             any
		plain, string bool
	}{
		{"k", true, true}, {text("k"), true, true}, {1, true, true}, {int8(-1), true, true}, {int16(2), true, true}, {int32(3), true, true}, {int64(4), true, true}, {number(5), true, true}, {uint(1), true, true},
		{uint8(2), true, true}, {uint16(3), true, true}, {uint32(4), true, true}, {uint64(5), true, true}, {uintptr(6), true, true}, {textKey{7}, true, true}, {bson.ObjectID{1}, true, true},
		{true, false, true}, {1.5, false, false}, {float32(1.5), false, false}, {markedKey{1}, false, true}, {&textKey{1}, false, true}, {new(int), false, true}, {struct{ A int }{1}, false, true}, {[1]int{1}, false, true}, {[1]float64{1}, false, false},
	} {
		for mode, want := range map[*encodeMode]bool{c.encodeMode: tt.plain, stringKeys: tt.string} {
			key, ok := mode.keyFunc(reflect.TypeOf(tt.k))
			if ok != want || ok != (key != nil) {
				t.Errorf("a %T, with fmt %v: got %v", tt.k, mode.StringifyMapKeysWithFmt, ok)
			}
			wanted := fmt.Sprint(tt.k)
			if m, isText := tt.k.(encoding.TextMarshaler); isText && !mode.StringifyMapKeysWithFmt {
				b, _ := m.MarshalText()
				wanted = string(b)
			}
			if !ok {
				continue
			}
			if got, err := key(reflect.ValueOf(tt.k)); err != nil || got != wanted {
				t.Errorf("a %T, with fmt %v: got %q and %v, want %q", tt.k, mode.StringifyMapKeysWithFmt, got, err, wanted)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[encoding.TextMarshaler](), tAny} {
		for _, mode := range []*encodeMode{c.encodeMode, stringKeys} {
			if _, ok := mode.keyFunc(typ); ok {
				t.Errorf("keys of type %v, with fmt %v, are written by a plan", typ, mode.StringifyMapKeysWithFmt)
			}
		}
	}
}

// The codec of structs that a caller registers for another type does for that type what the driver's does.
func TestCodecOfStructsForOtherTypes(t *testing.T) {
	n := int32(7)
	for _, v := range []any{n, "x", []int32{n}, map[string]int32{"k": n}, &n, [1]int32{n}} {
		typ := reflect.TypeOf(v)
		driver, c := bson.NewRegistry(), newOwnCodec()
		enc, _ := driver.LookupEncoder(reflect.TypeFor[struct{}]())
		dec, _ := driver.LookupDecoder(reflect.TypeFor[struct{}]())
		for reg, codec := range map[*bson.Registry]interface {
			bson.ValueEncoder
			bson.ValueDecoder
		}{driver: struct {
			bson.ValueEncoder
			bson.ValueDecoder
		}{enc, dec}, c.reg: c} {
			reg.RegisterTypeEncoder(typ, codec)
			reg.RegisterTypeDecoder(typ, codec)
		}
		for _, of := range []reflect.Type{typ, reflect.SliceOf(typ), reflect.MapOf(tString, typ), reflect.PointerTo(typ), tAny} {
			holder := reflect.StructOf([]reflect.StructField{{Name: "V", Type: of}})
			full := reflect.New(holder).Elem()
			switch of.Kind() {
			case reflect.Slice:
				if of != typ {
					full.Field(0).Set(reflect.Append(full.Field(0), reflect.ValueOf(v)))
				}
			case reflect.Map:
				full.Field(0).Set(reflect.MakeMap(of))
			}
			if reflect.TypeOf(v).AssignableTo(of) {
				full.Field(0).Set(reflect.ValueOf(v))
			}
			if got, want := outcome(c.reg, full.Interface()), outcome(driver, full.Interface()); got != want {
				t.Errorf("%v: got %s, the driver %s", of, got, want)
			}
			for _, doc := range []bson.D{{{Key: "v", Value: v}}, {{Key: "v", Value: bson.A{v}}}, {{Key: "v", Value: bson.D{{Key: "k", Value: v}}}}, {{Key: "v"}}} {
				if got, want := readOutcome(c.reg, marshalled(t, doc), holder), readOutcome(driver, marshalled(t, doc), holder); got != want {
					t.Errorf("%v from %v: got %s, the driver %s", of, doc, got, want)
				}
			}
		}
	}
}

// Binary values without a subtype are read as bytes by plans if an option says so, as the driver does it.
func TestBinaryAsSlice(t *testing.T) {
	c := newOwnCodec()
	for _, subtype := range []byte{0, 2, 4, 0x80} {
		v := bson.Binary{Subtype: subtype, Data: []byte("some bytes")}
		bt, data, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(marshalled(t, bson.D{{Key: "v", Value: v}}))))
		dec.BinaryAsSlice()
		var want struct{ V any }
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		mode := c.newDecodeMode(c.decodeMode.dc, driver.Options{BinaryAsSlice: true})
		if got, ok, err := mode.any().read(byte(bt), data); !ok || err != nil || !reflect.DeepEqual(got, want.V) {
			t.Errorf("subtype %d: got %v, %v and %v, the driver %v", subtype, got, ok, err, want.V)
		}
	}
}

// Codecs for elements do not count for slices and arrays that the driver encodes or decodes at once.
func TestReasonsOfWholeSlices(t *testing.T) {
	c := newOwnCodec()
	for _, typ := range []reflect.Type{tByte, tE} {
		c.reg.RegisterTypeEncoder(typ, ownCodec{})
		c.reg.RegisterTypeDecoder(typ, ownCodec{})
	}
	alone := "goes through the driver's codec"
	ofAny := newOwnCodec()
	ofAny.reg.RegisterTypeDecoder(tAny, ownCodec{})
	if got := strings.Join(texts(ofAny.WhyNotDecoded(ofAny.decodeMode.dc, tD)), ", "); got != " interface {} goes through its codec, structcodec.ownCodec" {
		t.Errorf("a D of values with a decoder: got %q", got)
	}
	for _, tt := range []struct {
		v                any
		encoded, decoded string
	}{
		{[1]byte{}, " [1]uint8 " + alone, " [1]uint8 " + alone}, {ownBytes{}, "", " structcodec.ownBytes " + alone}, {[]bson.E{}, "", " []bson.E " + alone},
		{[1]bson.E{}, " [1]bson.E " + alone, " [1]bson.E " + alone}, {map[string]byte{}, " uint8 goes through its codec, structcodec.ownCodec", " uint8 goes through its codec, structcodec.ownCodec"},
	} {
		typ := reflect.TypeOf(tt.v)
		if got := strings.Join(texts(c.WhyNotEncoded(c.encodeMode.ec, typ)), ", "); got != tt.encoded {
			t.Errorf("encoding a %v: got %q, want %q", typ, got, tt.encoded)
		}
		if got := strings.Join(texts(c.WhyNotDecoded(c.decodeMode.dc, typ)), ", "); got != tt.decoded {
			t.Errorf("decoding a %v: got %q, want %q", typ, got, tt.decoded)
		}
	}
}

// A selfDelegator passes everything on to itself.
type selfDelegator struct {
	ownCodec
	asked *int
}

func (c selfDelegator) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder {
	*c.asked++
	return c
}

func (c selfDelegator) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder {
	*c.asked++
	return c
}

// A codec that does the work itself is asked once.
func TestCodecsThatAreAsked(t *testing.T) {
	c, asked := newOwnCodec(), 0
	c.resolveEncoder(selfDelegator{asked: &asked}, tByte)
	c.resolveDecoder(selfDelegator{asked: &asked}, tByte)
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
}

// Containers have plans for elements that the driver's decoder alone reads, for keys that a caller reads, and not for others.
func TestContainersThatArePlanned(t *testing.T) {
	type number int32
	known := func(c *Codec, typ reflect.Type) (ok bool) {
		dec, _ := c.decoderOf(typ)
		c.decodeMode.compileDecoder(func(plans decodeCompiler) { _, ok = plans.compile(typ, dec) })
		return ok
	}
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[[]ownBytes](): true, reflect.TypeFor[[][]bson.E](): true, reflect.TypeFor[[][1]byte](): true, reflect.TypeFor[[][1]any](): true, reflect.TypeFor[[][1]bson.E](): true, reflect.TypeFor[map[callerKey]int](): true,
		reflect.TypeFor[map[string]int](): true, reflect.TypeFor[map[int]int](): false, reflect.TypeFor[[]chan int](): false, reflect.TypeFor[[1]chan int](): false, reflect.TypeFor[*chan int](): false, reflect.TypeFor[map[string]ownHook](): false,
	} {
		if got := known(newOwnCodec(), typ); got != want {
			t.Errorf("a %v has a plan: %v, want %v", typ, got, want)
		}
	}
	for _, of := range []reflect.Type{tM, reflect.TypeFor[*int](), tAny, tD, reflect.TypeFor[[]int](), reflect.TypeFor[[1]int](), tTime, tBytes} {
		c := newOwnCodec()
		dec, _ := c.reg.LookupDecoder(of)
		c.reg.RegisterTypeDecoder(reflect.TypeFor[number](), dec)
		if !known(c, reflect.TypeFor[[]number]()) {
			t.Errorf("elements that the decoder of a %v reads have no plan", of)
		}
		if p := c.decodeMode.decodePlan(reflect.TypeFor[struct{ V number }]()); p.fields[0].direct != notDirectly {
			t.Errorf("a field that the decoder of a %v reads is read directly", of)
		}
	}
	for typ, of := range map[reflect.Type]reflect.Type{tTime: tDateTime, tDateTime: tTime, tObjectID: tTime, reflect.TypeFor[int64](): tDateTime, reflect.TypeFor[[12]byte](): tObjectID} {
		c := newOwnCodec()
		dec, _ := c.reg.LookupDecoder(of)
		c.reg.RegisterTypeDecoder(typ, dec)
		if p := c.decodeMode.decodePlan(reflect.StructOf([]reflect.StructField{{Name: "V", Type: typ}})); p.fields[0].direct != notDirectly {
			t.Errorf("a %v that the decoder of a %v reads is read directly", typ, of)
		}
	}
}

// A container without a plan that holds itself is read by its decoder.
func TestContainersWithoutPlans(t *testing.T) {
	doc := marshalled(t, bson.D{{Key: "n", Value: int32(1)}, {Key: "m", Value: bson.D{{Key: "1", Value: bson.D{{Key: "n", Value: int32(2)}, {Key: "m", Value: bson.D{{Key: "2", Value: bson.D{{Key: "n", Value: int32(3)}}}}}}}}}})
	var got, want intMapOf
	if err := bson.Unmarshal(doc, &want); err != nil {
		t.Fatal(err)
	}
	if planned, err := newOwnCodec().ReadDocument(nil, doc, &got); !planned || err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v and %v, the driver %v", got, planned, err, want)
	}
	damaged := marshalled(t, bson.D{{Key: "m", Value: bson.D{{Key: "1", Value: bson.D{{Key: "m", Value: bson.D{{Key: "x", Value: bson.D{}}}}}}}}})
	if got, want := readOutcome(newOwnCodec().reg, damaged, reflect.TypeFor[intMapOf]()), readOutcome(bson.NewRegistry(), damaged, reflect.TypeFor[intMapOf]()); got != want {
		t.Errorf("got %s, the driver %s", got, want)
	}
}

// A slice that was nil has the capacity that the driver gives it, whatever its elements are.
func TestCapacities(t *testing.T) {
	type large struct{ A [40]int64 }
	plans, driver := newOwnCodec().reg, bson.NewRegistry()
	for n := range 20 {
		for _, typ := range []reflect.Type{reflect.TypeFor[[]int32](), reflect.TypeFor[[]string](), reflect.TypeFor[[]ownHook](), reflect.TypeFor[[]any](), reflect.TypeFor[[][]bool](), reflect.TypeFor[[]struct{ H ownHook }](), reflect.TypeFor[[]*large](), reflect.TypeFor[[]large]()} {
			array := bson.A{}
			for range n {
				array = append(array, nil)
			}
			doc := marshalled(t, bson.D{{Key: "s", Value: array}})
			holder := reflect.StructOf([]reflect.StructField{{Name: "S", Type: typ}})
			read := func(reg *bson.Registry) (length, capacity int) {
				v := reflect.New(holder)
				dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
				dec.SetRegistry(reg)
				if err := dec.Decode(v.Interface()); err != nil {
					t.Fatal(err)
				}
				return v.Elem().Field(0).Len(), v.Elem().Field(0).Cap()
			}
			gotLen, gotCap := read(plans)
			if wantLen, wantCap := read(driver); gotLen != wantLen || gotCap != wantCap {
				t.Errorf("%v: got %d and %d, the driver %d and %d", typ, gotLen, gotCap, wantLen, wantCap)
			}
		}
	}
}

// The parts in which an array is read are twice as large each.
func TestPartsOfArraysGrow(t *testing.T) {
	type element struct{ A, B, C *int64 }
	array := bson.A{}
	for range 15 {
		array = append(array, nil)
	}
	_, data, err := bson.MarshalValue(array)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	var last uintptr
	elem := func(_ byte, _ []byte, v reflect.Value) error {
		if at := v.Addr().Pointer(); len(sizes) > 0 && at == last+v.Type().Size() {
			sizes[len(sizes)-1]++
		} else {
			sizes = append(sizes, 1)
		}
		last = v.Addr().Pointer()
		return nil
	}
	var got []element
	if err := readChunks(data, 4, 0, 15, 1, reflect.TypeFor[[]element](), reflect.ValueOf(&got).Elem(), elem); err != nil || fmt.Sprint(sizes) != "[1 2 4 8]" {
		t.Errorf("got %v and %v", sizes, err)
	}
}

// A type within others is compiled once.
func TestTypesWithinOthersAreCompiledOnce(t *testing.T) {
	type number int32
	type inner struct{ N number }
	asked := 0
	fresh := func() *Codec {
		c := newOwnCodec()
		enc, _ := c.reg.LookupEncoder(reflect.TypeFor[number]())
		dec, _ := c.reg.LookupDecoder(reflect.TypeFor[number]())
		c.reg.RegisterTypeEncoder(reflect.TypeFor[number](), countingDelegator{notCalled{enc: enc}, &asked})
		c.reg.RegisterTypeDecoder(reflect.TypeFor[number](), countingDelegator{notCalled{dec: dec}, &asked})
		return c
	}
	c := fresh()
	c.encodeMode.encodePlan(reflect.TypeFor[inner]())
	c.decodeMode.decodePlan(reflect.TypeFor[inner]())
	before := asked
	for _, typ := range []reflect.Type{reflect.TypeFor[struct{ I inner }](), reflect.TypeFor[struct{ I []inner }](), reflect.TypeFor[struct{ I map[string]*inner }]()} {
		c.encodeMode.encodePlan(typ)
		c.decodeMode.decodePlan(typ)
	}
	if before == 0 || asked != before {
		t.Errorf("asked %d times, and %d times more for other types", before, asked-before)
	}
	asked = 0
	c = fresh()
	c.encodeMode.encodePlan(reflect.TypeFor[struct{ A, B inner }]())
	c.decodeMode.decodePlan(reflect.TypeFor[struct{ A, B inner }]())
	if asked != before {
		t.Errorf("asked %d times for two fields of a type, and %d times for the type", asked, before)
	}
}

type (
	zeroable    interface{ IsZero() bool }
	alwaysZero  struct{ N int32 }
	hiddenTime  struct{ T time.Time }
	hiddenID    struct{ ID bson.ObjectID }
	hiddenPrice struct{ D bson.Decimal128 }
)

func (alwaysZero) IsZero() bool { return true }

// What is empty is left out as by the driver, also in an interface that can tell, and in what is embedded and not exported, for
// which the driver panics.
func TestWhatIsEmpty(t *testing.T) {
	type holder struct {
		Z zeroable `bson:",omitempty"`
		N int32
	}
	driver, plans := bothCodecs(func(reg *bson.Registry) {
		enc, _ := reg.LookupEncoder(tAny)
		reg.RegisterTypeEncoder(reflect.TypeFor[zeroable](), enc)
	})
	for _, v := range []any{
		holder{}, holder{Z: alwaysZero{}}, holder{Z: alwaysZero{1}}, holder{Z: bson.ObjectID{1}}, holder{Z: (*alwaysZero)(nil)}, struct {
			V struct{ hiddenTime } `bson:",omitempty"`
		}{}, struct {
			V struct{ hiddenID } `bson:",omitempty"`
		}{}, struct {
			V struct{ hiddenPrice } `bson:",omitempty"`
		}{}, struct {
			V struct{ ID bson.ObjectID } `bson:",omitempty"`
			T time.Time                  `bson:",omitempty"`
		}{}, struct {
			A *time.Time      `bson:",omitempty"`
			B bson.ObjectID   `bson:",omitempty"`
			C bson.Decimal128 `bson:",omitempty"`
		}{A: new(time.Time)},
	} {
		write := func(reg *bson.Registry, v any) (text string) {
			defer func() {
				if recover() != nil {
					text = "panic"
				}
			}()
			var buf bytes.Buffer
			enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
			enc.SetRegistry(reg)
			enc.OmitZeroStruct()
			err := enc.Encode(v)
			return fmt.Sprintf("%x %v", buf.Bytes(), err)
		}
		pointer := reflect.New(reflect.TypeOf(v))
		pointer.Elem().Set(reflect.ValueOf(v))
		for _, v := range []any{v, pointer.Interface()} {
			if got, want := write(plans, v), write(driver, v); got != want {
				t.Errorf("%+v: got %s, the driver %s", v, got, want)
			}
		}
	}
}

// What is made for a context is kept, however many contexts follow.
func TestPerContext(t *testing.T) {
	var m perContext[int, *int]
	made := map[int]int{}
	kept := map[int]*int{}
	for range 3 {
		for c := range 4 {
			v := m.get(c, func() *int { made[c]++; return new(int) })
			if kept[c] != nil && kept[c] != v || made[c] != 1 {
				t.Errorf("context %d: made %d times", c, made[c])
			}
			kept[c] = v
		}
	}
}

// Plans obey the options for times, texts and bytes by themselves, as the driver does it.
func TestPlansObeyOptions(t *testing.T) {
	for _, tt := range []struct {
		v    any
		o    driver.Options
		set  func(*bson.Decoder)
		into reflect.Type
	}{
		{time.UnixMilli(1700000000123), driver.Options{UseLocalTimeZone: true}, (*bson.Decoder).UseLocalTimeZone, tTime}, {bson.ObjectID{1, 0xab}, driver.Options{ObjectIDAsHexString: true}, (*bson.Decoder).ObjectIDAsHexString, tString},
		{"text", driver.Options{ObjectIDAsHexString: true}, (*bson.Decoder).ObjectIDAsHexString, tString}, {bson.Null{}, driver.Options{ObjectIDAsHexString: true}, (*bson.Decoder).ObjectIDAsHexString, tString},
	} {
		c := newOwnCodec()
		dec, _ := c.decoderOf(tt.into)
		var read readFunc
		c.newDecodeMode(c.decodeMode.dc, tt.o).compileDecoder(func(plans decodeCompiler) { read, _ = plans.compile(tt.into, notCalled{dec: dec}) })
		bt, data, err := bson.MarshalValue(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		holder := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: tt.into}}))
		decoder := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(marshalled(t, bson.D{{Key: "v", Value: tt.v}}))))
		tt.set(decoder)
		if err := decoder.Decode(holder.Interface()); err != nil {
			t.Fatal(err)
		}
		got := reflect.New(tt.into).Elem()
		if err := read(byte(bt), data, got); err != nil || !reflect.DeepEqual(got.Interface(), holder.Elem().Field(0).Interface()) {
			t.Errorf("%v with %+v: got %v and %v, the driver %v", tt.v, tt.o, got, err, holder.Elem().Field(0))
		}
	}
	// Other values than ObjectIDs are not texts then, nor ObjectIDs other types of text.
	c := newOwnCodec()
	for _, typ := range []reflect.Type{reflect.TypeFor[bson.Symbol](), reflect.TypeFor[bson.JavaScript](), tString} {
		dec, _ := c.decoderOf(typ)
		var read readFunc
		c.newDecodeMode(c.decodeMode.dc, driver.Options{ObjectIDAsHexString: true}).compileDecoder(func(plans decodeCompiler) { read, _ = plans.compile(typ, notCalled{dec: dec}) })
		for _, bt := range []bson.Type{bson.TypeObjectID, bson.TypeInt32} {
			if err := read(byte(bt), make([]byte, 12)[:map[bson.Type]int{bson.TypeObjectID: 12, bson.TypeInt32: 4}[bt]], reflect.New(typ).Elem()); (err == nil) != (typ == tString && bt == bson.TypeObjectID) {
				t.Errorf("%v into a %v: got %v", bt, typ, err)
			}
		}
	}
	enc, _ := c.encoderOf(tBytes)
	c.newEncodeMode(c.encodeMode.ec, driver.Options{NilByteSliceAsEmpty: true}).compileEncoder(func(plans encodeCompiler) {
		if f, ok := plans.compile(tBytes, notCalled{enc: enc}); !ok {
			t.Error("bytes have no plan")
		} else if bt, data, err := f(nil, reflect.Zero(tBytes)); bt != bson.TypeBinary || string(data) != "\x00\x00\x00\x00\x00" || err != nil {
			t.Errorf("no bytes: got %v %x and %v", bt, data, err)
		}
	})
	if ec, dc := c.encodeMode.ec, c.decodeMode.dc; c.encodeModeIn(&ec) != c.encodeMode || c.decodeModeIn(&dc) != c.decodeMode || c.decodeModeIn(nil) != c.decodeMode {
		t.Error("the context without options has other plans")
	}
}

// The codecs of the driver are known by their functions, or by their types.
func TestCodecKey(t *testing.T) {
	type pair struct{ A, B func() }
	f, g := func() { _ = t }, func() { panic(t) }
	if k := codecKey(pair{f, g}); k == nil || k == codecKey(pair{g, g}) || k == codecKey(pair{f, f}) || k != codecKey(pair{f, g}) {
		t.Errorf("got the key %v for two functions", k)
	}
	n := 1
	for _, codec := range []any{1, "x", &n, ownCodec{}, struct{ A func() }{f}, struct {
		A func()
		B int
	}{f, 1}, &struct{ B bool }{true}, nil} {
		if k := codecKey(codec); k != nil {
			t.Errorf("%T: got the key %v", codec, k)
		}
	}
	if codecKey(&struct{ B bool }{}) == nil || codecKey(f) == nil || codecKey(f) == codecKey(g) {
		t.Error("a codec is not known by its type, or by its function")
	}
}
