package driver_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// Each test here checks one thing that this module assumes of the driver and that the driver's
// documentation does not promise. One that fails on a new version of the driver names the code to
// look at.

// bsoncodec replaces the codecs of structs because of this: what a struct's fields are is kept by
// type alone.
func TestDriverKeepsTheFieldsOfAStructByType(t *testing.T) {
	type renamed struct {
		Name string `json:"other"`
	}
	reg := bson.NewRegistry()
	encode := func(jsonTags bool) bson.Raw {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(reg)
		if jsonTags {
			enc.UseJSONStructTags()
		}
		if err := enc.Encode(renamed{"x"}); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	if first, second := encode(false), encode(true); !bytes.Equal(first, second) {
		t.Errorf("the driver writes %v and %v: it keeps the fields by options now, so bsoncodec/struct_codec.go can go", first, second)
	}
}

// driver.NewStructEncoder tells the driver's two codecs of structs apart by what they do, and
// copies them from a new registry. So the two registries must not share a codec of structs with any
// other.
func TestDriverHasTwoCodecsOfStructs(t *testing.T) {
	tStruct := reflect.TypeFor[struct{}]()
	for name, newRegistry := range map[string]func() *bson.Registry{
		"NewRegistry": bson.NewRegistry, "NewMgoRegistry": bson.NewMgoRegistry, "NewRespectNilValuesMgoRegistry": bson.NewRespectNilValuesMgoRegistry,
	} {
		enc, err := newRegistry().LookupEncoder(tStruct)
		if err != nil {
			t.Fatal(err)
		}
		dec, err := newRegistry().LookupDecoder(tStruct)
		if err != nil {
			t.Fatal(err)
		}
		newEncoder, newDecoder := driver.NewStructEncoder(enc), driver.NewStructDecoder(dec)
		if newEncoder == nil || newDecoder == nil {
			t.Errorf("%s: the codec of structs, a %T and a %T, is not known", name, enc, dec)
			continue
		}
		if a, b := newEncoder(), newEncoder(); a == b || a == enc {
			t.Errorf("%s: encoders are shared", name)
		}
		if a, b := newDecoder(), newDecoder(); a == b || a == dec {
			t.Errorf("%s: decoders are shared", name)
		}
		mgo := name != "NewRegistry"
		var buf bytes.Buffer
		v := struct {
			In struct{ N int } `bson:",omitempty"`
		}{}
		ec := bson.EncodeContext{Registry: newRegistry()}
		if err := newEncoder().EncodeValue(ec, bson.NewDocumentWriter(&buf), reflect.ValueOf(v)); err != nil {
			t.Fatal(err)
		}
		if omitted := buf.Len() == 5; omitted != mgo {
			t.Errorf("%s: a copy of the encoder omits an empty struct: %t", name, omitted)
		}
		target := struct{ N int }{1}
		dc := bson.DecodeContext{Registry: newRegistry()}
		vr := bson.NewDocumentReader(bytes.NewReader([]byte{5, 0, 0, 0, 0}))
		if err := newDecoder().DecodeValue(dc, vr, reflect.ValueOf(&target).Elem()); err != nil {
			t.Fatal(err)
		}
		if zeroed := target.N == 0; zeroed != mgo {
			t.Errorf("%s: a copy of the decoder sets its target to zero: %t", name, zeroed)
		}
	}
	if driver.NewStructEncoder(bson.ValueEncoderFunc(nil)) != nil || driver.NewStructDecoder(bson.ValueDecoderFunc(nil)) != nil {
		t.Error("a function is taken for the driver's codec of structs")
	}
}

// bsoncodec keeps things by context.
func TestDriverContextsAreComparable(t *testing.T) {
	if !reflect.TypeFor[bson.EncodeContext]().Comparable() || !reflect.TypeFor[bson.DecodeContext]().Comparable() {
		t.Error("the driver's contexts cannot be compared")
	}
}

// driver.WriteDocument uses a writer again after each whole document.
func TestDriverWriterIsUsedAgain(t *testing.T) {
	var buf bytes.Buffer
	vw := bson.NewDocumentWriter(&buf)
	for range 3 {
		dw, err := vw.WriteDocument()
		if err != nil {
			t.Fatal(err)
		}
		if err := dw.WriteDocumentEnd(); err != nil {
			t.Fatal(err)
		}
	}
	if want := bytes.Repeat([]byte{5, 0, 0, 0, 0}, 3); !bytes.Equal(buf.Bytes(), want) {
		t.Errorf("got %X, want %X", buf.Bytes(), want)
	}
}

// structcodec reads documents at the top level as octets: a reader that is there has no type, and the decoder of
// bson.Raw takes what its first octets say, and no more.
func TestDriverReadsARawDocumentFromAStream(t *testing.T) {
	document := []byte{12, 0, 0, 0, 0x10, 'a', 0, 1, 0, 0, 0, 0}
	vr := bson.NewDocumentReader(bytes.NewReader(append(bytes.Clone(document), document...)))
	for range 2 {
		if vr.Type() != 0 {
			t.Errorf("the reader has the type %v", vr.Type())
		}
		var raw bson.Raw
		dc := bson.DecodeContext{}
		if err := driver.Decoder(reflect.TypeOf(raw)).DecodeValue(dc, vr, reflect.ValueOf(&raw).Elem()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(raw, document) {
			t.Errorf("got %X, want %X", raw, document)
		}
	}
}

// structcodec makes the driver's DecodeError by its decoder of maps, which puts the key before the keys of the error.
func TestDriverPutsTheKeyOfAMapInErrors(t *testing.T) {
	type nested map[string]map[string]int32
	raw, err := bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var de *bson.DecodeError
	if err := bson.Unmarshal(raw, new(nested)); !errors.As(err, &de) || !slices.Equal(de.Keys(), []string{"a", "b"}) {
		t.Errorf("got %v", err)
	}
}

// structcodec knows the driver's codecs by their functions, or by their type if no setting in it is true.
func TestDriverCodecsAreFunctionsOrPointers(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[uint](), reflect.TypeFor[float64](),
		reflect.TypeFor[string](), reflect.TypeFor[[]int](), reflect.TypeFor[[2]int](), reflect.TypeFor[map[string]int](),
		reflect.TypeFor[*int](), reflect.TypeFor[any](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.ObjectID](),
	} {
		for _, codec := range []any{driver.Encoder(typ), driver.Decoder(typ)} {
			switch kind := reflect.TypeOf(codec).Kind(); kind {
			case reflect.Func, reflect.Pointer, reflect.Struct:
			default:
				t.Errorf("a codec of %v is a %v", typ, kind)
			}
		}
	}
}

// structcodec reads an element in a document of its own, and continues with the next one in that of the caller.
func TestDriverDecodesStructsElementByElement(t *testing.T) {
	type target struct{ A, B int32 }
	v := target{1, 2}
	raw, err := bson.Marshal(bson.D{{Key: "b", Value: int32(3)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := bson.Unmarshal(raw, &v); err != nil || v != (target{1, 3}) {
		t.Errorf("got %+v and error %v: a struct that is decoded loses its other fields", v, err)
	}
}
