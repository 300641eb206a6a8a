// Package ownfilters marks the registries of collections whose filters are rewritten before the
// driver encodes them. A wrapper of the driver's collection of such a collection would lose that.
package ownfilters

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// mark is registered as the encoder of its own type.
type mark struct{}

func (mark) EncodeValue(_ bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	return bson.ValueEncoderError{Name: "ownfilters", Received: val}
}

// Mark marks reg.
func Mark(reg *bson.Registry) { reg.RegisterTypeEncoder(reflect.TypeFor[mark](), mark{}) }

// Marked reports whether reg is marked.
func Marked(reg *bson.Registry) bool {
	enc, err := reg.LookupEncoder(reflect.TypeFor[mark]())
	_, ok := enc.(mark)
	return err == nil && ok
}
