package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// nullUUIDCodec is the codec of uuid.NullUUID: null where it is not valid, the UUID where it is.
type nullUUIDCodec struct {
	elem *uuidCodec
}

// The fields of uuid.NullUUID.
const (
	nullUUIDValue = 0
	nullUUIDValid = 1
)

// EncodeValue is the ValueEncoder of uuid.NullUUID.
func (c *nullUUIDCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != tNullUUID {
		return bson.ValueEncoderError{Name: "NullUUIDEncodeValue", Types: []reflect.Type{tNullUUID}, Received: val}
	}
	if !val.Field(nullUUIDValid).Bool() {
		return vw.WriteNull()
	}
	return c.elem.EncodeValue(ec, vw, val.Field(nullUUIDValue))
}

// DecodeValue is the ValueDecoder of uuid.NullUUID.
func (c *nullUUIDCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != tNullUUID {
		return bson.ValueDecoderError{Name: "NullUUIDDecodeValue", Types: []reflect.Type{tNullUUID}, Received: val}
	}
	vrType := vr.Type()
	if err := c.elem.DecodeValue(dc, vr, val.Field(nullUUIDValue)); err != nil {
		return err
	}
	val.Field(nullUUIDValid).SetBool(vrType != bson.TypeNull && vrType != bson.TypeUndefined)
	return nil
}
