package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// documentEncoder is the encoder of the types that RegisterDocumentType registers. It is the one that
// the registry has for all structs.
type documentEncoder struct{}

// EncodeValue is the ValueEncoder of a document type.
func (documentEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	return encoderOf(ec.Registry, tAnyStruct).EncodeValue(ec, vw, val)
}

// EncoderFor returns the codec that reg has for structs.
func (documentEncoder) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	return encoderOf(reg, tAnyStruct)
}

// documentDecoder is the decoder of the types that RegisterDocumentType registers: the registry's decoder of structs reads
// documents. Everything else is read by uuid, if the type is a struct around a UUID or a UUID that can be null.
type documentDecoder struct{ uuid bson.ValueDecoder }

// DecodeValue is the ValueDecoder of a document type.
func (c documentDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if vrType := vr.Type(); c.uuid != nil && vrType != bson.TypeEmbeddedDocument && vrType != 0 {
		return c.uuid.DecodeValue(dc, vr, val)
	}
	return decoderOf(dc.Registry, tAnyStruct).DecodeValue(dc, vr, val)
}

// DecoderFor returns the codec that reg has for structs, if that reads everything.
func (c documentDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if c.uuid != nil {
		return c
	}
	return decoderOf(reg, tAnyStruct)
}
