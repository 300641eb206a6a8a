package autoid

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestDocument compares the encoding of every kind of document with the driver's: the same
// elements, with the id first if the document has none.
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
			base `bson:",inline"` // not exported: the driver skips it
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
		{"array", zeroArray{Name: "Ada", ID: [16]byte{1}}, false},
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
			d := Document(&src, tc.doc, WithZeroIDs(), WithMisfitIDs())
			for range 2 { // the second encoding has the same id
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

			// The same holds with options and registries that change which keys are written.
			for _, set := range [][]setting{{(*bson.Encoder).UseJSONStructTags}, {(*bson.Encoder).OmitEmpty}} {
				for _, reg := range []*bson.Registry{reg, registered(), bson.NewMgoRegistry()} {
					Register(reg)
					plain, err := encode(reg, tc.doc, set...)
					got, gotErr := encode(reg, Document(&counter{}, tc.doc, WithZeroIDs(), WithMisfitIDs()), set...)
					if err != nil { // the mgo registry refuses a duplicate key
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

			// As the value of an element it is the same document, or null if the driver writes null
			// there.
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

// TestDocumentRefused tests that values that the driver does not accept as documents are errors,
// with the text of the driver.
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

// TestDocumentOptions tests that the BSON options of the client apply to the document and the id.
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

// TestDocumentMap tests that the _id of a map is first. The other keys are in any order.
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
