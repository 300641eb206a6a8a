package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The driver's codec of structs keeps the fields of each struct type. The fields depend on the
// options of the client, such as UseJSONStructTags, but the driver keeps them by type only, so the
// first use of a registry decides for all later ones. The codecs here have one codec of the driver
// for each set of options.

// structEncoder is the ValueEncoder of structs.
type structEncoder struct {
	plain bson.ValueEncoder // without options
	other memo[bson.EncodeContext, bson.ValueEncoder]
	rules *typeRules
}

// EncodeValue encodes a struct with the driver's codec for the options of ec.
func (c *structEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if val.Kind() == reflect.Struct {
		v := c.rules.of(val.Type(), false)
		if v.refused {
			if err := v.encodeError(ec, vw); err != nil {
				return err
			}
		}
		if !v.settled.Load() {
			settleFields(ec.Registry, val.Type(), 0)
			v.settled.Store(true)
		}
	}
	options := ec
	options.Registry = nil
	enc := c.plain
	if options != (bson.EncodeContext{}) {
		enc = c.other.get(options)
	}
	if err := enc.EncodeValue(ec, vw, val); err != nil {
		return withPath(ec, val, err)
	}
	return nil
}

// EncodeError returns err, an error of encoding val by a plan, as EncodeValue does.
func (c *structEncoder) EncodeError(ec bson.EncodeContext, val reflect.Value, err error) error {
	return withPath(ec, val, err)
}

// EncodesStructsAsTheDriver makes a structEncoder a [driver.StructEncoder].
func (*structEncoder) EncodesStructsAsTheDriver() {}

// Refuses reports whether EncodeValue returns an error for a t, in some place at least.
func (c *structEncoder) Refuses(t reflect.Type) bool { return c.rules.of(t, false).refused }

// structDecoder is the ValueDecoder of structs.
type structDecoder struct {
	plain bson.ValueDecoder // without options
	other memo[bson.DecodeContext, bson.ValueDecoder]
	rules *typeRules
}

// DecodeValue decodes a struct with the driver's codec for the options of dc.
func (c *structDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if val.Kind() == reflect.Struct {
		if v := c.rules.of(val.Type(), true); v.refused {
			if err := v.decodeError(dc, vr); err != nil {
				return err
			}
		}
	}
	options := dc
	options.Registry = nil
	dec := c.plain
	if options != (bson.DecodeContext{}) {
		dec = c.other.get(options)
	}
	return ofDocument(dec, dc, vr, val)
}

// DecodeError returns err, an error of decoding a document by a plan, as DecodeValue does.
func (c *structDecoder) DecodeError(err error) error { return withWayOut(err) }

// DecodesStructsAsTheDriver makes a structDecoder a [driver.StructDecoder].
func (*structDecoder) DecodesStructsAsTheDriver() {}

// Refuses reports whether DecodeValue returns an error for a t, in some place at least.
func (c *structDecoder) Refuses(t reflect.Type) bool { return c.rules.of(t, true).refused }
