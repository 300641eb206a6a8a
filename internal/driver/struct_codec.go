package driver

import (
	"bytes"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The driver has two codecs of structs: that of [bson.NewRegistry] and that of the two mgo
// registries. They have one type, and what tells them apart from outside is that the second omits
// an empty struct by omitempty, and sets a target to zero before it decodes.

type omitsEmptyStruct struct {
	S struct{} `bson:"s,omitempty"`
}

type keepsField struct {
	N int32
}

var emptyDocument = []byte{5, 0, 0, 0, 0}

// NewStructEncoder returns a function that makes copies of enc, each with caches of its own, if enc
// is the driver's encoder of structs, and nil if it is not.
func NewStructEncoder(enc bson.ValueEncoder) func() bson.ValueEncoder {
	if reflect.TypeOf(enc) != structCodec {
		return nil
	}
	var buf bytes.Buffer
	ec := bson.EncodeContext{Registry: registry}
	err := enc.EncodeValue(ec, bson.NewDocumentWriter(&buf), reflect.ValueOf(omitsEmptyStruct{}))
	if err != nil {
		return nil
	}
	newRegistry := bson.NewRegistry
	if bytes.Equal(buf.Bytes(), emptyDocument) {
		newRegistry = bson.NewMgoRegistry
	}
	return func() bson.ValueEncoder {
		enc, err := newRegistry().LookupEncoder(reflect.TypeFor[struct{}]())
		if err != nil {
			return nil
		}
		return enc
	}
}

// NewStructDecoder returns a function that makes copies of dec, each with caches of its own, if dec
// is the driver's decoder of structs, and nil if it is not.
func NewStructDecoder(dec bson.ValueDecoder) func() bson.ValueDecoder {
	if reflect.TypeOf(dec) != structCodec {
		return nil
	}
	v := keepsField{N: 1}
	dc := bson.DecodeContext{Registry: registry}
	vr := bson.NewDocumentReader(bytes.NewReader(emptyDocument))
	if err := dec.DecodeValue(dc, vr, reflect.ValueOf(&v).Elem()); err != nil {
		return nil
	}
	newRegistry := bson.NewRegistry
	if v.N == 0 {
		newRegistry = bson.NewMgoRegistry
	}
	return func() bson.ValueDecoder {
		dec, err := newRegistry().LookupDecoder(reflect.TypeFor[struct{}]())
		if err != nil {
			return nil
		}
		return dec
	}
}

// HasDefaultSettings reports whether codec is the driver's for values of type t, of structs or of slices, with the settings
// of [bson.NewRegistry]. Those of the two mgo registries differ.
func HasDefaultSettings(codec any, t reflect.Type) bool {
	if k, ok := codec.(KindEncoder); ok {
		codec = k.Driver()
	}
	a, b := reflect.ValueOf(codec), reflect.ValueOf(Encoder(t))
	if !a.IsValid() || a.Type() != b.Type() || a.Kind() != reflect.Pointer {
		return false
	}
	a, b = a.Elem(), b.Elem()
	for i := range a.NumField() {
		if a.Field(i).Kind() == reflect.Bool && a.Field(i).Bool() != b.Field(i).Bool() {
			return false
		}
	}
	return true
}

type embedded struct {
	N int32
}

type embeds struct{ embedded }

// EncodesEmbedded reports whether the driver's encoder of structs enc encodes embedded fields that are not exported, as
// that of the two mgo registries does.
func EncodesEmbedded(enc bson.ValueEncoder) bool {
	var buf bytes.Buffer
	ec := bson.EncodeContext{Registry: registry}
	err := enc.EncodeValue(ec, bson.NewDocumentWriter(&buf), reflect.ValueOf(embeds{}))
	return err == nil && !bytes.Equal(buf.Bytes(), emptyDocument)
}

// DecodesEmbedded reports whether the driver's decoder of structs dec looks at embedded fields that are not exported: it
// fails for an element that is one.
func DecodesEmbedded(dec bson.ValueDecoder) bool {
	doc := []byte("\x0f\x00\x00\x00\x0aembedded\x00\x00")
	vr := bson.NewDocumentReader(bytes.NewReader(doc))
	return dec.DecodeValue(bson.DecodeContext{Registry: registry}, vr, reflect.ValueOf(new(embeds)).Elem()) != nil
}
