package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var (
	tUUID     = reflect.TypeFor[uuid.UUID]()
	tNullUUID = reflect.TypeFor[uuid.NullUUID]()
	tAny      = reflect.TypeFor[any]()
	tD        = reflect.TypeFor[bson.D]()
	tBinary   = reflect.TypeFor[bson.Binary]()
	tRawValue = reflect.TypeFor[bson.RawValue]()
)

// NewRegistry returns a registry with the driver's codecs and those for UUIDs in the representation r. It is
// [NewRegistryBuilder] and [RegistryBuilder.Build] in one call, with the same errors.
func NewRegistry(r uuidrep.Representation) (*bson.Registry, error) {
	return NewRegistryBuilder(r).Build()
}

// RegistryBuilder collects what a registry shall do with UUIDs. Make one with [NewRegistryBuilder], call its methods
// in any order, then [RegistryBuilder.Build] or [RegistryBuilder.ApplyTo]; these report the mistakes of all calls
// before. A builder is not safe for concurrent use; the registries that it builds are, and do not change with it.
type RegistryBuilder struct {
	rep      uuidrep.Representation
	types    []reflect.Type
	implicit reflect.Type
	also     []uuidrep.Representation
	generic  bool
	text     bool
	with     []func(*bson.Registry)
}

// NewRegistryBuilder returns a builder of registries that store UUIDs in the representation r. [uuid.UUID] is
// registered, and [uuid.NullUUID], which is null where it is not valid. With [uuidrep.Unspecified] every attempt to
// encode a UUID, or to decode one into a target of fixed type, is [uuidrep.ErrUnspecified].
func NewRegistryBuilder(r uuidrep.Representation) *RegistryBuilder {
	return &RegistryBuilder{rep: r, types: []reflect.Type{tUUID}, implicit: tUUID}
}

// RegisterUUIDType makes t a UUID: a value of this type is encoded and decoded as [uuid.UUID] is. Its kind must be
// [16]byte, the octets in network order, as in github.com/gofrs/uuid or in a type of the caller; another kind is an
// error of Build. A type without text methods becomes a map key too, as the UUID's text.
func (b *RegistryBuilder) RegisterUUIDType(t reflect.Type) *RegistryBuilder {
	b.types = append(b.types, t)
	return b
}

// SetImplicitType makes t the type that any receives for a UUID, [uuid.UUID] by default, and registers it as
// [RegistryBuilder.RegisterUUIDType] does, with the same errors.
func (b *RegistryBuilder) SetImplicitType(t reflect.Type) *RegistryBuilder {
	b.implicit = t
	return b.RegisterUUIDType(t)
}

// AlsoDecode makes the registry read UUIDs in the representation r too, everywhere; it goes on writing its own. This is
// for collections that hold both subtypes. One of the two must be [uuidrep.Standard], for subtype 3 can be read in one
// byte order alone; two orders for one subtype, [uuidrep.Unspecified] and the registry's own representation are errors
// of Build.
func (b *RegistryBuilder) AlsoDecode(r uuidrep.Representation) *RegistryBuilder {
	b.also = append(b.also, r)
	return b
}

// AlsoDecodeGeneric makes UUID fields read binary subtype 0 of 16 octets in network order, which Go programs without a
// codec wrote. Targets of type any go on receiving it as it is, for nothing tells it from other data.
func (b *RegistryBuilder) AlsoDecodeGeneric() *RegistryBuilder {
	b.generic = true
	return b
}

// AlsoDecodeString makes UUID fields read text UUIDs, in the forms of [uuid.Validate]. Targets of type any go on
// receiving a string.
func (b *RegistryBuilder) AlsoDecodeString() *RegistryBuilder {
	b.text = true
	return b
}

// With runs f on the registry before the codecs for UUIDs are registered, for the caller's own codecs, interface hooks
// and type map entries. Those stay in force for all other values; what f registers for bson.D, for any, for pointers or
// for slices takes the place of this package's faster ways through them. A codec that f registers for a UUID type
// itself is replaced.
func (b *RegistryBuilder) With(f func(*bson.Registry)) *RegistryBuilder {
	b.with = append(b.with, f)
	return b
}

// Build returns a new registry: the driver's own codecs, the caller's and those for UUIDs. It reports every mistake of
// the calls before in one error. The registry is safe for concurrent use.
func (b *RegistryBuilder) Build() (*bson.Registry, error) {
	reg := bson.NewRegistry()
	if err := b.ApplyTo(reg); err != nil {
		return nil, err
	}
	return reg, nil
}

// ApplyTo registers the codecs for UUIDs on a registry that the caller has, a mgocompat registry for instance, with the
// errors of Build; after an error of the builder reg is unchanged. A nil registry, or one that has codecs of this
// package, is an error.
//
// Apply it before the registry's first use and not concurrently with any: the driver keeps the codecs of each struct
// type that it has met, with no way to ask or to forget, so a used registry would go on writing the UUIDs of those
// structs as subtype 0.
func (b *RegistryBuilder) ApplyTo(reg *bson.Registry) error {
	if reg == nil {
		return fmt.Errorf("bsoncodec: cannot register codecs: %w", bson.ErrNilRegistry)
	}
	u, err := b.conversion()
	if err != nil {
		return err
	}
	if enc, err := reg.LookupEncoder(tUUID); err == nil {
		if _, ours := enc.(*uuidCodec); ours {
			return errors.New("bsoncodec: the registry has codecs for UUIDs already: build another")
		}
	}
	for _, f := range b.with {
		f(reg)
	}
	b.register(reg, u)
	return nil
}

// conversion checks the builder and returns what its registries do with UUIDs.
func (b *RegistryBuilder) conversion() (*conversion, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("bsoncodec: "+format, args...)) }

	u := &conversion{rep: b.rep, text: b.text}
	subtype, err := b.rep.Subtype()
	switch {
	case err == nil:
		u.subtype = subtype
		u.implicit[subtype] = b.rep
	case b.rep != uuidrep.Unspecified:
		return nil, fmt.Errorf("bsoncodec: cannot build a registry: %w", err)
	case len(b.also) > 0 || b.generic || b.text:
		fail("AlsoDecode, AlsoDecodeGeneric and AlsoDecodeString add to a representation and none is set: %w", uuidrep.ErrUnspecified)
		return nil, errors.Join(errs...)
	}
	for i, r := range b.also {
		also, err := r.Subtype()
		switch {
		case err != nil:
			fail("cannot also decode %v: %w", r, err)
		case r == b.rep:
			fail("AlsoDecode(%v): this is the registry's own representation already", r)
		case i > 0 && r == b.also[0]:
		case u.implicit[also] != uuidrep.Unspecified:
			fail("cannot decode subtype %d as both %v and %v: nothing in the data tells them apart", also, u.implicit[also], r)
		default:
			u.implicit[also] = r
		}
	}
	u.typed = u.implicit
	if b.generic {
		u.typed[bson.TypeBinaryGeneric] = uuidrep.Standard
	}
	for _, t := range b.types {
		if t == nil || t.Kind() != reflect.Array || t.Len() != 16 || t.Elem().Kind() != reflect.Uint8 {
			fail("%v cannot be a UUID: its kind must be [16]byte", t)
		}
	}
	return u, errors.Join(errs...)
}

// register puts the codecs into reg. UUID types are replaced whatever was there; the types around them keep a codec
// that is not the driver's own.
func (b *RegistryBuilder) register(reg *bson.Registry, u *conversion) {
	stock := bson.NewRegistry()
	rawEncoder, _ := stock.LookupEncoder(tRawValue)
	rawDecoder, _ := stock.LookupDecoder(tRawValue)
	reg.RegisterTypeDecoder(tSlowSlice, bson.ValueDecoderFunc(decodeSlowSlice))
	for _, t := range b.types {
		c := newUUIDCodec(u, t)
		pointer, slice := reflect.PointerTo(t), reflect.SliceOf(t)
		if isStockEncoder(reg, stock, pointer) {
			reg.RegisterTypeEncoder(pointer, &pointerCodec{t: pointer, elem: c})
		}
		if isStockDecoder(reg, stock, pointer) {
			reg.RegisterTypeDecoder(pointer, &pointerCodec{t: pointer, elem: c})
		}
		if enc, err := reg.LookupEncoder(slice); err == nil && isStockEncoder(reg, stock, slice) {
			reg.RegisterTypeEncoder(slice, &sliceEncoder{conversion: u, t: slice, driver: enc, raw: rawEncoder})
		}
		if dec, err := reg.LookupDecoder(slice); err == nil && isStockDecoder(reg, stock, slice) {
			reg.RegisterTypeDecoder(slice, &sliceDecoder{conversion: u, t: slice, driver: dec, raw: rawDecoder})
		}
		reg.RegisterTypeEncoder(t, c)
		reg.RegisterTypeDecoder(t, c)
		if t == tUUID {
			null := &nullUUIDCodec{elem: c}
			reg.RegisterTypeEncoder(tNullUUID, null)
			reg.RegisterTypeDecoder(tNullUUID, null)
		}
	}
	registerMapKeys(reg, stock, b.types)
	if u.rep != uuidrep.Unspecified {
		registerImplicit(reg, stock, u, b.implicit)
	}
}

// isStockEncoder reports whether reg encodes t with the codec that the driver has for it.
func isStockEncoder(reg, stock *bson.Registry, t reflect.Type) bool {
	a, errA := reg.LookupEncoder(t)
	b, errB := stock.LookupEncoder(t)
	return errA == nil && errB == nil && sameCodec(a, b)
}

// isStockDecoder reports whether reg decodes t with the codec that the driver has for it.
func isStockDecoder(reg, stock *bson.Registry, t reflect.Type) bool {
	a, errA := reg.LookupDecoder(t)
	b, errB := stock.LookupDecoder(t)
	return errA == nil && errB == nil && sameCodec(a, b)
}

// sameCodec reports whether a and b are one function or one set of functions, or codecs of one type: the driver's
// registries differ in the settings that these hold.
func sameCodec(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if va.Type() != vb.Type() {
		return false
	}
	switch va.Kind() {
	case reflect.Func:
		return va.Pointer() == vb.Pointer()
	case reflect.Struct:
		for i := range va.NumField() {
			if fa, fb := va.Field(i), vb.Field(i); fa.Kind() != reflect.Func || fa.Pointer() != fb.Pointer() {
				return false
			}
		}
		return true
	case reflect.Pointer:
		return true
	}
	return false
}
