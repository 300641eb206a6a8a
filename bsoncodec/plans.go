package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// The codecs of this package take part in plans.
var (
	_ ValueCodec = uuidPlan{}
	_ ValueCodec = zeroAsNullPlan{}
	_ ValueCodec = nullPlan{}
	_ ValueCodec = (*sliceEncoder)(nil)
	_ ValueCodec = (*sliceDecoder)(nil)
	_ ValueCodec = (*binaryValueDecoder)(nil)

	_ structcodec.ContextEncoder = uuidPlan{}
	_ structcodec.ContextEncoder = zeroAsNullPlan{}
	_ structcodec.ContextEncoder = nullPlan{}
	_ structcodec.ContextEncoder = (*sliceEncoder)(nil)
	_ structcodec.ContextDecoder = uuidPlan{}
	_ structcodec.ContextDecoder = nullPlan{}
	_ structcodec.ContextDecoder = (*sliceDecoder)(nil)
	_ structcodec.ContextDecoder = (*binaryValueDecoder)(nil)
)

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
		c := built.PlansOf(reg)
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

// sameAtTheTop reports whether the type map of reg has one type for a whole document, which has no
// BSON type, and for an embedded document. The driver's reader from memory is made from a RawValue,
// which can only be the latter.
func sameAtTheTop(reg *bson.Registry) bool {
	top, errTop := reg.LookupTypeMapEntry(0)
	embedded, errEmbedded := reg.LookupTypeMapEntry(bson.TypeEmbeddedDocument)
	return errTop == nil && errEmbedded == nil && top == embedded
}

// marshalPlanned returns v as a document that c encodes, if it can.
func marshalPlanned(c *structcodec.Codec, ec *bson.EncodeContext, v any) (doc []byte, planned bool, err error) {
	buf := documents.Get().(*[]byte)
	data, planned, err := c.AppendDocument(ec, (*buf)[:0], v)
	if planned && err == nil {
		doc = make([]byte, len(data)) // a little faster than bytes.Clone
		copy(doc, data)
	}
	if cap(data) <= maxPooled {
		*buf = data
		documents.Put(buf)
	}
	return doc, planned, err
}

// marshalPlannedValue returns v as a value that c encodes, if it can.
func marshalPlannedValue(c *structcodec.Codec, ec bson.EncodeContext, v any) (rv bson.RawValue, planned bool, err error) {
	buf := documents.Get().(*[]byte)
	t, value, planned, err := c.AppendValue(&ec, (*buf)[:0], v)
	switch {
	case planned && err != nil:
		err = withPath(ec, reflect.ValueOf(v), err)
	case planned:
		rv = bson.RawValue{Type: t, Value: append([]byte{}, value...)}
	}
	if cap(value) <= maxPooled {
		*buf = value
		documents.Put(buf)
	}
	return rv, planned, err
}

// documents holds the memory of documents that were encoded.
var documents = sync.Pool{New: func() any { return new([]byte) }}

// CheckPlans returns nil if compiled plans alone encode and decode values of type t with reg, and with the options of a
// client if opts has them. Otherwise it returns the reasons, joined by [errors.Join]. Each names the direction, the field
// by its keys, and the codec, the method or the option because of which the field has no plan.
//
//	for _, t := range []reflect.Type{reflect.TypeFor[Order](), reflect.TypeFor[User]()} {
//		if err := bsoncodec.CheckPlans(reg, t); err != nil {
//			log.Print(err)
//		}
//	}
//
// If a field goes through a codec or a method of its own, a plan still has the rest of the struct. If the driver encodes or
// decodes a struct, no field of it has a plan. A type that occurs more than once is named once. The types of the values in
// an any are not known: check them, too.
//
// CheckPlans compiles the plans, so that a codec that is registered later for a type in t is not obeyed. It is an error if
// reg is nil, which wraps [bson.ErrNilRegistry], if t is nil, or if opts has more than one Options.
func CheckPlans(reg *bson.Registry, t reflect.Type, opts ...Options) error {
	ec, err := encodeContextOf(reg, opts)
	dc, _ := decodeContextOf(reg, opts) // which has the same errors
	switch {
	case err != nil:
		return err
	case t == nil:
		return errors.New("bsoncodec: CheckPlans: the type is nil")
	}
	c := built.PlansOf(reg)
	switch {
	case c == nil && built.Of(reg) != nil:
		return errors.New("bsoncodec: the registry has no plans: it was built with WithoutPlans, or its codecs of structs are not " +
			"those of this package")
	case c == nil:
		return errors.New("bsoncodec: the registry has no plans: make it with NewRegistry, with a RegistryBuilder or with clientopt")
	}
	var all []error
	for _, r := range c.WhyNotEncoded(ec, t) {
		all = append(all, errors.New("bsoncodec: encoding "+partName(t, r.Path, r.Type)+" "+r.Text))
	}
	for _, r := range c.WhyNotDecoded(dc, t) {
		all = append(all, errors.New("bsoncodec: decoding "+partName(t, r.Path, r.Type)+" "+r.Text))
	}
	return errors.Join(all...)
}

// partName returns the name of the part of a t that has the path and the type part.
func partName(t reflect.Type, path string, part reflect.Type) string {
	switch {
	case path != "":
		return fmt.Sprintf("%v: the field %s (%v)", t, path, part)
	case part != t:
		return fmt.Sprintf("%v: an element (%v)", t, part)
	}
	return fmt.Sprintf("%v: it", t)
}
