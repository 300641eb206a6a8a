package structcodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// misbehaved is what a caller's codecs do that do not keep to the rules of the driver.
type misbehaved int

const (
	writesNothing misbehaved = iota
	writesTwice
	writesHalf
	writesHalfArray
	readsNothing
	readsTwice
	readsHalf
	misbehaviours
)

func (m misbehaved) encode(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
	switch m {
	case writesNothing:
		return nil
	case writesTwice:
		if err := vw.WriteInt32(1); err != nil {
			return err
		}
		return vw.WriteInt32(2)
	case writesHalf:
		_, err := vw.WriteDocument()
		return err
	case writesHalfArray:
		aw, err := vw.WriteArray()
		if err != nil {
			return err
		}
		_, err = aw.WriteArrayElement()
		return err
	}
	return vw.WriteDouble(1)
}

func (m misbehaved) decode(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	v.SetInt(v.Int() + 1)
	switch m {
	case readsNothing:
		return nil
	case readsTwice:
		if err := vr.Skip(); err != nil {
			return err
		}
		return vr.Skip()
	case readsHalf:
		if vr.Type() != bson.TypeEmbeddedDocument {
			return vr.Skip()
		}
		_, err := vr.ReadDocument()
		return err
	}
	return vr.Skip()
}

type misbehaving int

// The results of codecs that misbehave are those of the driver, wherever they are. Exempt is where the driver goes on
// after a decoder that read too much or too little.
func TestMisbehavingCodecs(t *testing.T) {
	type inner struct{ A, X, B misbehaving }
	values := []any{
		struct{ X misbehaving }{}, struct{ X, Y misbehaving }{},
		struct {
			X misbehaving
			Y int
		}{},
		struct {
			Y int
			X *misbehaving
		}{X: new(misbehaving)},
		struct{ S []misbehaving }{make([]misbehaving, 2)},
		struct{ S [2]misbehaving }{},
		struct{ M map[string]misbehaving }{map[string]misbehaving{"a": 1}},
		struct{ I inner }{},
		struct{ I []inner }{make([]inner, 2)},
		struct{ V any }{misbehaving(1)},
		struct {
			V any
			D bson.D
		}{D: bson.D{{Key: "a", Value: misbehaving(1)}, {Key: "b", Value: 1}}},
		struct {
			X misbehaving `bson:",minsize"`
			Y int
		}{},
	}
	option := func(*bson.Encoder) {}
	for m := range misbehaviours {
		driver, plans := registries(func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[misbehaving](), bson.ValueEncoderFunc(m.encode))
			reg.RegisterTypeDecoder(reflect.TypeFor[misbehaving](), bson.ValueDecoderFunc(m.decode))
		})
		for _, v := range values {
			want, wantErr := encode(driver, v, option)
			got, gotErr := encode(plans, v, option)
			if m == writesTwice { // the texts name the place of the value
				if a, b := new(bson.TransitionError), new(bson.TransitionError); errors.As(wantErr, a) && errors.As(gotErr, b) {
					gotErr = wantErr
				}
			}
			if !sameError(wantErr, gotErr) || !bytes.Equal(want, got) {
				t.Errorf("%d: encode %+v\n got %X and error %v\nwant %X and error %v", m, v, got, gotErr, want, wantErr)
			}
			for _, value := range []any{int32(5), bson.D{{Key: "a", Value: 1}, {Key: "x", Value: 2}}, "text"} {
				element := func(key string) bson.E { return bson.E{Key: key, Value: value} }
				array := bson.A{value, value}
				raw := doc(t, element("x"), bson.E{Key: "s", Value: array}, element("y"),
					bson.E{Key: "i", Value: bson.D{element("a"), element("x")}}, element("m"), element("x"))
				want, got := reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v))
				wantErr := decodeMemory(driver, raw, want.Interface(), nil)
				gotErr := decodeMemory(plans, raw, got.Interface(), nil)
				if m == readsHalf || m == readsTwice && wantErr != nil && gotErr != nil {
					continue
				}
				if !sameError(wantErr, gotErr) || !same(want, got) {
					t.Errorf("%d: decode %v into %T\n got %s and error %v\nwant %s and error %v", m, raw, v, dump(got), gotErr, dump(want), wantErr)
				}
			}
		}
	}
}
