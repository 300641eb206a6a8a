package bsoncodec

import (
	"errors"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// contextProbe fails to be encoded and to be decoded, always, and keeps the context that it met. It
// is how the contexts of the driver's options are made, whose fields cannot be set from outside.
type contextProbe struct {
	ec bson.EncodeContext
	dc bson.DecodeContext
}

var (
	tContextProbe = reflect.TypeFor[contextProbe]()

	errProbed = errors.New("bsoncodec: a probe is not a document")
)

func encodeContextProbe(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	if p, ok := val.Interface().(*contextProbe); ok && p != nil {
		p.ec = ec
	}
	return errProbed
}

func decodeContextProbe(dc bson.DecodeContext, _ bson.ValueReader, val reflect.Value) error {
	if val.CanAddr() {
		if p, ok := val.Addr().Interface().(*contextProbe); ok {
			p.dc = dc
		}
	}
	return errProbed
}

var probeRegistry = sync.OnceValue(func() *bson.Registry {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.PointerTo(tContextProbe), bson.ValueEncoderFunc(encodeContextProbe))
	reg.RegisterTypeDecoder(tContextProbe, bson.ValueDecoderFunc(decodeContextProbe))
	return reg
})
