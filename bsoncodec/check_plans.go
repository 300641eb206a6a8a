package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
)

// CheckPlans returns why values of type t are not encoded and decoded by compiled plans alone with reg, and with the
// options of a client if opts has them: nil if they are. An error names the direction, the fields by their keys, and the
// codec, the method or the option that has the values instead; if there is more than one reason, it is made by
// [errors.Join].
//
//	for _, t := range []reflect.Type{reflect.TypeFor[Order](), reflect.TypeFor[User]()} {
//		if err := bsoncodec.CheckPlans(reg, t); err != nil {
//			log.Print(err)
//		}
//	}
//
// A part that goes through a codec or a method of its own leaves the plan for the rest at work. What the driver encodes or
// decodes as a whole has no plan at all. A type that occurs more than once is named once. The values in an any are not
// known before they are there: their types have reasons of their own.
//
// CheckPlans compiles the plans, so what is registered later for types within t is not obeyed any more. It is an error if
// reg is nil, [bson.ErrNilRegistry], if t is nil, or if opts has more than one Options.
func CheckPlans(reg *bson.Registry, t reflect.Type, opts ...Options) error {
	ec, err := encodeContextOf(reg, opts)
	dc, _ := decodeContextOf(reg, opts) // which has the same errors
	switch {
	case err != nil:
		return err
	case t == nil:
		return errors.New("bsoncodec: CheckPlans: the type is nil")
	}
	c := plansOf(reg)
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
