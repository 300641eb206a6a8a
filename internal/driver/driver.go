// Package driver answers questions about the codecs of go.mongodb.org/mongo-driver/v2 that the
// driver's documentation leaves open. Its tests list everything that this module assumes of the
// driver beyond that documentation, one test for each assumption, so that the failing names say
// what a new version of the driver changed.
package driver

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// registry has the driver's own codecs. It is never changed.
var registry = bson.NewRegistry()

// Registry returns the registry of the driver's own codecs. It must not be changed.
func Registry() *bson.Registry { return registry }

// Encoder returns the driver's own encoder of t, nil if it has none.
func Encoder(t reflect.Type) bson.ValueEncoder {
	enc, err := registry.LookupEncoder(t)
	if err != nil {
		return nil
	}
	return enc
}

// Decoder returns the driver's own decoder of t, nil if it has none.
func Decoder(t reflect.Type) bson.ValueDecoder {
	dec, err := registry.LookupDecoder(t)
	if err != nil {
		return nil
	}
	return dec
}

// HasOwnEncoder reports whether reg encodes t with the codec that the driver has for t. The codecs
// of the two mgo registries are the driver's own too; they differ in their settings. A
// [StructEncoder] counts as the driver's.
func HasOwnEncoder(reg *bson.Registry, t reflect.Type) bool {
	enc, err := reg.LookupEncoder(t)
	return err == nil && IsOwnEncoder(enc, t)
}

// HasOwnDecoder reports whether reg decodes t with the codec that the driver has for t, as
// [HasOwnEncoder] does.
func HasOwnDecoder(reg *bson.Registry, t reflect.Type) bool {
	dec, err := reg.LookupDecoder(t)
	return err == nil && IsOwnDecoder(dec, t)
}

// IsOwnEncoder reports whether enc is the codec that the driver has for t.
func IsOwnEncoder(enc bson.ValueEncoder, t reflect.Type) bool {
	if k, ok := enc.(KindEncoder); ok {
		enc = k.Driver()
	}
	own := Encoder(t)
	if _, ok := enc.(StructEncoder); ok {
		return reflect.TypeOf(own) == structCodec
	}
	return own != nil && same(enc, own)
}

// IsOwnDecoder reports whether dec is the codec that the driver has for t.
func IsOwnDecoder(dec bson.ValueDecoder, t reflect.Type) bool {
	if k, ok := dec.(KindDecoder); ok {
		dec = k.Driver()
	}
	own := Decoder(t)
	if _, ok := dec.(StructDecoder); ok {
		return reflect.TypeOf(own) == structCodec
	}
	return own != nil && same(dec, own)
}

// same reports whether a and b are one function, structs of the same functions, or pointers to
// codecs of one type.
func same(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !va.IsValid() || !vb.IsValid() || va.Type() != vb.Type() {
		return false
	}
	switch va.Kind() {
	case reflect.Func:
		return va.Pointer() == vb.Pointer()
	case reflect.Struct:
		for i := range va.NumField() {
			if fa, fb := va.Field(i), vb.Field(i); fa.Kind() != reflect.Func || fa.Pointer() != fb.Pointer() {
				return false
			}
		}
		return true
	case reflect.Pointer:
		return true
	}
	return false
}

// IsHookEncoder reports whether enc, which reg has for t, is that of a hook of a caller: it is registered for an interface
// that t or *t implements, and not for t.
func IsHookEncoder(reg *bson.Registry, enc bson.ValueEncoder, t reflect.Type) bool {
	probe := withMethodsOf(t)
	if probe == nil {
		return false
	}
	hook, err := reg.LookupEncoder(probe)
	return err == nil && !IsOwnEncoder(hook, probe) && (identical(enc, hook) || reflect.TypeOf(enc) == condAddrEncoder)
}

// IsHookDecoder does for dec, which reg has for t, what [IsHookEncoder] does.
func IsHookDecoder(reg *bson.Registry, dec bson.ValueDecoder, t reflect.Type) bool {
	probe := withMethodsOf(t)
	if probe == nil {
		return false
	}
	hook, err := reg.LookupDecoder(probe)
	return err == nil && !IsOwnDecoder(hook, probe) && (identical(dec, hook) || reflect.TypeOf(dec) == condAddrDecoder)
}

// withMethodsOf returns a type with the methods of t and of *t for which no registry has a codec. It is nil if package
// reflect cannot make one, because a method is not exported.
func withMethodsOf(t reflect.Type) (probe reflect.Type) {
	defer func() { _ = recover() }()
	return reflect.StructOf([]reflect.StructField{{Name: "Methods", Type: reflect.PointerTo(t), Anonymous: true}})
}

// identical reports whether a and b are one codec, as far as functions can be told apart.
func identical(a, b any) bool {
	t := reflect.TypeOf(a)
	switch {
	case t != reflect.TypeOf(b):
		return false
	case t.Kind() == reflect.Func:
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	return t.Comparable() && a == b
}

// The types of the driver's codecs of a type of which only pointers implement an interface.
var (
	condAddrEncoder = reflect.TypeOf(Encoder(reflect.TypeFor[marshaledByPointer]()))
	condAddrDecoder = reflect.TypeOf(Decoder(reflect.TypeFor[marshaledByPointer]()))
)

type marshaledByPointer struct{}

func (*marshaledByPointer) MarshalBSON() ([]byte, error) { return nil, nil }

func (*marshaledByPointer) UnmarshalBSON([]byte) error { return nil }

// A StructEncoder stands in for the driver's encoder of structs: it writes the keys and the values
// that the driver's writes, in the same order.
type StructEncoder interface {
	bson.ValueEncoder
	EncodesStructsAsTheDriver()
}

// A StructDecoder stands in for the driver's decoder of structs: it gives the values that the
// driver's gives.
type StructDecoder interface {
	bson.ValueDecoder
	DecodesStructsAsTheDriver()
}

// A KindEncoder stands in for the driver's encoder of a kind or of a method: it writes what that writes, or fails.
type KindEncoder interface {
	bson.ValueEncoder
	Driver() bson.ValueEncoder
}

// A KindDecoder stands in for the driver's decoder of a kind or of a method: it gives what that gives, or fails.
type KindDecoder interface {
	bson.ValueDecoder
	Driver() bson.ValueDecoder
}

// structCodec is the type of the driver's codec of structs, both an encoder and a decoder.
var structCodec = reflect.TypeOf(Encoder(reflect.TypeFor[struct{}]()))

// IsStructEncoder reports whether enc is the driver's encoder of structs or a [StructEncoder].
func IsStructEncoder(enc bson.ValueEncoder) bool {
	_, ok := enc.(StructEncoder)
	return ok || reflect.TypeOf(enc) == structCodec
}

// EncoderBehind returns the encoder to which enc passes values of type t on, or enc. It tells what a codec
// of package structcodec writes for a document, which has a method for it.
func EncoderBehind(reg *bson.Registry, enc bson.ValueEncoder, t reflect.Type) bson.ValueEncoder {
	for range maxDelegations {
		d, ok := enc.(interface {
			EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder
		})
		if !ok {
			break
		}
		enc = d.EncoderFor(reg, t)
	}
	return enc
}

// maxDelegations is how often an encoder may pass a type on. A codec can return itself.
const maxDelegations = 8

// A MapEncoder stands in for the driver's encoder of maps: it writes the keys that the driver's
// writes, but for keys of kind array.
type MapEncoder interface {
	bson.ValueEncoder
	EncodesMapsAsTheDriver()
}

// mapCodec is the type of the driver's codec of maps, both an encoder and a decoder.
var mapCodec = reflect.TypeOf(Encoder(reflect.TypeFor[map[string]any]()))

// IsMapEncoder reports whether enc is the driver's encoder of maps or a [MapEncoder].
func IsMapEncoder(enc bson.ValueEncoder) bool {
	_, ok := enc.(MapEncoder)
	return ok || reflect.TypeOf(enc) == mapCodec
}
