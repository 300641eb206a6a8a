package bsoncodec

import (
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// contextProbe keeps the context that it is encoded or decoded in, and reads and writes nothing. It is how the contexts of
// the driver's options are made, whose fields cannot be set from outside.
type contextProbe struct {
	ec bson.EncodeContext
	dc bson.DecodeContext
}

var tContextProbe = reflect.TypeFor[contextProbe]()

func encodeContextProbe(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	val.Interface().(*contextProbe).ec = ec
	return nil
}

func decodeContextProbe(dc bson.DecodeContext, _ bson.ValueReader, val reflect.Value) error {
	val.Addr().Interface().(*contextProbe).dc = dc
	return nil
}

var probeRegistry = sync.OnceValue(func() *bson.Registry {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.PointerTo(tContextProbe), bson.ValueEncoderFunc(encodeContextProbe))
	reg.RegisterTypeDecoder(tContextProbe, bson.ValueDecoderFunc(decodeContextProbe))
	return reg
})
