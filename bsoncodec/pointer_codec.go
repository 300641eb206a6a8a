package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// pointerCodec is the codec of pointers to one UUID type: the driver's, without its look-up of the element's codec.
type pointerCodec struct {
	t    reflect.Type // the pointer's
	elem *uuidCodec
}

// EncodeValue is the ValueEncoder of pointers to UUID types. A nil pointer is null.
func (c *pointerCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != c.t {
		return bson.ValueEncoderError{Name: "UUIDPointerEncodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	if val.IsNil() {
		return vw.WriteNull()
	}
	return c.elem.EncodeValue(ec, vw, val.Elem())
}

// DecodeValue is the ValueDecoder of pointers to UUID types. Null and undefined give a nil pointer; a pointer that is
// not nil keeps its target.
func (c *pointerCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != c.t {
		return bson.ValueDecoderError{Name: "UUIDPointerDecodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	switch vr.Type() {
	case bson.TypeNull:
		val.SetZero()
		return vr.ReadNull()
	case bson.TypeUndefined:
		val.SetZero()
		return vr.ReadUndefined()
	}
	if val.IsNil() {
		val.Set(reflect.New(c.elem.t))
	}
	return c.elem.DecodeValue(dc, vr, val.Elem())
}
