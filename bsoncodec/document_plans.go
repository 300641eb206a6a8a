package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// plansOf returns the codec that has the plans of reg, or nil.
func plansOf(reg *bson.Registry) *structcodec.Codec {
	n := built.Of(reg)
	if n == nil {
		return nil
	}
	return n.Plans
}

// readPlanned decodes data into v by a plan, if the registry reg has one. A nil dc has no options.
func readPlanned(reg *bson.Registry, dc *bson.DecodeContext, data []byte, v any) (planned bool, err error) {
	t := reflect.TypeOf(v)
	if t == nil {
		return false, nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Pointer:
		c := plansOf(reg)
		if c == nil {
			return false, nil
		}
		return c.ReadDocument(dc, data, v)
	case t == tAny:
		if !sameAtTheTop(reg) {
			return false, nil
		}
		t = tD // an any receives a whole document as an embedded one
	case t.Kind() != reflect.Map && t != tD:
		return false, nil
	}
	r, ok := decoderOf(reg, t).(*structcodec.DocumentDecoder)
	if !ok {
		return false, nil
	}
	if dc == nil { // r can be that of another registry
		dc = &bson.DecodeContext{Registry: reg}
	}
	return r.ReadDocument(dc, data, v)
}
