package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// kindEncoder stands before the driver's encoder of a kind. It refuses the types of driver version 1 of
// that kind, which version 2 writes as another value.
//
// After the first value of any other type, it registers the driver's encoder for the type, so that it
// costs nothing for later values. The exception is [bson.D]: there it also adds the path to the errors of
// elements.
type kindEncoder struct{ driver bson.ValueEncoder }

// EncodeValue is the ValueEncoder of a kind.
func (c *kindEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if val.IsValid() {
		t := val.Type()
		if t == tD {
			if err := c.driver.EncodeValue(ec, vw, val); err != nil {
				return withPath(ec, val, err)
			}
			return nil
		}
		if err := errV1Type(t, false); err != nil {
			return err
		}
		if ec.Registry != nil { // the driver's encoders of int64 and string need none
			settle(ec.Registry, t)
		}
	}
	return c.driver.EncodeValue(ec, vw, val)
}

// EncodeError returns err, an error of encoding val by a plan, as EncodeValue does.
func (*kindEncoder) EncodeError(ec bson.EncodeContext, val reflect.Value, err error) error {
	return withPath(ec, val, err)
}

// settle gives values of type t the driver's encoder, if reg has a kindEncoder for them that does not refuse them.
func settle(reg *bson.Registry, t reflect.Type) {
	if c, ok := encoderOf(reg, t).(*kindEncoder); ok && t != tD && v1Name(t) == "" {
		reg.RegisterTypeEncoder(t, c.driver)
	}
}

// settleFields settles the types of the fields of the struct type t, before the driver's codec keeps their encoders.
func settleFields(reg *bson.Registry, t reflect.Type, depth int) {
	for i := range t.NumField() {
		f := t.Field(i)
		ft := f.Type
		switch ft.Kind() {
		case reflect.Int64, reflect.String, reflect.Slice:
			if f.IsExported() {
				settle(reg, ft)
			}
			continue
		case reflect.Pointer:
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && depth < maxPointers && (elements.TagOf(f, false).Inline || elements.TagOf(f, true).Inline) {
			settleFields(reg, ft, depth+1)
		}
	}
}

// EncoderFor returns c for a type of driver version 1, and the driver's encoder for any other.
func (c *kindEncoder) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if v1Name(t) != "" {
		return c
	}
	return c.driver
}

// Driver makes a kindEncoder a [driver.KindEncoder].
func (c *kindEncoder) Driver() bson.ValueEncoder { return c.driver }
