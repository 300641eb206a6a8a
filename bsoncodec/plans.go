package bsoncodec

import (
	"encoding/binary"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
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

// Refuses reports whether EncodeValue returns an error for a t, in some place at least.
func (c *structEncoder) Refuses(t reflect.Type) bool { return c.rules.of(t, false).refused }

// Refuses reports whether DecodeValue returns an error for a t, in some place at least.
func (c *structDecoder) Refuses(t reflect.Type) bool { return c.rules.of(t, true).refused }

// EncoderIn returns c: no option changes how a UUID is written.
func (c uuidPlan) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// DecoderIn returns c: no option changes how a UUID is read.
func (c uuidPlan) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }

// EncoderIn returns c: no option changes how a UUID is written.
func (c zeroAsNullPlan) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// EncoderIn returns c: no option changes how a UUID or null is written.
func (c nullPlan) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// DecoderIn returns c: no option changes how a UUID or null is read.
func (c nullPlan) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }

// EncoderIn returns c, or what leaves slices that are nil to EncodeValue if they may not be null in ec.
func (c *sliceEncoder) EncoderIn(ec bson.EncodeContext) structcodec.ValueCodec {
	ec.Registry = nil
	if o, ok := optionsByEncodeContext()[ec]; !ok || o.NilSliceAsEmpty {
		return nilSlicePlan{c}
	}
	return c
}

// A nilSlicePlan is a sliceEncoder for contexts in which a slice that is nil can be an empty array.
type nilSlicePlan struct{ *sliceEncoder }

// AppendValue appends an array of UUIDs, unless it is nil.
func (c nilSlicePlan) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return 0, dst, ErrNotPlain
	}
	return c.sliceEncoder.AppendValue(dst, v)
}

// DecoderIn returns c: what is not plain is decoded by DecodeValue.
func (c *sliceDecoder) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }

// DecoderIn returns c, or what decodes binary values into slices if dc says so.
func (c *binaryValueDecoder) DecoderIn(dc bson.DecodeContext) structcodec.ValueCodec {
	if c.asSlice(dc) {
		return binarySlicePlan{c}
	}
	return c
}

// A binarySlicePlan is a binaryValueDecoder for contexts with the option BinaryAsSlice.
type binarySlicePlan struct{ *binaryValueDecoder }

// ReadValue sets v to what an any receives for a binary value.
func (c binarySlicePlan) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	return setBinaryValue(v, t, data, c.ReadAny)
}

// ReadAny returns what an any receives for a binary value.
func (c binarySlicePlan) ReadAny(t bson.Type, data []byte) (any, error) {
	if t == bson.TypeBinary && data[4] == bson.TypeBinaryGeneric {
		if _, ok := c.isImplicit(data[4], data[5:]); !ok {
			return append(make([]byte, 0, len(data)-5), data[5:]...), nil
		}
	}
	return c.binaryValueDecoder.ReadAny(t, data)
}

// setBinaryValue sets v to what read returns for a binary value.
func setBinaryValue(v reflect.Value, t bson.Type, data []byte, read func(bson.Type, []byte) (any, error)) error {
	if v.Type() != tBinaryValue {
		return ErrNotPlain
	}
	x, err := read(t, data)
	if err == nil {
		*v.Addr().Interface().(*binaryValue) = x
	}
	return err
}

// noEncoder and noDecoder are embedded by codecs for one direction.
type (
	noEncoder struct{}
	noDecoder struct{}
)

// AppendValue reports [ErrNotPlain].
func (noEncoder) AppendValue(dst []byte, _ reflect.Value) (bson.Type, []byte, error) {
	return 0, dst, ErrNotPlain
}

// EncoderFor returns nil.
func (noEncoder) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return nil }

// ReadValue reports [ErrNotPlain].
func (noDecoder) ReadValue(bson.Type, []byte, reflect.Value) error { return ErrNotPlain }

// DecoderFor returns nil.
func (noDecoder) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder { return nil }

// A uuidPlan is a uuidCodec for the values of its type.
type uuidPlan struct{ *uuidCodec }

// A zeroAsNullPlan is a uuidPlan that writes the zero UUID as null.
type zeroAsNullPlan struct{ uuidPlan }

// EncoderFor returns the plan of values of type t, or c.
func (c *uuidCodec) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	switch {
	case t != c.t:
		return c
	case c.zeroAsNull:
		return zeroAsNullPlan{uuidPlan{c}}
	}
	return uuidPlan{c}
}

// DecoderFor returns the plan of values of type t, or c.
func (c *uuidCodec) DecoderFor(_ *bson.Registry, t reflect.Type) bson.ValueDecoder {
	if t != c.t {
		return c
	}
	return uuidPlan{c}
}

// EncoderFor returns c.
func (c uuidPlan) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return c }

// DecoderFor returns c.
func (c uuidPlan) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder { return c }

// EncoderFor returns c.
func (c zeroAsNullPlan) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return c }

// AppendValue appends a UUID, or nothing for null.
func (c zeroAsNullPlan) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if c.octets(v).IsZero() {
		return bson.TypeNull, dst, nil
	}
	return c.uuidPlan.AppendValue(dst, v)
}

// AppendValue appends a UUID, a zero one too.
func (c uuidPlan) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if c.asString || c.rep == uuidrep.Unspecified {
		return 0, dst, ErrNotPlain
	}
	v = c.octets(v)
	var u [16]byte
	switch {
	case v.CanAddr():
		u = [16]byte(v.Bytes())
	case c.native && v.CanInterface():
		u = v.Interface().(uuid.UUID)
	default:
		u = copyOf(v)
	}
	if c.permutes() {
		permute(u[:], u[:], c.rep)
	}
	dst = append(dst, 16, 0, 0, 0, c.subtype)
	return bson.TypeBinary, append(dst, u[:]...), nil
}

// ReadValue sets v to the UUID in a binary value.
func (c uuidPlan) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if t != bson.TypeBinary || len(data) != 4+1+16 {
		if t != bson.TypeNull {
			return ErrNotPlain
		}
		clear(c.octets(v).Bytes())
		return nil
	}
	rep := c.typed[data[4]]
	if rep == uuidrep.Unspecified {
		return ErrNotPlain
	}
	permute(c.octets(v).Bytes()[:16], data[5:], rep)
	return nil
}

// ReadsAgain says that reading a value twice has the result of reading it once.
func (uuidPlan) ReadsAgain() {}

// ReadsAgain says that reading a value twice has the result of reading it once.
func (nullPlan) ReadsAgain() {}

// ReadsAgain says that reading a value twice has the result of reading it once.
func (*sliceDecoder) ReadsAgain() {}

// EncoderFor returns the codec that reg has for pointers.
func (pointerCodec) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	return encoderOf(reg, tAnyPointer)
}

// DecoderFor returns the codec that reg has for pointers.
func (pointerCodec) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	return decoderOf(reg, tAnyPointer)
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

// EncoderFor returns c, or another codec if reg has one for slices or for the UUIDs.
func (c *sliceEncoder) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	if other := otherEncoder(reg, tAnySlice, c.elem.t, c.elem); other != nil {
		return other
	}
	if !c.binary() {
		return c.driver
	}
	return c
}

// AppendValue appends an array of UUIDs, or nothing for null.
func (c *sliceEncoder) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	switch {
	case v.Type() != c.t:
		return 0, dst, ErrNotPlain
	case v.IsNil():
		return bson.TypeNull, dst, nil
	}
	return bson.TypeArray, c.appendArray(dst, v), nil
}

// DecoderFor returns c, or another codec if reg has one for slices or for the UUIDs.
func (c *sliceDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if other := otherDecoder(reg, tAnySlice, c.elem.t, c.elem); other != nil {
		return other
	}
	return c
}

// ReadValue sets v to the UUIDs of an array.
func (c *sliceDecoder) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if v.Type() != c.t || t != bson.TypeArray {
		return ErrNotPlain
	}
	n, plain := c.count(data)
	if !plain {
		return ErrNotPlain
	}
	c.setElements(data, n, v)
	return nil
}

// DecoderFor returns the driver's decoder, unless reg has another one for slices. The two differ for a target that has
// elements only, and plans leave such targets to c.
func (c *anySliceDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if !driver.HasOwnDecoder(reg, tAnySlice) {
		return c
	}
	return c.driver
}

// DecoderFor returns c, or a decoder that is not a ValueCodec if decoders of the caller decide about binary values.
func (c *binaryValueDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if d := c.decoders(bson.DecodeContext{Registry: reg}); d.binary || d.uuid != nil {
		return bson.ValueDecoderFunc(c.DecodeValue)
	}
	return c
}

// ReadValue sets v to what an any receives for a binary value.
func (c *binaryValueDecoder) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	return setBinaryValue(v, t, data, c.ReadAny)
}

// ReadAny returns what an any receives for a binary value.
func (c *binaryValueDecoder) ReadAny(t bson.Type, data []byte) (any, error) {
	if t != bson.TypeBinary || data[4] == bson.TypeBinaryBinaryOld {
		return nil, ErrNotPlain
	}
	subtype, octets := data[4], data[5:]
	if rep, ok := c.isImplicit(subtype, octets); ok {
		return c.implicitUUID(rep, octets)
	}
	return bson.Binary{Subtype: subtype, Data: append(make([]byte, 0, len(octets)), octets...)}, nil
}

// EncoderFor returns the codec of arrays of type t.
func (c *arrayCodec) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if !isOctets(t) {
		if v1Name(t) != "" {
			return c
		}
		return c.encoder
	}
	switch o := c.octetsType(t); {
	case o.encodeErr != nil:
		return c
	case o.uuid != nil:
		return o.uuid
	}
	return c.encoder
}

// DecoderFor returns the codec of arrays of type t.
func (c *arrayCodec) DecoderFor(_ *bson.Registry, t reflect.Type) bson.ValueDecoder {
	if !isOctets(t) {
		if v1Name(t) != "" {
			return c
		}
		return c.decoder
	}
	switch o := c.octetsType(t); {
	case o.decodeErr != nil:
		return c
	case o.uuid != nil:
		return o.uuid
	}
	return c.decoder
}

// EncoderFor returns the codec of maps of type t.
func (c *mapCodec) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if t.Kind() != reflect.Map {
		return c
	}
	if k := c.keyType(t.Key()); k != nil && (k.encodeText || k.encodeErr != nil) {
		return c
	}
	return c.encoder
}

// DecoderFor returns the codec of maps of type t.
func (c *mapCodec) DecoderFor(_ *bson.Registry, t reflect.Type) bson.ValueDecoder {
	if t.Kind() != reflect.Map {
		return c
	}
	if k := c.keyType(t.Key()); k != nil && (k.decodeText || k.decodeErr != nil) {
		return c
	}
	return c.decoder
}

// putLength sets the length of the array that starts at start and ends with dst.
func putLength(dst []byte, start int) {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}
