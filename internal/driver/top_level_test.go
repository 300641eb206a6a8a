package driver_test

import (
	"bytes"
	"errors"
	"reflect"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// bsoncodec tells by this whether a struct is a whole document: a writer and a reader before one refuse null, with a
// TransitionError and without any effect.
func TestDriverRefusesNullAtTheTopLevel(t *testing.T) {
	doc := bson.D{{Key: "a", Value: int32(1)}}
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := bson.MarshalExtJSON(doc, true, false)
	if err != nil {
		t.Fatal(err)
	}
	var transition bson.TransitionError
	enc, err := bson.NewRegistry().LookupEncoder(reflect.TypeFor[bson.D]())
	if err != nil {
		t.Fatal(err)
	}
	ec := bson.EncodeContext{Registry: bson.NewRegistry()}
	var binary, extended bytes.Buffer
	for _, tt := range []struct {
		vw   bson.ValueWriter
		buf  *bytes.Buffer
		want []byte
	}{{bson.NewDocumentWriter(&binary), &binary, raw}, {bson.NewExtJSONValueWriter(&extended, true, false), &extended, append(text, '\n')}} {
		for range 2 {
			if err := tt.vw.WriteNull(); !errors.As(err, &transition) {
				t.Errorf("%T: got %v", tt.vw, err)
			}
		}
		if err := enc.EncodeValue(ec, tt.vw, reflect.ValueOf(doc)); err != nil || !bytes.Equal(tt.buf.Bytes(), tt.want) {
			t.Errorf("%T: got %q, %v", tt.vw, tt.buf, err)
		}
	}
	extJSON, err := bson.NewExtJSONValueReader(bytes.NewReader(text), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, vr := range []bson.ValueReader{bson.NewDocumentReader(bytes.NewReader(raw)), extJSON} {
		for range 2 {
			if err := vr.ReadNull(); !errors.As(err, &transition) {
				t.Errorf("%T: got %v", vr, err)
			}
		}
		var got bson.D
		if err := bson.NewDecoder(vr).Decode(&got); err != nil || !reflect.DeepEqual(got, doc) {
			t.Errorf("%T: got %v, %v", vr, got, err)
		}
	}
}

type registeredLate struct{}

// bsoncodec registers the driver's encoder of a type while the registry is used. The race detector sees whether that is
// safe.
func TestDriverRegistersTypesConcurrently(t *testing.T) {
	reg := bson.NewRegistry()
	typ := reflect.TypeFor[registeredLate]()
	own, err := reg.LookupEncoder(typ)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				reg.RegisterTypeEncoder(typ, own)
				if enc, err := reg.LookupEncoder(typ); err != nil || enc != own {
					t.Errorf("got %v, %v", enc, err)
				}
			}
		})
	}
	wg.Wait()
}
