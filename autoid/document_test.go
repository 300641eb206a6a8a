package autoid

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// counter is a source of 1, 2, 3, ... as int32.
type counter struct {
	mu sync.Mutex
	n  int32
}

func (c *counter) NewID() (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n, nil
}

func (c *counter) drawn() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.n)
}

func registered() *bson.Registry {
	reg := bson.NewRegistry()
	Register(reg)
	return reg
}

type setting func(*bson.Encoder)

// encode encodes doc as the driver's marshal does, byte slices as raw documents included.
func encode(reg *bson.Registry, doc any, set ...setting) ([]byte, error) {
	if b, ok := doc.([]byte); ok {
		doc = bson.Raw(b)
	}
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	for _, s := range set {
		s(enc)
	}
	err := enc.Encode(doc)
	return buf.Bytes(), err
}

// withID returns the encoded document doc with id in front, unless it has an _id: what the driver's ensureID makes.
func withID(t testing.TB, doc []byte, id any) []byte {
	t.Helper()
	if _, err := bson.Raw(doc).LookupErr("_id"); err == nil {
		return doc
	}
	head, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	out := append(head[:len(head)-1:len(head)-1], doc[4:]...)
	out[0], out[1], out[2], out[3] = byte(len(out)), byte(len(out)>>8), byte(len(out)>>16), byte(len(out)>>24)
	return out
}

func hex(b []byte) string { return fmt.Sprintf("%x (%v)", b, bson.Raw(b)) }

type marshaler struct{ doc bson.D }

func (m marshaler) MarshalBSON() ([]byte, error) { return bson.Marshal(m.doc) }

type pointerMarshaler struct{ doc bson.D }

func (m *pointerMarshaler) MarshalBSON() ([]byte, error) { return bson.Marshal(m.doc) }

type valueMarshaler struct{ doc bson.D }

func (m valueMarshaler) MarshalBSONValue() (byte, []byte, error) {
	b, err := bson.Marshal(m.doc)
	return byte(bson.TypeEmbeddedDocument), b, err
}

type shouting string

func (s shouting) String() string { return "_id" }

type plainKey string

type base struct {
	ID   bson.ObjectID `bson:"_id,omitempty"`
	When time.Time     `bson:"when,omitempty"`
}

type oddD []bson.E

type loop *loop

// odd is empty, to the driver, when it is not zero.
type odd int32

func (o odd) IsZero() bool { return o != 0 }

// TestDocument compares every kind of document with what the driver makes of it: the document's own encoding, and in
// front of it the id if it has none.
func TestDocument(t *testing.T) {
	oid := bson.ObjectID{0x69, 0x9d, 0xfa, 0xd9, 0x0c, 0xa5, 0x73, 0xf8, 0x5c, 0x0e, 0xec, 0x1c}
	raw := func(d bson.D) bson.Raw {
		b, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	type (
		noID struct {
			Name string `bson:"name"`
		}
		omitted struct {
			ID   bson.ObjectID `bson:"_id,omitempty"`
			Name string        `bson:"name"`
		}
		kept struct {
			ID   bson.ObjectID `bson:"_id"`
			Name string        `bson:"name"`
		}
		late struct {
			Name string        `bson:"name"`
			ID   bson.ObjectID `bson:"_id,omitempty"`
			Age  int           `bson:"age"`
		}
		anyID struct {
			ID   any    `bson:"_id"`
			Name string `bson:"name"`
		}
		inlineFirst struct {
			base `bson:",inline"` // not exported: the driver passes over it
			Base base             `bson:",inline"`
			Name string           `bson:"name"`
		}
		inlineLate struct {
			Name string `bson:"name"`
			Base base   `bson:",inline"`
		}
		inlinePointer struct {
			Base *base  `bson:",inline"`
			Name string `bson:"name"`
		}
		inlineMap struct {
			Name string `bson:"name"`
			Rest bson.M `bson:",inline"`
		}
		shadowed struct {
			Base base  `bson:",inline"`
			ID   int32 `bson:"_id"`
		}
		skipped struct {
			ID   int32  `bson:"-"`
			Name string `bson:"name"`
		}
		jsonTag struct {
			Name string        `json:"name"`
			ID   bson.ObjectID `json:"_id,omitempty"`
		}
		hiddenFirst struct {
			Name string        `json:"-"`
			ID   bson.ObjectID `bson:"_id,omitempty"`
		}
		embeddedLate struct {
			Name string `bson:"name"`
			base `bson:",inline"`
		}
		embeddedID struct {
			Name     string `bson:"name"`
			plainKey `bson:"_id,omitempty"`
		}
		zeroArray struct {
			Name string `bson:"name"`
			ID   uuid16 `bson:"_id,omitempty"`
		}
		zeroer struct {
			Name string      `bson:"name"`
			ID   bson.Zeroer `bson:"_id,omitempty"`
		}
		zeroPointer struct {
			ID   *int32 `bson:"_id"`
			Name string
		}
		onlyOmitted struct {
			ID int32 `bson:"_id,omitempty"`
		}
		empty struct{}
	)
	name := bson.D{{Key: "name", Value: "Ada"}}
	nested := bson.D{{Key: "sub", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "user_id", Value: "x"}}
	lateD := bson.D{{Key: "name", Value: "Ada"}, {Key: "_id", Value: "late"}}
	twice := bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: 1}, {Key: "_id", Value: 2}}
	pp := func() **omitted { p := &omitted{Name: "Ada"}; return &p }()

	for _, tc := range []struct {
		name  string
		doc   any
		draws bool
	}{
		{"D", name, true},
		{"D empty", bson.D{}, true},
		{"D nested _id", nested, true},
		{"D first", bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "Ada"}}, false},
		{"D late", lateD, false},
		{"D null", bson.D{{Key: "name", Value: "Ada"}, {Key: "_id", Value: nil}}, false},
		{"D zero", bson.D{{Key: "_id", Value: bson.ObjectID{}}}, false},
		{"D twice", twice, false},
		{"pointer to D", &name, true},
		{"pointer to late D", &lateD, false},
		{"slice of E", []bson.E(name), true},
		{"named slice of E", oddD(name), true},
		{"named slice of E, late", oddD(lateD), false},
		{"array of E", [1]bson.E{name[0]}, true},
		{"array of E, late", [2]bson.E{lateD[0], lateD[1]}, false},
		{"M", bson.M{"name": "Ada"}, true},
		{"M nil", bson.M(nil), true},
		{"M _id", bson.M{"_id": 5}, false},
		{"M null", bson.M{"_id": nil}, false},
		{"map of any", map[string]any{"name": "Ada"}, true},
		{"map of any, _id", map[string]any{"_id": ""}, false},
		{"map of string", map[string]string{"name": "Ada"}, true},
		{"map of string, _id", map[string]string{"_id": "Ada"}, false},
		{"map of named key", map[plainKey]int{"name": 1}, true},
		{"map of named key, _id", map[plainKey]int{"_id": 1}, false},
		{"map of stringer key", map[shouting]int{"name": 1}, true},
		{"map of int key", map[int]string{1: "Ada"}, true},
		{"pointer to M", &bson.M{"name": "Ada"}, true},
		{"struct", noID{"Ada"}, true},
		{"struct empty", empty{}, true},
		{"pointer to struct", &noID{"Ada"}, true},
		{"struct omitted", omitted{Name: "Ada"}, true},
		{"struct set", omitted{oid, "Ada"}, false},
		{"pointer to pointer", pp, true},
		{"struct zero kept", kept{Name: "Ada"}, false},
		{"struct late omitted", late{Name: "Ada", Age: 36}, true},
		{"struct late set", late{"Ada", oid, 36}, false},
		{"struct nil any", anyID{Name: "Ada"}, false},
		{"struct any", anyID{"x", "Ada"}, false},
		{"inline first omitted", inlineFirst{Name: "Ada"}, true},
		{"inline first set", &inlineFirst{Base: base{ID: oid}, Name: "Ada"}, false},
		{"inline late omitted", inlineLate{Name: "Ada"}, true},
		{"inline late set", inlineLate{"Ada", base{ID: oid}}, false},
		{"inline pointer nil", inlinePointer{Name: "Ada"}, true},
		{"inline pointer set", inlinePointer{&base{ID: oid}, "Ada"}, false},
		{"inline map", inlineMap{"Ada", bson.M{"x": 1}}, true},
		{"inline map _id", inlineMap{"Ada", bson.M{"_id": 1}}, false},
		{"shadowed", shadowed{base{ID: oid}, 7}, false},
		{"skipped", skipped{1, "Ada"}, true},
		{"json tag", jsonTag{"Ada", oid}, true}, // without UseJSONStructTags the key is "id"
		{"hidden from json", hiddenFirst{"Ada", oid}, false},
		{"embedded, not exported", embeddedLate{"Ada", base{ID: oid}}, true}, // the mgo registry writes it
		{"embedded _id, not exported", embeddedID{"Ada", "x"}, true},
		{"omitempty does not omit an array", zeroArray{Name: "Ada"}, false},
		{"nil Zeroer", zeroer{Name: "Ada"}, true},
		{"Zeroer that says zero", zeroer{"Ada", odd(1)}, true},
		{"Zeroer that says not", zeroer{"Ada", odd(0)}, false},
		{"nil pointer kept as null", zeroPointer{Name: "Ada"}, false},
		{"nothing left", onlyOmitted{}, true},
		{"Raw", raw(name), true},
		{"Raw nested _id", raw(nested), true},
		{"Raw late", raw(lateD), false},
		{"pointer to Raw", func() any { r := raw(name); return &r }(), true},
		{"bytes", []byte(raw(name)), true},
		{"bytes late", []byte(raw(lateD)), false},
		{"Marshaler", marshaler{name}, true},
		{"Marshaler late", marshaler{lateD}, false},
		{"pointer Marshaler", &pointerMarshaler{name}, true},
		{"pointer Marshaler late", &pointerMarshaler{lateD}, false},
		{"pointer Marshaler by value", pointerMarshaler{lateD}, true}, // the driver sees a struct without exported fields
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg := registered()
			plain, err := encode(reg, tc.doc)
			if err != nil {
				t.Fatalf("the driver refuses the document: %v", err)
			}
			want := withID(t, plain, int32(1))
			var src counter
			d := Document(&src, tc.doc)
			for range 2 { // encoded again, it keeps its id
				got, err := encode(reg, d)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("got  %s\nwant %s", hex(got), hex(want))
				}
			}
			if got := src.drawn(); got != map[bool]int{true: 1}[tc.draws] {
				t.Errorf("drew %d ids", got)
			}
			if again, err := encode(reg, tc.doc); err != nil || !bytes.Equal(again, plain) {
				t.Errorf("the document was changed: %s, %v", hex(again), err)
			}

			// The same holds under options and registries that change which keys are written.
			for _, set := range [][]setting{{(*bson.Encoder).UseJSONStructTags}, {(*bson.Encoder).OmitEmpty}} {
				for _, reg := range []*bson.Registry{reg, registered(), bson.NewMgoRegistry()} {
					Register(reg)
					plain, err := encode(reg, tc.doc, set...)
					got, gotErr := encode(reg, Document(&counter{}, tc.doc), set...)
					if err != nil { // the mgo registry refuses a key that comes twice
						if gotErr == nil || gotErr.Error() != err.Error() {
							t.Errorf("got %v, the driver %v", gotErr, err)
						}
						continue
					}
					if gotErr != nil || !bytes.Equal(got, withID(t, plain, int32(1))) {
						t.Errorf("got %s, %v, the driver writes %s", hex(got), gotErr, hex(plain))
					}
				}
			}

			// As the value of an element it is the same document, or the null that the driver makes of it there.
			value := func(doc any) bson.RawValue {
				b, err := encode(reg, bson.D{{Key: "sub", Value: doc}})
				if err != nil {
					t.Fatal(err)
				}
				return bson.Raw(b).Lookup("sub")
			}
			if got := value(d); !bytes.Equal(got.Value, want) && value(tc.doc).Type != bson.TypeNull {
				t.Errorf("as a value: got %v", got)
			}
		})
	}
}

// TestDocumentRefused: what the driver does not take as a document stays an error, with the driver's text.
func TestDocumentRefused(t *testing.T) {
	short := bson.Raw{5, 0, 0}
	for _, doc := range []any{
		"text", 1, []int{1}, loop(nil), loop(new(loop)), bson.A{1}, bson.D(nil), (*struct{ A int })(nil), (*bson.D)(nil), func() {}, make(chan int),
		map[string]any{"f": func() {}}, bson.D{{Key: "a\x00b", Value: 1}}, bson.D{{Key: "f", Value: func() {}}},
		struct{ F func() }{func() {}}, valueMarshaler{bson.D{}}, short, []byte(nil), bson.Raw(nil), bson.NewObjectID(),
		map[[2]int]int{{}: 1}, &short, time.Now(), struct {
			A int `bson:"x"`
			B int `bson:"x"`
		}{},
	} {
		t.Run(fmt.Sprintf("%T", doc), func(t *testing.T) {
			_, want := encode(registered(), doc)
			if want == nil {
				t.Fatal("the driver takes it")
			}
			var src counter
			_, got := encode(registered(), Document(&src, doc))
			if got == nil || got.Error() != want.Error() || reflect.TypeOf(got) != reflect.TypeOf(want) {
				t.Errorf("got %T %v\nwant %T %v", got, got, want, want)
			}
		})
	}
	if d := Document(&counter{}, nil); d != nil {
		t.Errorf("Document(nil) = %v", d)
	}
}

// TestDocumentOptions: the BSON options of the client reach the document and the id.
func TestDocumentOptions(t *testing.T) {
	type jsonTags struct {
		Name string `json:"name"`
		ID   int64  `json:"_id"`
	}
	type tagged struct {
		ID    int64  `bson:"_id"`
		Bytes []byte `bson:"bytes"`
		Big   int64  `bson:"big"`
	}
	for _, tc := range []struct {
		name  string
		set   setting
		doc   any
		draws bool
		want  bson.D
	}{
		{"UseJSONStructTags", (*bson.Encoder).UseJSONStructTags, jsonTags{"Ada", 7}, false,
			bson.D{{Key: "name", Value: "Ada"}, {Key: "_id", Value: int64(7)}}},
		{"OmitEmpty", (*bson.Encoder).OmitEmpty, tagged{Big: 1}, true,
			bson.D{{Key: "_id", Value: int64(1)}, {Key: "big", Value: int64(1)}}},
		{"IntMinSize", (*bson.Encoder).IntMinSize, bson.D{{Key: "big", Value: int64(9)}}, true,
			bson.D{{Key: "_id", Value: int32(1)}, {Key: "big", Value: int32(9)}}},
		{"NilByteSliceAsEmpty", (*bson.Encoder).NilByteSliceAsEmpty, tagged{ID: 3}, false,
			bson.D{{Key: "_id", Value: int64(3)}, {Key: "bytes", Value: bson.Binary{Data: []byte{}}}, {Key: "big", Value: int64(0)}}},
		{"NilSliceAsEmpty", (*bson.Encoder).NilSliceAsEmpty, bson.D(nil), true, bson.D{{Key: "_id", Value: int64(1)}}},
		{"NilMapAsEmpty", (*bson.Encoder).NilMapAsEmpty, bson.M(nil), true, bson.D{{Key: "_id", Value: int64(1)}}},
		{"StringifyMapKeysWithFmt", (*bson.Encoder).StringifyMapKeysWithFmt, map[shouting]int32{"x": 4}, false,
			bson.D{{Key: "_id", Value: int32(4)}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := int64(0)
			src := SourceFunc(func() (any, error) { n++; return n, nil })
			got, err := encode(registered(), Document(src, tc.doc), tc.set)
			if err != nil {
				t.Fatal(err)
			}
			want, err := bson.Marshal(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) || (n == 1) != tc.draws {
				t.Errorf("got  %s\nwant %s\n%d drawn", hex(got), hex(want), n)
			}
		})
	}
}

// TestDocumentMap: a map with several keys comes in any order, its _id in front.
func TestDocumentMap(t *testing.T) {
	m := bson.M{"a": 1, "b": "x", "c": nil, "d": bson.M{"_id": 1}, "e": bson.A{1, 2}}
	for range 20 {
		got, err := encode(registered(), Document(&counter{}, m))
		if err != nil {
			t.Fatal(err)
		}
		elems, err := bson.Raw(got).Elements()
		if err != nil || len(elems) != 6 || elems[0].Key() != "_id" || elems[0].Value().Int32() != 1 {
			t.Fatalf("got %s", hex(got))
		}
		for _, e := range elems[1:] {
			one, err := encode(registered(), bson.M{e.Key(): m[e.Key()]})
			if err != nil {
				t.Fatal(err)
			}
			if want := bson.Raw(one).Lookup(e.Key()); !want.Equal(e.Value()) {
				t.Errorf("%s: got %v, want %v", e.Key(), e.Value(), want)
			}
		}
	}
	if len(m) != 5 {
		t.Errorf("the map was changed: %v", m)
	}
}

// TestDocumentStructs makes struct types at random, with every tag that decides on keys, and compares them with the
// driver under every option that does. Two options on one registry are part of it: the driver then keeps for a type
// what it found first.
func TestDocumentStructs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tags := []reflect.StructTag{
		``, `bson:"_id"`, `bson:"_id,omitempty"`, `json:"_id"`, `json:"_id,omitempty"`, `bson:"-"`, `json:"-"`, `_id`,
		`_id,omitempty`, `bson:",inline"`, `,inline`, `json:",inline"`, `bson:"x,omitempty"`, `bson:"y" json:"_id"`,
		`bson:",omitempty" json:"-"`, `xml:"_id"`, `bson:"inline"`,
	}
	leaves := []reflect.Type{
		reflect.TypeFor[int32](), reflect.TypeFor[string](), reflect.TypeFor[bson.ObjectID](), reflect.TypeFor[*int32](),
		reflect.TypeFor[any](), reflect.TypeFor[map[string]int32](), reflect.TypeFor[base](), reflect.TypeFor[*base](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[[0]byte](), reflect.TypeFor[[2]byte](), reflect.TypeFor[float64](),
		reflect.TypeFor[bool](), reflect.TypeFor[odd](), reflect.TypeFor[*odd](), reflect.TypeFor[bson.D](),
	}
	var structOf func(depth int) reflect.Type
	structOf = func(depth int) reflect.Type {
		var fields []reflect.StructField
		for i := range rnd.IntN(5) {
			typ := leaves[rnd.IntN(len(leaves))]
			if depth > 0 && rnd.IntN(3) == 0 {
				typ = structOf(depth - 1)
				if rnd.IntN(2) == 0 {
					typ = reflect.PointerTo(typ)
				}
			}
			fields = append(fields, reflect.StructField{
				Name: fmt.Sprintf("F%d%d", depth, i), Type: typ, Tag: tags[rnd.IntN(len(tags))],
			})
		}
		return reflect.StructOf(fields)
	}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		if rnd.IntN(2) == 0 {
			return
		}
		switch v.Kind() {
		case reflect.Int32:
			v.SetInt(7)
		case reflect.String:
			v.SetString("s")
		case reflect.Array:
			if v.Len() > 0 {
				v.Index(0).SetUint(1)
			}
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Float64:
			v.SetFloat(math.Copysign(0, -1))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		case reflect.Interface:
			v.Set(reflect.ValueOf("any"))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]int32{[]string{"_id", "z"}[rnd.IntN(2)]: 1}))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(time.Unix(1, 0)))
				return
			}
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		}
	}
	options := []setting{
		(*bson.Encoder).UseJSONStructTags, (*bson.Encoder).OmitEmpty, (*bson.Encoder).OmitZeroStruct,
		(*bson.Encoder).ErrorOnInlineDuplicates,
	}
	newRegistry := []func() *bson.Registry{bson.NewRegistry, bson.NewRegistry, bson.NewMgoRegistry}
	rounds := 4_000
	if testing.Short() {
		rounds = 1_000
	}
	encoded, drew, kept, places := 0, 0, 0, map[placement]int{}
	for range rounds {
		v := reflect.New(structOf(2))
		fill(v.Elem())
		for i := range v.Elem().NumField() {
			fill(v.Elem().Field(i))
		}
		places[idFieldOf(v.Type().Elem()).place(v.Elem())]++
		reg := newRegistry[rnd.IntN(3)]()
		Register(reg)
		if rnd.IntN(4) == 0 {
			_, _ = encode(reg, v.Interface(), (*bson.Encoder).UseJSONStructTags)
		}
		var set []setting
		for _, o := range options {
			if rnd.IntN(3) == 0 {
				set = append(set, o)
			}
		}
		doc := v.Interface()
		if rnd.IntN(2) == 0 {
			doc = v.Elem().Interface()
		}
		var src counter
		got, gotErr := encode(reg, Document(&src, doc), set...)
		plain, err := encode(reg, doc, set...)
		if err != nil || gotErr != nil {
			if fmt.Sprint(err) != fmt.Sprint(gotErr) {
				t.Fatalf("%T:\ngot  %v\nwant %v", doc, gotErr, err)
			}
			continue
		}
		encoded++
		want := withID(t, plain, int32(1))
		if !bytes.Equal(got, want) {
			t.Fatalf("%T:\ngot  %s\nwant %s", doc, hex(got), hex(want))
		}
		has := len(want) == len(plain)
		if has == (src.drawn() == 1) {
			t.Fatalf("%T: drew %d ids for %s", doc, src.drawn(), hex(plain))
		}
		if has {
			kept++
		} else {
			drew++
		}
	}
	t.Logf("%d encoded, %d with an id drawn, %d with their own; placements %v", encoded, drew, kept, places)
	if drew < rounds/10 || kept < rounds/10 || places[anywhere] == 0 || places[nowhere] == 0 || places[firstOrNever] == 0 || places[somewhere] == 0 {
		t.Error("the types made do not cover the cases")
	}
}

// FuzzDocumentRaw: octets that claim to be a document are taken or refused as the driver does.
func FuzzDocumentRaw(f *testing.F) {
	for _, d := range []bson.D{
		{}, {{Key: "a", Value: 1}}, {{Key: "_id", Value: 1}}, {{Key: "a", Value: 1}, {Key: "_id", Value: nil}},
		{{Key: "a", Value: bson.D{{Key: "_id", Value: 1}}}}, {{Key: "user_id", Value: "_id\x00"}},
		{{Key: "a", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "_id", Value: 1}}}}},
	} {
		b, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{5, 0, 0, 0})
	f.Add([]byte{6, 0, 0, 0, 0, 0})
	f.Add([]byte("\x10\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00\xff"))
	reg := registered()
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, want := encode(reg, bson.Raw(data))
		for _, doc := range []any{bson.Raw(data), data, &data} {
			if p, ok := doc.(*[]byte); ok {
				r := bson.Raw(*p)
				doc = &r
			}
			var src counter
			got, err := encode(reg, Document(&src, doc))
			if fmt.Sprint(err) != fmt.Sprint(want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if err != nil {
				continue
			}
			if full := withID(t, plain, int32(1)); !bytes.Equal(got, full) {
				t.Fatalf("got %x, want %x", got, full)
			} else if (len(full) == len(plain)) == (src.drawn() == 1) {
				t.Fatalf("drew %d ids", src.drawn())
			}
		}
	})
}

// uuid16 is a UUID as a program might declare it, with a codec for subtype 4.
type uuid16 [16]byte

func registerUUID(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.TypeFor[uuid16](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			u := v.Interface().(uuid16)
			return vw.WriteBinaryWithSubtype(u[:], bson.TypeBinaryUUID)
		}))
	reg.RegisterTypeDecoder(reflect.TypeFor[uuid16](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			b, _, err := vr.ReadBinary()
			if err == nil {
				reflect.Copy(v, reflect.ValueOf(b))
			}
			return err
		}))
	reg.RegisterTypeMapEntry(bson.TypeBinary, reflect.TypeFor[uuid16]())
}

// TestSources: an id of any type is encoded by the registry in force.
func TestSources(t *testing.T) {
	u := uuid16{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	seven := int32(7)
	dec, err := bson.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		id   any
		want any
	}{
		{bson.ObjectID{1, 2, 3}, bson.ObjectID{1, 2, 3}},
		{u, bson.Binary{Subtype: 4, Data: u[:]}},
		{"text", "text"},
		{"", ""},
		{0, int32(0)},
		{int64(1) << 40, int64(1) << 40},
		{1.5, 1.5},
		{dec, dec},
		{&seven, int32(7)},
		{bson.D{{Key: "shard", Value: "a"}, {Key: "n", Value: 1}}, bson.D{{Key: "shard", Value: "a"}, {Key: "n", Value: 1}}},
		{bson.M{"n": 1}, bson.D{{Key: "n", Value: 1}}},
		{bson.Binary{Subtype: 128, Data: []byte{1}}, bson.Binary{Subtype: 128, Data: []byte{1}}},
		{bson.RawValue{Type: bson.TypeInt32, Value: []byte{9, 0, 0, 0}}, int32(9)},
		{valueMarshaler{bson.D{{Key: "n", Value: 1}}}, bson.D{{Key: "n", Value: 1}}},
		{marshaler{bson.D{{Key: "n", Value: 1}}}, bson.D{{Key: "n", Value: 1}}},
		{time.Unix(0, 0), bson.DateTime(0)},
	} {
		t.Run(fmt.Sprintf("%T", tc.id), func(t *testing.T) {
			reg := registered()
			registerUUID(reg)
			src := SourceFunc(func() (any, error) { return tc.id, nil })
			want, err := bson.Marshal(bson.D{{Key: "_id", Value: tc.want}, {Key: "a", Value: 1}})
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range []any{
				bson.D{{Key: "a", Value: 1}},
				struct {
					ID any `bson:"_id,omitempty"`
					A  int
				}{A: 1},
				struct {
					A  int
					ID any `bson:"_id,omitempty"`
				}{A: 1},
			} {
				got, err := encode(reg, Document(src, doc))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%T: got %s, %v\nwant %s", doc, hex(got), err, hex(want))
				}
			}
		})
	}
}

type nullable struct{}

func (n nullable) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

// TestSourceErrors: a source that fails, or has no id to give, fails the document; what it said can be found.
func TestSourceErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name string
		src  Source
		want error
	}{
		{"error", SourceFunc(func() (any, error) { return bson.NewObjectID(), boom }), boom},
		{"nil", SourceFunc(func() (any, error) { return nil, nil }), ErrNilID},
		{"nil pointer", SourceFunc(func() (any, error) { return (*bson.ObjectID)(nil), nil }), ErrNilID},
		{"nil map", SourceFunc(func() (any, error) { return map[string]int(nil), nil }), ErrNilID},
		{"Null", SourceFunc(func() (any, error) { return bson.Null{}, nil }), ErrNilID},
		{"Undefined", SourceFunc(func() (any, error) { return bson.Undefined{}, nil }), ErrNilID},
		{"null by marshaler", SourceFunc(func() (any, error) { return nullable{}, nil }), ErrNilID},
		{"null RawValue", SourceFunc(func() (any, error) { return bson.RawValue{Type: bson.TypeNull}, nil }), ErrNilID},
		{"no source", nil, errNilSource},
		{"no function", SourceFunc(nil), errNilSource},
		{"not encodable", SourceFunc(func() (any, error) { return func() {}, nil }), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			type late struct {
				A  int
				ID any `bson:"_id,omitempty"`
			}
			type first struct {
				ID any `bson:"_id,omitempty"`
			}
			for _, doc := range []any{bson.D{}, bson.M{}, first{}, late{}, bson.Raw{5, 0, 0, 0, 0}, marshaler{bson.D{}}} {
				_, err := encode(registered(), Document(tc.src, doc))
				var e *IDError
				if !errors.As(err, &e) || e.Index != -1 || !reflect.DeepEqual(e.Document, doc) {
					t.Fatalf("%T: got %#v", doc, err)
				}
				if tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("%T: got %v, want %v", doc, err, tc.want)
				}
				if want := fmt.Sprintf("autoid: no id for a document of type %T: ", doc); !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %q, want %q...", err, want)
				}
			}
			// With an _id of its own the document does not need the source.
			if _, err := encode(registered(), Document(tc.src, bson.D{{Key: "_id", Value: 1}})); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSourceAskedAgain: a source that failed, or gave what encodes as null, is asked again when the document is, and the
// id it then gives is kept.
func TestSourceAskedAgain(t *testing.T) {
	for name, first := range map[string]func() (any, error){
		"error":       func() (any, error) { return nil, errors.New("not yet") },
		"nil":         func() (any, error) { return nil, nil },
		"nil pointer": func() (any, error) { return (*bson.ObjectID)(nil), nil },
		"nil map":     func() (any, error) { return map[string]int(nil), nil },
		"Null":        func() (any, error) { return bson.Null{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			d := Document(SourceFunc(func() (any, error) {
				if calls++; calls == 1 {
					return first()
				}
				return int32(calls), nil
			}), bson.D{})
			if _, err := encode(registered(), d); err == nil {
				t.Fatal("no error")
			}
			for range 3 {
				got, err := encode(registered(), d)
				if err != nil || bson.Raw(got).Lookup("_id").Int32() != 2 {
					t.Fatalf("got %s, %v", hex(got), err)
				}
			}
		})
	}
}

// slowNull is an id that encodes as null after something else was done.
type slowNull struct{ meanwhile func() }

// TestSourceNullLate: whoever sees a null id late does not make the document forget the id drawn since.
func TestSourceNullLate(t *testing.T) {
	reg := registered()
	reg.RegisterTypeEncoder(reflect.TypeFor[*slowNull](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			if null := v.Interface().(*slowNull); null.meanwhile != nil {
				meanwhile := null.meanwhile
				null.meanwhile = nil
				meanwhile()
			}
			return vw.WriteNull()
		}))
	var d any
	calls := int32(0)
	want := func() {
		t.Helper()
		got, err := encode(reg, d)
		if err != nil || bson.Raw(got).Lookup("_id").Int32() != 2 {
			t.Fatalf("got %s, %v", hex(got), err)
		}
	}
	d = Document(SourceFunc(func() (any, error) {
		if calls++; calls == 1 {
			return &slowNull{func() {
				if _, err := encode(reg, d); !errors.Is(err, ErrNilID) {
					t.Errorf("got %v", err)
				}
				want()
			}}, nil
		}
		return calls, nil
	}), bson.D{})
	if _, err := encode(reg, d); !errors.Is(err, ErrNilID) {
		t.Errorf("got %v", err)
	}
	want()
}

// TestSourceNullConcurrent: whoever sees a null id late does not make the document forget the id drawn since.
func TestSourceNullConcurrent(t *testing.T) {
	for range 200 {
		var mu sync.Mutex
		calls := 0
		d := Document(SourceFunc(func() (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls <= 3 {
				return bson.Null{}, nil
			}
			return int32(calls), nil
		}), bson.D{})
		reg := registered()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 4 {
					got, err := encode(reg, d)
					if errors.Is(err, ErrNilID) {
						continue
					}
					if err != nil || bson.Raw(got).Lookup("_id").Int32() != 4 {
						t.Errorf("got %s, %v", hex(got), err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestDocumentOfDocument: the inner source counts, and the outer one is not asked.
func TestDocumentOfDocument(t *testing.T) {
	var inner, outer counter
	d := Document(&inner, bson.D{})
	if got := Document(&outer, d); got != d {
		t.Errorf("got %v", got)
	}
	if _, err := encode(registered(), Document(&outer, d)); err != nil || inner.drawn() != 1 || outer.drawn() != 0 {
		t.Errorf("inner %d, outer %d, %v", inner.drawn(), outer.drawn(), err)
	}
}

// TestNotRegistered: nothing that meets a registry without Register is encoded some other way.
func TestNotRegistered(t *testing.T) {
	d := Document(&counter{}, bson.D{{Key: "_id", Value: 1}})
	if _, err := encode(bson.NewRegistry(), d); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("encoder: %v", err)
	}
	if _, err := bson.Marshal(d); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("bson.Marshal: %v", err)
	}
	if _, _, err := bson.MarshalValue(d); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("bson.MarshalValue: %v", err)
	}
	if _, err := bson.MarshalExtJSON(bson.D{{Key: "d", Value: d}}, true, false); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("bson.MarshalExtJSON: %v", err)
	}
	if _, err := encode(bson.NewRegistry(), bson.M{"d": d}); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("as a value: %v", err)
	}

	// Registered after the registry was used, and twice, it works.
	reg := bson.NewRegistry()
	if _, err := encode(reg, d); !errors.Is(err, ErrNotRegistered) {
		t.Error(err)
	}
	Register(reg)
	Register(reg)
	if _, err := encode(reg, d); err != nil {
		t.Error(err)
	}
}

// TestDocumentRegistry: codecs that the application registered for its documents are used, and their _id found.
func TestDocumentRegistry(t *testing.T) {
	type secret struct{}
	type secretMap map[string]any
	key := bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 2}}
	as := func(d bson.D) bson.ValueEncoder {
		return bson.ValueEncoderFunc(func(ec bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			enc, err := ec.LookupEncoder(reflect.TypeFor[[]bson.E]())
			if err != nil {
				return err
			}
			return enc.EncodeValue(ec, vw, reflect.ValueOf([]bson.E(d)))
		})
	}
	for _, doc := range []any{secret{}, &secret{}, secretMap{"_id": 1}, secretMap{}, bson.D{}, bson.M{"_id": 7}, bson.Raw{5, 0, 0, 0, 0}} {
		for _, d := range []bson.D{key, key[:1]} {
			reg := registered()
			for _, typ := range []reflect.Type{
				reflect.TypeFor[secret](), reflect.TypeFor[secretMap](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](),
				reflect.TypeFor[bson.Raw](),
			} {
				reg.RegisterTypeEncoder(typ, as(d))
			}
			plain, err := encode(reg, doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encode(reg, Document(&counter{}, doc))
			if want := withID(t, plain, int32(1)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T: got %s, %v\nwant %s", doc, hex(got), err, hex(want))
			}
		}
	}
}

// TestDocumentExtJSON: any ValueWriter will do.
func TestDocumentExtJSON(t *testing.T) {
	type late struct {
		A  int   `bson:"a"`
		ID int32 `bson:"_id,omitempty"`
	}
	for _, doc := range []any{bson.D{{Key: "a", Value: 1}}, late{A: 1}, &late{A: 1}, marshaler{bson.D{{Key: "a", Value: 1}}}} {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewExtJSONValueWriter(&buf, false, false))
		enc.SetRegistry(registered())
		if err := enc.Encode(Document(&counter{}, doc)); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.TrimSpace(buf.String()), `{"_id":1,"a":1}`; got != want {
			t.Errorf("%T: got %s, want %s", doc, got, want)
		}
	}
}

// TestDocumentConcurrent: one Document encoded by many goroutines draws one id.
func TestDocumentConcurrent(t *testing.T) {
	type late struct {
		A  int   `bson:"a"`
		ID int32 `bson:"_id,omitempty"`
	}
	reg := registered()
	for _, doc := range []any{bson.D{{Key: "a", Value: 1}}, bson.M{"a": 1}, &late{A: 1}, &base{}} {
		var src counter
		d := Document(&src, doc)
		var wg sync.WaitGroup
		results := make([][]byte, 16)
		for i := range results {
			wg.Go(func() {
				for range 100 {
					b, err := encode(reg, d)
					if err != nil {
						t.Error(err)
						return
					}
					results[i] = b
				}
			})
		}
		wg.Wait()
		for _, r := range results {
			if !bytes.Equal(r, results[0]) {
				t.Errorf("%T: got %s and %s", doc, hex(r), hex(results[0]))
			}
		}
		if src.drawn() != 1 {
			t.Errorf("%T: drew %d ids", doc, src.drawn())
		}
	}
}

// TestLargeDocument: a document that is encoded aside and is larger than the buffers that are kept.
func TestLargeDocument(t *testing.T) {
	type late struct {
		Text string `bson:"text"`
		ID   int32  `bson:"_id,omitempty"`
	}
	reg := registered()
	for _, n := range []int{1, maxPooledBuffer, 1 << 20, 1} {
		doc := late{Text: strings.Repeat("x", n)}
		plain, err := encode(reg, doc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(reg, Document(&counter{}, doc))
		if err != nil || !bytes.Equal(got, withID(t, plain, int32(1))) {
			t.Errorf("%d: %d octets, %v", n, len(got), err)
		}
		// A failure in between must not show in the next document.
		if _, err := encode(reg, Document(&counter{}, struct {
			A  int
			ID any    `bson:"_id,omitempty"`
			F  func() `bson:"f"`
		}{F: func() {}})); err == nil {
			t.Error("a function was encoded")
		}
	}
}

// unfinished is encoded by a codec that begins a document and does not end it.
type unfinished struct{}

// TestUnfinishedDocument: a document that its codec did not finish fails, and does not spoil the next one.
func TestUnfinishedDocument(t *testing.T) {
	reg := registered()
	type whole struct{ A int32 }
	reg.RegisterTypeEncoder(reflect.TypeFor[unfinished](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			vw, err = dw.WriteDocumentElement("spoilt")
			if err != nil {
				return err
			}
			return vw.WriteInt32(1)
		}))
	reg.RegisterTypeEncoder(reflect.TypeFor[whole](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			if vw, err = dw.WriteDocumentElement("a"); err != nil {
				return err
			}
			if err := vw.WriteInt32(v.Interface().(whole).A); err != nil {
				return err
			}
			return dw.WriteDocumentEnd()
		}))
	want := withID(t, marshal(t, bson.D{{Key: "a", Value: int32(7)}}), int32(1))
	for range 10 { // one of them gets the buffer of another
		if got, err := encode(reg, Document(&counter{}, unfinished{})); err == nil {
			t.Errorf("unfinished: %s", hex(got))
		}
		if got, err := encode(reg, Document(&counter{}, whole{7})); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %s, %v", hex(got), err)
		}
	}
}
