package bsoncodec

import (
	"reflect"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/structcodec"
)

// plans is a type whose codec is the one that has the plans of a registry.
type plans struct{}

// A planned is a registry with the codec that has its plans, or nil. The look-up in the registry takes as long as a few
// fields of a document.
type planned struct {
	reg   *bson.Registry
	codec *structcodec.Codec
}

// recent holds the registries that documents were last encoded or decoded with. Most programs have one or two.
var (
	recent [4]atomic.Pointer[planned]
	oldest atomic.Uint32 // counts what was stored in recent
)

// plansOf returns the codec that has the plans of reg, or nil.
func plansOf(reg *bson.Registry) *structcodec.Codec {
	for i := range recent {
		if p := recent[i].Load(); p != nil && p.reg == reg {
			return p.codec
		}
	}
	p := &planned{reg: reg}
	p.codec, _ = encoderOf(reg, reflect.TypeFor[plans]()).(*structcodec.Codec)
	recent[oldest.Add(1)%uint32(len(recent))].Store(p)
	return p.codec
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
