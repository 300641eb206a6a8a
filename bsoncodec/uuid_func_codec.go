package bsoncodec

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// uuidFunc is a type of RegisterUUIDFunc.
type uuidFunc struct {
	t     reflect.Type
	isNil bool // a function is nil

	get func(v reflect.Value) (id uuid.UUID, ok bool)      // of a value, or of a pointer to it
	set func(v reflect.Value, id uuid.UUID, ok bool) error // of a settable value
}

// uuidOf returns the UUID of v.
func (f *uuidFunc) uuidOf(v reflect.Value) (id uuid.UUID, ok bool, err error) {
	switch {
	case v.CanAddr():
		v = settable(v).Addr() // the value is not allocated again
	case !v.CanInterface():
		return id, false, fmt.Errorf("bsoncodec: cannot encode %v in a field that is not exported: encode a pointer to the struct", f.t)
	}
	id, ok = f.get(v)
	return id, ok, nil
}

// valueOf returns the value of t that has the UUID id.
func (f *uuidFunc) valueOf(id uuid.UUID) (reflect.Value, error) {
	v := reflect.New(f.t).Elem()
	err := f.set(v, id, true)
	return v, err
}

// funcCodec is the codec of a type of RegisterUUIDFunc.
type funcCodec struct {
	*conversion
	*uuidFunc
	uuid *uuidCodec // of t, which has no octets
}

func newFuncCodec(u *conversion, f *uuidFunc) *funcCodec {
	return &funcCodec{u, f, &uuidCodec{conversion: u, t: f.t}}
}

var (
	_ ValueCodec                 = (*funcCodec)(nil)
	_ structcodec.ContextEncoder = (*funcCodec)(nil)
	_ structcodec.ContextDecoder = (*funcCodec)(nil)
)

// EncodeValue is the ValueEncoder of a type of RegisterUUIDFunc.
func (c *funcCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != c.t {
		return bson.ValueEncoderError{Name: "UUIDFuncEncodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	switch id, ok, err := c.uuidOf(val); {
	case err != nil:
		return err
	case !ok:
		return vw.WriteNull()
	case c.asString:
		return vw.WriteString(id.String())
	case c.rep == uuidrep.Unspecified:
		return errUnspecified("encode", c.t)
	default:
		permute(id[:], id[:], c.rep)
		return vw.WriteBinaryWithSubtype(id[:], c.subtype)
	}
}

// DecodeValue is the ValueDecoder of a type of RegisterUUIDFunc.
func (c *funcCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != c.t {
		return bson.ValueDecoderError{Name: "UUIDFuncDecodeValue", Types: []reflect.Type{c.t}, Received: val}
	}
	t := vr.Type()
	var id uuid.UUID
	if err := c.uuid.read(vr, id[:], nil); err != nil {
		return err
	}
	return c.set(val, id, t != bson.TypeNull && t != bson.TypeUndefined)
}

// AppendValue appends a UUID, or nothing for null.
func (c *funcCodec) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if v.Type() != c.t || c.asString || c.rep == uuidrep.Unspecified {
		return 0, dst, ErrNotPlain
	}
	id, ok, err := c.uuidOf(v)
	if err != nil || !ok {
		return bson.TypeNull, dst, err
	}
	permute(id[:], id[:], c.rep)
	dst = append(dst, 16, 0, 0, 0, c.subtype)
	return bson.TypeBinary, append(dst, id[:]...), nil
}

// ReadValue sets v to a UUID, or to none for null.
func (c *funcCodec) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if v.Type() != c.t {
		return ErrNotPlain
	}
	var id uuid.UUID
	if t == bson.TypeNull {
		return c.set(v, id, false)
	}
	if t != bson.TypeBinary || len(data) != 4+1+16 || c.typed[data[4]] == uuidrep.Unspecified {
		return ErrNotPlain
	}
	permute(id[:], data[5:], c.typed[data[4]])
	return c.set(v, id, true)
}

// EncoderIn returns c: no option changes how a UUID is written.
func (c *funcCodec) EncoderIn(bson.EncodeContext) structcodec.ValueCodec { return c }

// DecoderIn returns c: no option changes how a UUID is read.
func (c *funcCodec) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }
