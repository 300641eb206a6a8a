package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// UUID types have text methods, and so do pointers to them: a hook of the caller for
// encoding.TextMarshaler would take the pointers, but not the values, which have type codecs.
// Therefore pointers have a type codec as well. It is the codec that the registry has for all
// pointers.

// pointerCodec is the codec of pointers to UUID types.
type pointerCodec struct{}

// EncodeValue is the ValueEncoder of pointers to UUID types.
func (pointerCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	return encoderOf(ec.Registry, tAnyPointer).EncodeValue(ec, vw, val)
}

// DecodeValue is the ValueDecoder of pointers to UUID types.
func (pointerCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	return decoderOf(dc.Registry, tAnyPointer).DecodeValue(dc, vr, val)
}

// EncoderFor returns the codec that reg has for pointers.
func (pointerCodec) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	return encoderOf(reg, tAnyPointer)
}

// DecoderFor returns the codec that reg has for pointers.
func (pointerCodec) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	return decoderOf(reg, tAnyPointer)
}
