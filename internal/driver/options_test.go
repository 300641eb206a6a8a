package driver_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/internal/driver"
)

// seen is a type with codecs of seenContexts.
type seen int

// seenContexts returns a registry, and the contexts in which it last encoded and decoded a seen.
func seenContexts() (*bson.Registry, *bson.EncodeContext, *bson.DecodeContext) {
	reg, lastEC, lastDC := bson.NewRegistry(), new(bson.EncodeContext), new(bson.DecodeContext)
	reg.RegisterTypeEncoder(reflect.TypeFor[seen](), bson.ValueEncoderFunc(
		func(ec bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			*lastEC = ec
			return vw.WriteNull()
		}))
	reg.RegisterTypeDecoder(reflect.TypeFor[seen](), bson.ValueDecoderFunc(
		func(dc bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
			*lastDC = dc
			return vr.ReadNull()
		}))
	return reg, lastEC, lastDC
}

// encodeSeen has an Encoder with those options encode v, by the methods with the names of the options.
func encodeSeen(t *testing.T, reg *bson.Registry, o driver.Options, v any) {
	t.Helper()
	enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
	enc.SetRegistry(reg)
	callNamed(enc, o)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
}

func decodeSeen(t *testing.T, reg *bson.Registry, o driver.Options, doc []byte, v any) {
	t.Helper()
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
	dec.SetRegistry(reg)
	callNamed(dec, o)
	if err := dec.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// callNamed calls the methods of coder, an Encoder or a Decoder, that have the names of the options that are set.
func callNamed(coder any, o driver.Options) {
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		if m := reflect.ValueOf(coder).MethodByName(v.Type().Field(i).Name); v.Field(i).Bool() && m.IsValid() {
			m.Call(nil)
		}
	}
}

// Options has the fields of the driver's BSONOptions, and each is the option of the methods that have its name: a map
// whose value is a seen passes the context of the Encoder and of the Decoder on.
func TestDriverOptionsAreNamedAfterTheirMethods(t *testing.T) {
	ours, theirs := reflect.TypeFor[driver.Options](), reflect.TypeFor[options.BSONOptions]()
	if ours.NumField() != theirs.NumField() {
		t.Errorf("%d options, the driver has %d", ours.NumField(), theirs.NumField())
	}
	reg, ec, dc := seenContexts()
	for i := range theirs.NumField() {
		name := theirs.Field(i).Name
		var o driver.Options
		field := reflect.ValueOf(&o).Elem().FieldByName(name)
		if !field.IsValid() {
			t.Errorf("there is no option %s", name)
			continue
		}
		field.SetBool(true)
		_, ofEncoder := reflect.TypeFor[*bson.Encoder]().MethodByName(name)
		_, ofDecoder := reflect.TypeFor[*bson.Decoder]().MethodByName(name)
		if !ofEncoder && !ofDecoder {
			t.Errorf("neither the Encoder nor the Decoder has a method %s", name)
		}
		wantEncoded, wantDecoded := driver.Options{}, driver.Options{}
		if ofEncoder {
			wantEncoded = o
		}
		if ofDecoder {
			wantDecoded = o
		}
		encodeSeen(t, reg, o, map[string]seen{"f": 1})
		if got, ok := driver.EncodeOptions(*ec); !ok || got != wantEncoded {
			t.Errorf("%s: encoding with %+v, %v", name, got, ok)
		}
		if ec.Registry = nil; o.EncodeContext() != *ec {
			t.Errorf("%s: EncodeContext returned another context than that of an Encoder", name)
		}
		decodeSeen(t, reg, o, []byte("\x08\x00\x00\x00\x0af\x00\x00"), &map[string]seen{})
		if got, ok := driver.DecodeOptions(*dc); !ok || got != wantDecoded {
			t.Errorf("%s: decoding with %+v, %v", name, got, ok)
		}
		if dc.Registry = nil; o.DecodeContext() != *dc {
			t.Errorf("%s: DecodeContext returned another context than that of a Decoder", name)
		}
	}
}

// A context without options is the zero one, and one is known for each set of options.
func TestDriverContextsTellTheirOptions(t *testing.T) {
	none := driver.Options{}
	if none.EncodeContext() != (bson.EncodeContext{}) || none.DecodeContext() != (bson.DecodeContext{}) {
		t.Error("a context without options is not zero")
	}
	if n := len(driver.EncodeContexts()); n != 1<<9 {
		t.Errorf("%d contexts of an Encoder with 9 options", n)
	}
	if n := len(driver.DecodeContexts()); n != 1<<9-1<<7 { // DefaultDocumentMap prevails over DefaultDocumentM
		t.Errorf("%d contexts of a Decoder with 9 options", n)
	}
	for want, o := range driver.EncodeContexts() {
		if got, ok := driver.EncodeOptions(want); o.EncodeContext() != want || !ok || got != o {
			t.Fatalf("%+v: EncodeOptions returned %+v, %v", o, got, ok)
		}
	}
	for want, o := range driver.DecodeContexts() {
		if got, ok := driver.DecodeOptions(want); o.DecodeContext() != want || !ok || got != o {
			t.Fatalf("%+v: DecodeOptions returned %+v, %v", o, got, ok)
		}
	}
	both := driver.Options{DefaultDocumentM: true, DefaultDocumentMap: true}
	if got, ok := driver.DecodeOptions(both.DecodeContext()); !ok || got != (driver.Options{DefaultDocumentMap: true}) {
		t.Errorf("both document types: got %+v, %v", got, ok)
	}
}

// FieldEncodeContext and FieldDecodeContext return what the codec of a field is called with, for each set of options.
func TestDriverContextsOfFields(t *testing.T) {
	reg, ec, dc := seenContexts()
	for _, minSize := range []bool{false, true} {
		var v any = struct{ F seen }{1}
		if minSize {
			v = struct {
				F seen `bson:",minsize"`
			}{1}
		}
		for outer, o := range driver.EncodeContexts() {
			encodeSeen(t, reg, o, v)
			if outer.Registry = reg; driver.FieldEncodeContext(outer, minSize) != *ec {
				inner, _ := driver.EncodeOptions(driver.FieldEncodeContext(outer, minSize))
				t.Fatalf("%+v, minsize %v: got %+v", o, minSize, inner)
			}
		}
	}
	for _, truncate := range []bool{false, true} {
		var v any = new(struct{ F seen })
		if truncate {
			v = new(struct {
				F seen `bson:",truncate"`
			})
		}
		for outer, o := range driver.DecodeContexts() {
			decodeSeen(t, reg, o, []byte("\x08\x00\x00\x00\x0af\x00\x00"), v)
			if outer.Registry = reg; driver.FieldDecodeContext(outer, truncate) != *dc {
				inner, _ := driver.DecodeOptions(driver.FieldDecodeContext(outer, truncate))
				t.Fatalf("%+v, truncate %v: got %+v", o, truncate, inner)
			}
		}
	}
}
