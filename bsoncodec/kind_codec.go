package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// kindEncoder stands before the driver's encoder for a kind of which driver version 1 has types that
// version 2 writes as another value. For slices it also adds the path to the errors of the elements.
type kindEncoder struct{ driver bson.ValueEncoder }

// The encoders of a kind are found by types that have no encoder of their own.
type (
	anyInt64  int64
	anyString string
)

// registerKinds is called before the functions of With, so that what these register for a kind takes
// the place of this package's.
func registerKinds(reg *bson.Registry) {
	for _, probe := range []reflect.Type{reflect.TypeFor[anyInt64](), reflect.TypeFor[anyString](), reflect.TypeFor[kindSlice]()} {
		if enc, err := reg.LookupEncoder(probe); err == nil && driver.IsOwnEncoder(enc, probe) {
			reg.RegisterKindEncoder(probe.Kind(), &kindEncoder{enc})
		}
	}
}

type kindSlice []struct{}

// EncodeValue is the ValueEncoder of a kind.
func (c *kindEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if val.IsValid() {
		if err := errV1Type(val.Type(), false); err != nil {
			return err
		}
	}
	if err := c.driver.EncodeValue(ec, vw, val); err != nil {
		return withPath(ec, val, err)
	}
	return nil
}

// EncoderFor returns c for a type of driver version 1, and the driver's encoder for any other.
func (c *kindEncoder) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if errV1Type(t, false) != nil {
		return c
	}
	return c.driver
}

// Driver makes a kindEncoder a [driver.KindEncoder].
func (c *kindEncoder) Driver() bson.ValueEncoder { return c.driver }
