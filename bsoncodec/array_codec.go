package bsoncodec

import (
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// arrayCodec stands before the driver's codec for arrays and decides about types of kind [16]byte.
// The driver takes marshaling methods, hooks and type codecs first, so that only types without any
// of them arrive here.
type arrayCodec struct {
	*conversion
	rules        *typeRules
	encoder      bson.ValueEncoder // the driver's
	decoder      bson.ValueDecoder
	implicitType reflect.Type // what a UUID in an any becomes
	known        sync.Map     // of reflect.Type to *octetsType
}

// octetsType says how an arrayCodec treats one type of kind [16]byte. If there is neither a codec nor an
// error, the driver's codec has the type.
type octetsType struct {
	uuid      *uuidCodec
	encodeErr error
	decodeErr error
}

// octetsType returns what c does with the type t.
func (c *arrayCodec) octetsType(t reflect.Type) *octetsType {
	if known, ok := c.known.Load(t); ok {
		return known.(*octetsType)
	}
	o := new(octetsType)
	if !c.rules.bytes[t] {
		o.encodeErr, o.decodeErr = errV1Marshaler(t), errV1Unmarshaler(t)
		if o.encodeErr == nil && c.rules.unregistered != asBytes {
			o.encodeErr = errPointerReceiver(t)
		}
		switch c.rules.unregistered {
		case asUUID:
			o.uuid = newUUIDCodec(c.conversion, t)
		case refuse:
			if o.encodeErr == nil {
				o.encodeErr = errNotRegistered(t, false)
			}
			if o.decodeErr == nil {
				o.decodeErr = errNotRegistered(t, true)
			}
		}
	}
	kept, _ := c.known.LoadOrStore(t, o)
	return kept.(*octetsType)
}

// EncodeValue is the ValueEncoder of arrays.
func (c *arrayCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || !isOctets(val.Type()) {
		if val.IsValid() {
			if err := errV1Type(val.Type(), false); err != nil {
				return err
			}
		}
		return c.encoder.EncodeValue(ec, vw, val)
	}
	switch o := c.octetsType(val.Type()); {
	case o.encodeErr != nil:
		return o.encodeErr
	case o.uuid != nil:
		return o.uuid.EncodeValue(ec, vw, val)
	default:
		return c.encoder.EncodeValue(ec, vw, val)
	}
}

// DecodeValue is the ValueDecoder of arrays.
func (c *arrayCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	switch {
	case !val.IsValid():
		return c.decoder.DecodeValue(dc, vr, val)
	case val.Kind() == reflect.Array && val.Type().Elem() == tAny && val.CanSet() && vr.Type() == bson.TypeArray:
		return decodeAnyArray(c.decoder, c.implicitType, dc, vr, val)
	case !isOctets(val.Type()):
		if err := errV1Type(val.Type(), true); err != nil {
			return err
		}
		return c.decoder.DecodeValue(dc, vr, val)
	}
	switch o := c.octetsType(val.Type()); {
	case o.decodeErr != nil:
		return o.decodeErr
	case o.uuid != nil:
		return o.uuid.DecodeValue(dc, vr, val)
	default:
		return c.decoder.DecodeValue(dc, vr, val)
	}
}

// EncoderFor returns the codec of arrays of type t.
func (c *arrayCodec) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if !isOctets(t) {
		if v1Name(t) != "" {
			return c
		}
		return c.encoder
	}
	switch o := c.octetsType(t); {
	case o.encodeErr != nil:
		return c
	case o.uuid != nil:
		return o.uuid
	}
	return c.encoder
}

// DecoderFor returns the codec of arrays of type t.
func (c *arrayCodec) DecoderFor(_ *bson.Registry, t reflect.Type) bson.ValueDecoder {
	if !isOctets(t) {
		if v1Name(t) != "" {
			return c
		}
		return c.decoder
	}
	switch o := c.octetsType(t); {
	case o.decodeErr != nil:
		return c
	case o.uuid != nil:
		return o.uuid
	}
	return c.decoder
}
