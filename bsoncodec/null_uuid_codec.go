package bsoncodec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// RegisterNullUUIDType makes t a UUID that can be null: a value of this type is encoded as its UUID
// if it is valid, and as null if it is not. It must be a struct of two fields, exported or not, besides
// those named _ and those tagged bson:"-": a UUID of a type that [RegistryBuilder.RegisterUUIDType]
// takes, and a bool that is true if the UUID is valid, as in github.com/gofrs/uuid or in
// [database/sql.Null] of a UUID type; another type is an error of Build. The type of the UUID is
// registered as RegisterUUIDType does. [RegisterUUIDFunc] registers other types.
//
// A document {uuid: …, valid: …}, which the driver writes if no codec is registered and both fields are
// exported, is read too. Its UUID is read as any other: [RegistryBuilder.AlsoDecodeSubtype0] reads subtype 0.
//
// [uuid.NullUUID] is registered already. A codec for t that a function of With registers takes
// precedence.
func (b *RegistryBuilder) RegisterNullUUIDType(t reflect.Type) *RegistryBuilder {
	if !slices.Contains(b.nulls, t) {
		b.nulls = append(b.nulls, t)
	}
	if f := nullFieldsOf(t); f != nil {
		b.RegisterUUIDType(t.Field(f.uuid).Type)
	}
	return b
}

// nullFields are the fields of a struct that is a UUID that can be null.
type nullFields struct {
	uuid, valid int   // the indexes of the fields
	octets      []int // of the octets
	// In a document that the driver wrote, in lower case, "" for a field that it left out.
	key, validKey string
}

// nullFieldsOf returns the fields of t, nil if it is not a struct of a UUID and a bool.
func nullFieldsOf(t reflect.Type) *nullFields {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := fieldsOf(t, false)
	if len(fields) != 2 {
		return nil
	}
	for i, u := range fields {
		if v := fields[1-i]; v.Type.Kind() == reflect.Bool && canBeUUID(u.Type) {
			inner, _ := uuidField(u.Type)
			return &nullFields{uuid: u.Index[0], valid: v.Index[0], octets: append(u.Index, inner...), key: keyOf(u), validKey: keyOf(v)}
		}
	}
	return nil
}

// canBeNull reports whether t can be registered as a UUID that can be null.
func canBeNull(t reflect.Type) bool {
	f := nullFieldsOf(t)
	return f != nil && !hasOwnRepresentation(t.Field(f.uuid).Type)
}

// nullUUIDCodec is the codec of a UUID type that can be null.
type nullUUIDCodec struct {
	*nullFields
	t reflect.Type
}

// newNullUUIDCodec returns the codec of t, which has the fields.
func newNullUUIDCodec(t reflect.Type) *nullUUIDCodec { return &nullUUIDCodec{nullFieldsOf(t), t} }

// settable returns v, a field of an addressable struct, so that it can be set if it is not exported too.
func settable(v reflect.Value) reflect.Value {
	if v.CanSet() {
		return v
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// setNull makes val, which is settable, a UUID that is null.
func (c *nullUUIDCodec) setNull(val reflect.Value) {
	clear(val.FieldByIndex(c.octets).Bytes())
	settable(val.Field(c.valid)).SetBool(false)
}

// isWhole reports whether the documents that the driver writes hold both fields.
func (c *nullFields) isWhole() bool { return c.key != "" && c.validKey != "" }

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
