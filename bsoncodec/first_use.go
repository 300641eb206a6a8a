package bsoncodec

import (
	"reflect"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// The codecs of pointers, of slices and of any work without the registry's codecs of the values
// within. They do so only if the registry still has the codecs of this package and of the driver
// for those when it is first used; if the caller registered others since Build, they obey these.
// What they find then they keep, as the driver's own codecs do.

// onFirstUse keeps the first value that it is given.
type onFirstUse[V any] struct{ kept atomic.Pointer[V] }

// get returns the kept value, which is what choose returns on the first call. It is safe for
// concurrent use.
func (o *onFirstUse[V]) get(choose func() V) V {
	if v := o.kept.Load(); v != nil {
		return *v
	}
	v := choose()
	o.kept.CompareAndSwap(nil, &v)
	return *o.kept.Load()
}

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
