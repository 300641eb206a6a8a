package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// A stage is when codecs are registered or looked up.
type stage uint8

const (
	beforeWith stage = iota // before the functions of With
	afterWith
	afterAll // when all codecs but those with plans are registered
	inUse    // when the registry is built
)

// A registry keeps the codec that it found for a type. So the codec of a kind, or of the types with a method, is looked up
// for a type that nothing else looks up, and that differs from stage to stage.

// probes are these types: for each stage, by kind and by the interface of the method.
var probes = [...]struct {
	kinds   map[reflect.Kind]reflect.Type
	methods map[reflect.Type]reflect.Type
}{
	beforeWith: {kindProbes[struct{ beforeWith int }](), methodProbes[struct{ beforeWith int }]()},
	afterWith:  {kindProbes[struct{ afterWith int }](), methodProbes[struct{ afterWith int }]()},
	afterAll:   {kindProbes[struct{ afterAll int }](), methodProbes[struct{ afterAll int }]()},
	inUse:      {kindProbes[struct{ inUse int }](), methodProbes[struct{ inUse int }]()},
}

// The types of a stage are made of a type S that differs from that of any other stage.
type (
	structOf[S any] struct{}
	int64Of[S any]  int64
	stringOf[S any] string
)

func kindProbes[S any]() map[reflect.Kind]reflect.Type {
	return map[reflect.Kind]reflect.Type{
		reflect.Struct: reflect.TypeFor[structOf[S]](), reflect.Pointer: reflect.TypeFor[*structOf[S]](),
		reflect.Array: reflect.TypeFor[[1]structOf[S]](), reflect.Slice: reflect.TypeFor[[]structOf[S]](),
		reflect.Map: reflect.TypeFor[map[string]structOf[S]](), reflect.Int64: reflect.TypeFor[int64Of[S]](),
		reflect.String: reflect.TypeFor[stringOf[S]](),
	}
}

// The codecs of methods are looked up for types that have one of them.
type (
	marshalsValue[S any]      struct{}
	marshalsDocument[S any]   struct{}
	unmarshalsValue[S any]    struct{}
	unmarshalsDocument[S any] struct{}
)

func (marshalsValue[S]) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeNull), nil, nil
}

func (marshalsDocument[S]) MarshalBSON() ([]byte, error) { return nil, nil }

func (*unmarshalsValue[S]) UnmarshalBSONValue(byte, []byte) error { return nil }

func (*unmarshalsDocument[S]) UnmarshalBSON([]byte) error { return nil }

func methodProbes[S any]() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		tValueMarshaler: reflect.TypeFor[marshalsValue[S]](), tMarshaler: reflect.TypeFor[marshalsDocument[S]](),
		tValueUnmarshaler: reflect.TypeFor[*unmarshalsValue[S]](), tUnmarshaler: reflect.TypeFor[*unmarshalsDocument[S]](),
	}
}

var (
	tAnyStruct  = probes[inUse].kinds[reflect.Struct]
	tAnyPointer = probes[inUse].kinds[reflect.Pointer]
	tAnySlice   = probes[inUse].kinds[reflect.Slice]
)

// encoderOf returns the encoder that reg has for t, a type of a kind that BSON has values for. There always is one: a
// registry that has nothing else for t has the codec of its kind, and a caller can replace that but not remove it.
func encoderOf(reg *bson.Registry, t reflect.Type) bson.ValueEncoder {
	enc, _ := reg.LookupEncoder(t)
	return enc
}

// decoderOf does for decoders what encoderOf does for encoders.
func decoderOf(reg *bson.Registry, t reflect.Type) bson.ValueDecoder {
	dec, _ := reg.LookupDecoder(t)
	return dec
}

// The codecs of slices of UUIDs and of any handle the values within by themselves, if the registry still has the codecs of
// this package and of the driver for these values when it is first used. If the caller has registered others since Build,
// those are called. What is found at the first use is kept, as the driver's own codecs keep it.

// otherEncoder returns the encoder to use for a type that is composed of values of type elem: that
// of its kind, unless this is the driver's and elem still has the encoder own. It returns nil then.
func otherEncoder(reg *bson.Registry, kind, elem reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	ofKind := encoderOf(reg, kind)
	if encoderOf(reg, elem) == own && driver.IsOwnEncoder(driver.EncoderBehind(reg, ofKind, kind), kind) {
		return nil
	}
	return ofKind
}

// otherDecoder does for decoders what otherEncoder does for encoders.
func otherDecoder(reg *bson.Registry, kind, elem reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	ofKind := decoderOf(reg, kind)
	if decoderOf(reg, elem) == own && driver.IsOwnDecoder(ofKind, kind) {
		return nil
	}
	return ofKind
}
