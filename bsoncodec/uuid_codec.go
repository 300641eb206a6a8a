package bsoncodec

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/bsonids/bsonids/uuidrep"
)

// uuidCodec is the codec of one type of kind [16]byte, or of a struct around one.
type uuidCodec struct {
	*conversion
	t       reflect.Type
	field   []int     // of the octets, if t is a struct
	keys    []string  // of the documents that the driver writes for such a struct, one for each index of field
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
	c.field, c.keys = uuidField(t)
	c.scratch.New = func() any {
		v := reflect.New(t).Elem()
		return &scratch{value: v, octets: (*[16]byte)(c.octets(v).Bytes())}
	}
	return c
}

// octets returns the array of 16 bytes in val, which is val itself unless it is a struct.
func (c *uuidCodec) octets(val reflect.Value) reflect.Value {
	if c.field == nil {
		return val
	}
	return val.FieldByIndex(c.field)
}

// EncodeValue is the ValueEncoder of UUID types.
func (c *uuidCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != c.t {
		return bson.ValueEncoderError{Name: "UUIDEncodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	if c.zeroAsNull && c.octets(val).IsZero() {
		return vw.WriteNull()
	}
	return c.encode(vw, val)
}

// encode writes val, a zero UUID too.
func (c *uuidCodec) encode(vw bson.ValueWriter, val reflect.Value) error {
	val = c.octets(val)
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
	case !val.CanInterface(): // a field that is not exported, which the mgo registries encode if it is embedded
		*s.octets = copyOf(val)
		permute(s.octets[:], s.octets[:], c.rep)
	case c.native: // Interface is half the time of Set
		u := val.Interface().(uuid.UUID)
		permute(s.octets[:], u[:], c.rep)
	case c.field != nil:
		*s.octets = copyOf(val)
		permute(s.octets[:], s.octets[:], c.rep)
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
	if c.field == nil {
		return c.read(vr, val.Bytes(), nil)
	}
	var octets [16]byte
	if err := c.read(vr, octets[:], c.keys); err != nil {
		return err
	}
	copy(c.octets(val).Bytes(), octets[:])
	return nil
}

// read sets dst to the UUID at vr, or in the document with the given keys there, one within the other.
func (c *uuidCodec) read(vr bson.ValueReader, dst []byte, keys []string) error {
	switch vrType := vr.Type(); {
	case vrType == bson.TypeBinary:
		octets, subtype, err := vr.ReadBinary()
		if err != nil {
			return err
		}
		rep := c.typed[subtype]
		if rep == uuidrep.Unspecified || len(octets) != 16 {
			return c.errBinary(c.t, subtype, octets)
		}
		permute(dst, octets, rep)
		return nil
	case vrType == bson.TypeNull:
		clear(dst)
		return vr.ReadNull()
	case vrType == bson.TypeUndefined:
		clear(dst)
		return vr.ReadUndefined()
	case len(keys) > 0 && (vrType == bson.TypeEmbeddedDocument || vrType == 0):
		return c.readDocument(vr, dst, keys)
	case vrType == bson.TypeString && c.text:
		s, err := vr.ReadString()
		if err != nil {
			return err
		}
		u, err := uuidtext.Parse(s)
		if err != nil {
			return fmt.Errorf("bsoncodec: cannot decode a string into %v: %w", c.t, err)
		}
		copy(dst, u[:])
		return nil
	case vrType == bson.TypeString:
		return fmt.Errorf("bsoncodec: cannot decode a string into %v: a registry built with AlsoDecodeString reads UUIDs as text", c.t)
	case (vrType == bson.TypeEmbeddedDocument || vrType == 0) && isEmptyDocument(vr):
		return errEmptyDocument(c.t)
	default:
		return fmt.Errorf("bsoncodec: cannot decode a BSON %v into %v: a UUID is a binary value", vrType, c.t)
	}
}

// readDocument reads a document that the driver wrote for a struct around a UUID without a codec. The
// keys are read in any letter case, as the driver does.
func (c *uuidCodec) readDocument(vr bson.ValueReader, dst []byte, keys []string) error {
	dr, err := vr.ReadDocument()
	if err != nil {
		return err
	}
	found := false
	for {
		key, elem, err := dr.ReadElement()
		if err == bson.ErrEOD {
			break
		}
		if err != nil {
			return err
		}
		if keys[0] == "" || strings.ToLower(key) != keys[0] {
			return c.errDocument(fmt.Sprintf("it has the key %q", key), keys[0])
		}
		if err := c.read(elem, dst, keys[1:]); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return errEmptyDocument(c.t)
	}
	return nil
}

// isEmptyDocument reads the beginning of the document at vr and reports whether it is empty.
func isEmptyDocument(vr bson.ValueReader) bool {
	dr, err := vr.ReadDocument()
	if err != nil {
		return false
	}
	_, _, err = dr.ReadElement()
	return err == bson.ErrEOD
}

// errEmptyDocument is the error of decoding an empty document into t, the type of a UUID.
func errEmptyDocument(t reflect.Type) error {
	return fmt.Errorf("bsoncodec: cannot decode a document into %v: it is empty: without a codec the driver writes that for a struct "+
		"whose fields are not exported, so that the UUID was not stored and is lost", t)
}

func (c *uuidCodec) errDocument(reason, key string) error {
	if key == "" {
		return fmt.Errorf("bsoncodec: cannot decode a document into %v: %s, and the driver stores nothing of "+
			"a field that is not exported, so that the UUID is lost", c.t, reason)
	}
	return fmt.Errorf("bsoncodec: cannot decode a document into %v: %s, and only {%s: …} is read, "+
		"which the driver writes without a codec", c.t, reason, key)
}

// A uuidPlan is a uuidCodec for the values of its type.
type uuidPlan struct{ *uuidCodec }

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

// EncoderIn returns c: no option changes how a UUID is written.
func (c uuidPlan) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// DecoderIn returns c: no option changes how a UUID is read.
func (c uuidPlan) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }

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

// A zeroAsNullPlan is a uuidPlan that writes the zero UUID as null.
type zeroAsNullPlan struct{ uuidPlan }

// EncoderFor returns c.
func (c zeroAsNullPlan) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return c }

// EncoderIn returns c: no option changes how a UUID is written.
func (c zeroAsNullPlan) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// AppendValue appends a UUID, or nothing for null.
func (c zeroAsNullPlan) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if c.octets(v).IsZero() {
		return bson.TypeNull, dst, nil
	}
	return c.uuidPlan.AppendValue(dst, v)
}
