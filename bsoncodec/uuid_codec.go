package bsoncodec

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/bsonids/bsonids/uuidrep"
)

// uuidCodec is the codec of one type of kind [16]byte.
type uuidCodec struct {
	*conversion
	t       reflect.Type
	native  bool      // t is uuid.UUID
	scratch sync.Pool // of *scratch
}

// scratch is an addressable UUID. A value that cannot be addressed has no octets to hand to the
// writer, and a legacy order may not change the caller's.
type scratch struct {
	value  reflect.Value
	octets *[16]byte // of value
}

func newUUIDCodec(u *conversion, t reflect.Type) *uuidCodec {
	c := &uuidCodec{conversion: u, t: t, native: t == tUUID}
	c.scratch.New = func() any {
		v := reflect.New(t).Elem()
		return &scratch{value: v, octets: (*[16]byte)(v.Bytes())}
	}
	return c
}

// EncodeValue is the ValueEncoder of UUID types.
func (c *uuidCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != c.t {
		return bson.ValueEncoderError{Name: "UUIDEncodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	if c.zeroAsNull && val.IsZero() {
		return vw.WriteNull()
	}
	return c.encode(vw, val)
}

// encode writes val, a zero UUID too.
func (c *uuidCodec) encode(vw bson.ValueWriter, val reflect.Value) error {
	if c.asString {
		return vw.WriteString(copyOf(val).String())
	}
	if c.rep == uuidrep.Unspecified {
		return errUnspecified("encode", c.t)
	}
	if !driver.CopiesBytes(vw) {
		return c.encodeKept(vw, val)
	}
	addressable := val.CanAddr()
	if addressable && !c.permutes() {
		return vw.WriteBinaryWithSubtype(val.Bytes(), c.subtype)
	}
	s := c.scratch.Get().(*scratch)
	switch {
	case addressable:
		permute(s.octets[:], val.Bytes(), c.rep)
	case c.native: // Interface is half the time of Set
		u := val.Interface().(uuid.UUID)
		permute(s.octets[:], u[:], c.rep)
	default:
		s.value.Set(val)
		permute(s.octets[:], s.octets[:], c.rep)
	}
	err := vw.WriteBinaryWithSubtype(s.octets[:], c.subtype)
	c.scratch.Put(s)
	return err
}

// encodeKept encodes val to a writer that may keep the bytes it is given.
func (c *uuidCodec) encodeKept(vw bson.ValueWriter, val reflect.Value) error {
	octets := copyOf(val)
	permute(octets[:], octets[:], c.rep)
	return vw.WriteBinaryWithSubtype(octets[:], c.subtype)
}

// copyOf returns the UUID in val, which need not be addressable.
func copyOf(val reflect.Value) (u uuid.UUID) {
	for i := range u {
		u[i] = byte(val.Index(i).Uint())
	}
	return u
}

// DecodeValue is the ValueDecoder of UUID types.
func (c *uuidCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != c.t {
		return bson.ValueDecoderError{Name: "UUIDDecodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	switch vrType := vr.Type(); {
	case vrType == bson.TypeBinary:
		octets, subtype, err := vr.ReadBinary()
		if err != nil {
			return err
		}
		rep := c.typed.representation(subtype)
		if rep == uuidrep.Unspecified || len(octets) != 16 {
			return c.errBinary(c.t, subtype, len(octets))
		}
		permute(val.Bytes(), octets, rep)
		return nil
	case vrType == bson.TypeNull:
		val.SetZero()
		return vr.ReadNull()
	case vrType == bson.TypeUndefined:
		val.SetZero()
		return vr.ReadUndefined()
	case vrType == bson.TypeString && c.text:
		s, err := vr.ReadString()
		if err != nil {
			return err
		}
		u, err := uuidtext.Parse(s)
		if err != nil {
			return fmt.Errorf("bsoncodec: cannot decode a string into %v: %w", c.t, err)
		}
		copy(val.Bytes(), u[:])
		return nil
	case vrType == bson.TypeString:
		return fmt.Errorf("bsoncodec: cannot decode a string into %v: a registry built with AlsoDecodeString reads UUIDs as text", c.t)
	default:
		return fmt.Errorf("bsoncodec: cannot decode a BSON %v into %v: a UUID is a binary value", vrType, c.t)
	}
}
