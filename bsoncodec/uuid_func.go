package bsoncodec

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// RegisterUUIDFunc makes T a UUID by functions that return the UUID of a value and make the value of a
// UUID. It is for types that [RegistryBuilder.RegisterUUIDType] and
// [RegistryBuilder.RegisterNullUUIDType] do not take, such as a prefix with a UUID, a defined string
// type, or the option of another library. RegisterUUIDFunc returns b.
//
//	bsoncodec.RegisterUUIDFunc(b,
//		func(id RoomID) (uuid.UUID, bool) { return id.UUID(), true },
//		func(id uuid.UUID, ok bool) (RoomID, error) { return NewRoomID(id), nil })
//
// A value is encoded and decoded as its UUID, whatever methods T has. A value that has none, for which
// get returns false, is null, and set is called with the zero UUID and false for null and undefined. A
// zero UUID for which get returns true is written as one. Without text methods, T can be a map key too, as the text of
// the UUID; a key that has none, and two keys of one UUID, are errors. An error of set is wrapped in that of decoding.
//
// T must not be a pointer or an interface, not a type that Go predeclares, such as string, because every
// value of it in a document would be a UUID or null, and not a type whose values must not be copied,
// such as an [atomic.Pointer] or a struct with a [sync.Mutex]; such a T is an error of Build, and so are
// a function that is nil and a T that is registered otherwise or twice. A codec for T that a function of
// [RegistryBuilder.With] registers is replaced.
//
// The functions must be safe for concurrent use, and can be called more than once for a value.
func RegisterUUIDFunc[T any](
	b *RegistryBuilder, get func(T) (id uuid.UUID, ok bool), set func(id uuid.UUID, ok bool) (T, error),
) *RegistryBuilder {
	f := &uuidFunc{t: reflect.TypeFor[T](), isNil: get == nil || set == nil}
	f.get = func(v reflect.Value) (id uuid.UUID, ok bool) {
		if p, ok := v.Interface().(*T); ok {
			return get(*p)
		}
		return get(v.Interface().(T))
	}
	f.set = func(v reflect.Value, id uuid.UUID, ok bool) error {
		x, err := set(id, ok)
		if err != nil {
			return fmt.Errorf("bsoncodec: cannot decode into %v: %w", f.t, err)
		}
		*v.Addr().Interface().(*T) = x
		return nil
	}
	b.funcs = append(b.funcs, f)
	return b
}

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

// funcTypes returns the types of RegisterUUIDFunc.
func (b *RegistryBuilder) funcTypes() map[reflect.Type]*uuidFunc {
	types := make(map[reflect.Type]*uuidFunc, len(b.funcs))
	for _, f := range b.funcs {
		types[f.t] = f
	}
	return types
}

// errFunc returns why f cannot be registered, "" if it can.
func errFunc(f *uuidFunc, others map[reflect.Type]bool) string {
	never := mustNotCopy(f.t)
	switch {
	case f.isNil:
		return "a function is nil"
	case f.t.Kind() == reflect.Pointer, f.t.Kind() == reflect.Interface:
		return "it is a pointer or an interface"
	case f.t.PkgPath() == "" && f.t.Name() != "":
		return "Go predeclares it, and its values that are no UUIDs would be stored as null: define a type"
	case never == f.t:
		return "a value of it must not be copied"
	case never != nil:
		return fmt.Sprintf("a value of type %v in it must not be copied", never)
	case hasOwnRepresentation(f.t):
		return "it has a representation of its own"
	case others[f.t]:
		return "it is registered otherwise, or twice"
	}
	return ""
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

// valueOf returns the value of t that has the UUID id.
func (f *uuidFunc) valueOf(id uuid.UUID) (reflect.Value, error) {
	v := reflect.New(f.t).Elem()
	err := f.set(v, id, true)
	return v, err
}
