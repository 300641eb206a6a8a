package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/structcodec"
)

// A documentReader is a decoder of package structcodec.
type documentReader interface {
	ReadDocument(doc []byte, v any) (planned bool, err error)
}

// readPlanned decodes data into v by a plan, if reg has one.
func readPlanned(reg *bson.Registry, data []byte, v any) (planned bool, err error) {
	t := reflect.TypeOf(v)
	if t == nil {
		return false, nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == tAny:
		if !sameAtTheTop(reg) {
			return false, nil
		}
		t = tD // an any receives a whole document as an embedded one
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		t = t.Elem()
	case t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t != tD:
		return false, nil
	}
	dec, err := reg.LookupDecoder(t)
	if err != nil {
		return false, nil
	}
	r, ok := dec.(documentReader)
	if !ok {
		return false, nil
	}
	return r.ReadDocument(data, v)
}

// plans is a type whose encoder is the codec that has the plans of a registry.
type plans struct{}

// encodePlans returns the codec that may have a plan for v in reg, or nil.
func encodePlans(reg *bson.Registry, v any) *structcodec.Codec {
	t := reflect.TypeOf(v)
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct:
	case t.Kind() == reflect.Map, t == tD:
		t = reflect.TypeFor[plans]()
	default:
		return nil
	}
	enc, err := reg.LookupEncoder(t)
	if err != nil {
		return nil
	}
	c, _ := enc.(*structcodec.Codec)
	return c
}
