package bsoncodec

import (
	"fmt"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// nullUUIDCodec is the codec of a UUID type that can be null.
type nullUUIDCodec struct {
	*nullFields
	t reflect.Type
}

// newNullUUIDCodec returns the codec of t, which has the fields.
func newNullUUIDCodec(t reflect.Type) *nullUUIDCodec { return &nullUUIDCodec{nullFieldsOf(t), t} }

// setNull makes val, which is settable, a UUID that is null.
func (c *nullUUIDCodec) setNull(val reflect.Value) {
	clear(val.FieldByIndex(c.octets).Bytes())
	settable(val.Field(c.valid)).SetBool(false)
}

// EncodeValue is the ValueEncoder of UUID types that can be null. A valid zero UUID is not null.
func (c *nullUUIDCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != c.t {
		return bson.ValueEncoderError{Name: "NullUUIDEncodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	if !val.Field(c.valid).Bool() {
		return vw.WriteNull()
	}
	u := val.Field(c.uuid)
	enc := encoderOf(ec.Registry, u.Type())
	if enc, ok := enc.(*uuidCodec); ok {
		return enc.encode(vw, u)
	}
	if !u.CanInterface() { // a codec of the caller may want to
		id := copyOf(val.FieldByIndex(c.octets))
		var octets []byte
		u, octets = newKey(u.Type())
		copy(octets, id[:])
	}
	return enc.EncodeValue(ec, vw, u)
}

// DecodeValue is the ValueDecoder of UUID types that can be null.
func (c *nullUUIDCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != c.t {
		return bson.ValueDecoderError{Name: "NullUUIDDecodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	switch vr.Type() {
	case bson.TypeNull:
		c.setNull(val)
		return vr.ReadNull()
	case bson.TypeUndefined:
		c.setNull(val)
		return vr.ReadUndefined()
	case bson.TypeEmbeddedDocument, 0:
		return c.decodeDocument(dc, vr, val)
	}
	u := settable(val.Field(c.uuid))
	if err := decoderOf(dc.Registry, u.Type()).DecodeValue(dc, vr, u); err != nil {
		return err
	}
	settable(val.Field(c.valid)).SetBool(true)
	return nil
}

// decodeDocument reads a document that the driver wrote for a value without a codec. The keys are
// read in any letter case, as the driver does.
func (c *nullUUIDCodec) decodeDocument(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	dr, err := vr.ReadDocument()
	if err != nil {
		return err
	}
	var uuid, valid bson.RawValue
	empty := true
	for {
		key, elem, err := dr.ReadElement()
		if err == bson.ErrEOD {
			break
		}
		if err != nil {
			return err
		}
		var v bson.RawValue
		if err := driver.Decoder(tRawValue).DecodeValue(dc, elem, reflect.ValueOf(&v).Elem()); err != nil {
			return err
		}
		empty = false
		switch key = strings.ToLower(key); {
		case !c.isWhole():
			return fmt.Errorf("bsoncodec: cannot decode a document into %v: the driver stores nothing of a field that is not exported, "+
				"so that it is lost", c.t)
		case key == c.key:
			uuid = v
		case key == c.validKey:
			valid = v
		default:
			return c.errDocument(fmt.Sprintf("it has the key %q", key))
		}
	}
	isValid, ok := valid.BooleanOK()
	switch {
	case empty:
		return errEmptyDocument(c.t)
	case !ok:
		return c.errDocument("it has no boolean " + c.validKey)
	case uuid.IsZero():
		return c.errDocument("it has no " + c.key)
	case !isValid:
		c.setNull(val)
		return nil
	}
	u := reflect.New(val.Field(c.uuid).Type())
	if err := uuid.UnmarshalWithContext(&dc, u.Interface()); err != nil {
		return err
	}
	val.Field(c.uuid).Set(u.Elem())
	val.Field(c.valid).SetBool(true)
	return nil
}

func (c *nullUUIDCodec) errDocument(reason string) error {
	return fmt.Errorf("bsoncodec: cannot decode a document into %v: %s, and only {%s: …, %s: …} is read, "+
		"which the driver writes without a codec", c.t, reason, c.key, c.validKey)
}

// nullPlan is a nullUUIDCodec with the codec of its UUID.
type nullPlan struct {
	*nullUUIDCodec
	elem uuidPlan
}

// EncoderFor returns a nullPlan if this package has the codec of the UUID.
func (c *nullUUIDCodec) EncoderFor(reg *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if t == c.t {
		if elem, ok := encoderOf(reg, t.Field(c.uuid).Type).(*uuidCodec); ok {
			return nullPlan{c, uuidPlan{elem}}
		}
	}
	return c
}

// DecoderFor returns a nullPlan if this package has the codec of the UUID.
func (c *nullUUIDCodec) DecoderFor(reg *bson.Registry, t reflect.Type) bson.ValueDecoder {
	if t == c.t {
		if elem, ok := decoderOf(reg, t.Field(c.uuid).Type).(*uuidCodec); ok {
			return nullPlan{c, uuidPlan{elem}}
		}
	}
	return c
}

// EncoderFor returns c.
func (c nullPlan) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return c }

// DecoderFor returns c.
func (c nullPlan) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder { return c }

// EncoderIn returns c: no option changes how a UUID or null is written.
func (c nullPlan) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// DecoderIn returns c: no option changes how a UUID or null is read.
func (c nullPlan) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }

// AppendValue appends a UUID, or nothing for null.
func (c nullPlan) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if !v.Field(c.valid).Bool() {
		return bson.TypeNull, dst, nil
	}
	return c.elem.AppendValue(dst, v.Field(c.uuid))
}

// ReadValue sets v to a UUID, or to an invalid one for null.
func (c nullPlan) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if t == bson.TypeNull {
		c.setNull(v)
		return nil
	}
	if err := c.elem.ReadValue(t, data, v.Field(c.uuid)); err != nil {
		return err
	}
	settable(v.Field(c.valid)).SetBool(true)
	return nil
}

// ReadsAgain says that reading a value twice has the result of reading it once.
func (nullPlan) ReadsAgain() {}
