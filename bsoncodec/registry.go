package bsoncodec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	tUUID     = reflect.TypeFor[uuid.UUID]()
	tNullUUID = reflect.TypeFor[uuid.NullUUID]()
	tAny      = reflect.TypeFor[any]()
	tD        = reflect.TypeFor[bson.D]()
	tBinary   = reflect.TypeFor[bson.Binary]()
	tRaw      = reflect.TypeFor[bson.Raw]()
	tRawValue = reflect.TypeFor[bson.RawValue]()

	tStandardUUID = reflect.TypeFor[uuidrep.StandardUUID]()
	tByte         = reflect.TypeFor[byte]()

	tValueMarshaler = reflect.TypeFor[bson.ValueMarshaler]()
	tMarshaler      = reflect.TypeFor[bson.Marshaler]()
	tUnmarshaler    = reflect.TypeFor[bson.Unmarshaler]()
	tJSONMarshaler  = reflect.TypeFor[json.Marshaler]()
)

// NewRegistry returns a registry with the driver's codecs and those for UUIDs in the representation
// r. It is [NewRegistryBuilder] and [RegistryBuilder.Build] in one call, with the same errors.
func NewRegistry(r uuidrep.Representation) (*bson.Registry, error) {
	return NewRegistryBuilder(r).Build()
}

// RegistryBuilder collects the settings of a registry for UUIDs. Make one with [NewRegistryBuilder],
// call its methods in any order, and then [RegistryBuilder.Build] or [RegistryBuilder.ApplyTo],
// which report the mistakes of all earlier calls. Version 2 of the driver has no builder of
// registries any more; this one exists because the codecs for UUIDs depend on one another and on the
// caller's, and because they must be registered in one order.
//
// A builder is not safe for concurrent use. The registries that it builds are, and later calls do
// not change them.
type RegistryBuilder struct {
	rep      uuidrep.Representation
	types    []reflect.Type
	implicit reflect.Type
	funcs    []*uuidFunc
	also     []uuidrep.Representation
	generic  bool
	text     bool
	with     []func(*bson.Registry)

	implicits    []reflect.Type // of each call of SetImplicitType
	nulls        []reflect.Type // UUIDs that can be null
	documents    []reflect.Type // structs around UUIDs that are documents
	asString     bool
	zeroAsNull   bool
	bytes        []reflect.Type // plain bytes of kind [16]byte
	unregistered []treatment    // one for each call
	keepBinary   bool
	withoutPlans bool
	subtype0     bool // methods may return UUIDs as subtype 0
}

// NewRegistryBuilder returns a builder of registries that store UUIDs in the representation r.
// [uuid.UUID] of github.com/google/uuid is registered, and [uuid.NullUUID], which is null if it is
// not valid. So is the UUID of the standard library's package uuid if the program is built with Go
// 1.27 or later.
//
// With [uuidrep.Unspecified] every attempt to encode a UUID, or to decode one into a target of
// fixed type, is [uuidrep.ErrUnspecified].
func NewRegistryBuilder(r uuidrep.Representation) *RegistryBuilder {
	b := &RegistryBuilder{rep: r, implicit: tUUID}
	for _, t := range stdUUIDTypes {
		b.RegisterUUIDType(t)
	}
	return b.RegisterUUIDType(tUUID).RegisterNullUUIDType(tNullUUID)
}

// RegisterUUIDType makes t a UUID: a value of this type is encoded and decoded as [uuid.UUID] is,
// whatever methods it has. Its kind must be [16]byte, the bytes in network order, as in
// github.com/gofrs/uuid or in a type of the caller, or it must be a struct with one such field,
// exported or not, besides those named _ and those tagged bson:"-". Another type is an error of Build.
// A type without text methods can be a map key too, as the text of the UUID.
//
// A struct is read from the document too that the driver writes for it without a codec, such as
// {uuid: …} for one that embeds a [uuid.UUID]. The UUID in it is read as any other:
// [RegistryBuilder.AlsoDecodeSubtype0] reads subtype 0. A struct around a UUID that is not registered
// is refused: see [RegistryBuilder.RegisterDocumentType]. [RegisterUUIDFunc] makes any other type a UUID.
//
// A type of kind [16]byte that is not registered is refused, in both directions, with an
// [*UnregisteredTypeError], unless it has marshaling methods of the driver, or a codec or hook of
// the caller. See also [RegistryBuilder.RegisterBytesType], [RegistryBuilder.UnregisteredAsUUID]
// and [RegistryBuilder.UnregisteredAsBytes].
func (b *RegistryBuilder) RegisterUUIDType(t reflect.Type) *RegistryBuilder {
	if !slices.Contains(b.types, t) {
		b.types = append(b.types, t)
	}
	return b
}

// SetImplicitType makes t the type that any receives for a UUID, [uuid.UUID] by default, and
// registers it as [RegistryBuilder.RegisterUUIDType] does, with the same errors, unless
// [RegisterUUIDFunc] registers it.
func (b *RegistryBuilder) SetImplicitType(t reflect.Type) *RegistryBuilder {
	b.implicit = t
	b.implicits = append(b.implicits, t)
	return b
}

// uuidTypes returns the types that RegisterUUIDType and SetImplicitType register.
func (b *RegistryBuilder) uuidTypes() []reflect.Type {
	types, funcs := slices.Clone(b.types), b.funcTypes()
	for _, t := range b.implicits {
		if funcs[t] == nil && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// AlsoDecode makes the registry read UUIDs in the representation r too, in every place. It still
// writes its own representation only. This is for collections that hold both subtypes.
//
// One of the two representations must be [uuidrep.Standard], because subtype 3 can be read in one
// byte order only. Two orders for one subtype, [uuidrep.Unspecified] and the registry's own
// representation are errors of Build.
func (b *RegistryBuilder) AlsoDecode(r uuidrep.Representation) *RegistryBuilder {
	b.also = append(b.also, r)
	return b
}

// AlsoDecodeSubtype0 makes UUID fields read binary subtype 0 of 16 bytes in network order, which Go
// programs without a codec wrote. Targets of type any still receive a [bson.Binary], because such a
// value can be other data as well.
func (b *RegistryBuilder) AlsoDecodeSubtype0() *RegistryBuilder {
	b.generic = true
	return b
}

// AlsoDecodeString makes UUID fields read the text forms that [uuid.Validate] accepts. Targets of
// type any still receive a string.
func (b *RegistryBuilder) AlsoDecodeString() *RegistryBuilder {
	b.text = true
	return b
}

// With calls f with the registry before the codecs for UUIDs are registered, so that f can register
// the caller's own codecs, hooks and type map entries. These stay in force for all other values. A
// codec that f registers for bson.D, any, pointers, slices, arrays or structs replaces this package's
// codec for them, unless it is the driver's own.
//
// A codec that f registers for a UUID type is replaced; after Build, it takes the place of the one of
// this package. One for a type that [RegistryBuilder.RegisterNullUUIDType] registers, [uuid.NullUUID]
// included, is kept. Hooks do not apply to these types or to pointers to them.
//
// A struct codec of the caller's must tell the options of clients apart itself: the driver's codec
// of structs keeps the fields of a type as the first client's options name them, which the codec of
// this package prevents.
//
// A nil f, and an f that applies a builder to the registry, are errors of Build.
func (b *RegistryBuilder) With(f func(*bson.Registry)) *RegistryBuilder {
	b.with = append(b.with, f)
	return b
}

// WithoutPlans makes the registry encode and decode documents with the driver's codecs alone, and not
// by plans that are compiled for each type. The results are the same, except for what
// docs/performance.md lists. [CheckPlans] says why a type has no plan.
func (b *RegistryBuilder) WithoutPlans() *RegistryBuilder {
	b.withoutPlans = true
	return b
}

// Build returns a new registry with the driver's own codecs, the caller's and those for UUIDs. It
// reports the mistakes of all earlier calls in one error.
//
// The registry is safe for concurrent use. Codecs, hooks and type map entries that are registered
// between Build and the first use of the registry are obeyed as those of With are. So are codecs for UUID
// types, which With replaces: in fields, pointers, slices, arrays, maps and any, and for the UUID of a type
// of RegisterNullUUIDType. A key of a map stays the text of the UUID. Register none after the first use: a codec or a hook that is registered later is obeyed for the types that the registry
// meets after it, and not for those that documents have held before. The type map is obeyed at any
// time. The exceptions are what the driver encodes or decodes without plans (Extended JSON, a
// registry of [RegistryBuilder.WithoutPlans]) and what its Encoder and Decoder are given: it looks
// the codecs of some types up each time.
func (b *RegistryBuilder) Build() (*bson.Registry, error) {
	reg := bson.NewRegistry()
	if err := b.ApplyTo(reg); err != nil {
		return nil, err
	}
	return reg, nil
}

// ApplyTo registers the codecs for UUIDs on a registry that the caller has, for instance one of
// [bson.NewMgoRegistry]. Errors are those of Build, after which reg is unchanged, except for what
// the functions of With did. A nil registry, and one that has codecs of this package, are errors.
//
// Call it before the first use of the registry, and not concurrently with any use. The driver keeps
// the codecs of each struct type that it has met, so a registry that was used would still write the
// UUIDs of those structs as subtype 0.
//
// The driver's codec of structs is replaced by one that keeps the fields of a type for each set of
// [Options]. A struct codec of the caller's stays; see [RegistryBuilder.With].
func (b *RegistryBuilder) ApplyTo(reg *bson.Registry) error {
	if reg == nil {
		return fmt.Errorf("bsoncodec: cannot register codecs: %w", bson.ErrNilRegistry)
	}
	u, err := b.conversion()
	if err != nil {
		return err
	}
	a := b.application(reg, u)
	note, err := newNote(reg, a.rules)
	if err != nil {
		return err
	}
	a.register(beforeWith)
	for _, f := range b.with {
		f(reg)
	}
	nested := note.Stage == built.Nested
	note.Stage = built.Done
	if nested {
		return errNested
	}
	a.register(afterWith)
	if !b.withoutPlans {
		a.register(afterAll)
		note.Plans = a.plans
	}
	return nil
}

// application returns what b registers in reg.
func (b *RegistryBuilder) application(reg *bson.Registry, u *conversion) *application {
	a := &application{
		reg: reg, conversion: u, rules: b.typeRules(),
		types: b.uuidTypes(), nulls: b.nulls, documents: b.documents, implicit: b.implicit, keepBinary: b.keepBinary,
		uuids: map[reflect.Type]*uuidCodec{}, funcs: map[reflect.Type]*funcCodec{},
	}
	for _, t := range a.types {
		a.uuids[t] = newUUIDCodec(u, t)
	}
	for _, f := range b.funcs {
		a.funcs[f.t] = newFuncCodec(u, f)
	}
	array := probes[inUse].kinds[reflect.Array]
	a.arrays = &arrayCodec{
		conversion: u, rules: a.rules, encoder: driver.Encoder(array), decoder: driver.Decoder(array), implicitType: b.implicit,
	}
	a.maps = &mapCodec{rules: a.rules}
	return a
}

// conversion checks the builder and returns what its registries do with UUIDs.
func (b *RegistryBuilder) conversion() (*conversion, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("bsoncodec: "+format, args...)) }

	u := &conversion{rep: b.rep, text: b.text || b.asString, asString: b.asString, zeroAsNull: b.zeroAsNull}
	subtype, err := b.rep.Subtype()
	switch {
	case err == nil:
		u.subtype = subtype
		u.implicit[subtype] = b.rep
	case b.rep != uuidrep.Unspecified:
		return nil, fmt.Errorf("bsoncodec: cannot build a registry: %w", err)
	case len(b.also) > 0 || b.generic || b.text && !b.asString:
		fail("AlsoDecode, AlsoDecodeSubtype0 and AlsoDecodeString add to a representation and none is set: %w", uuidrep.ErrUnspecified)
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
	types := b.uuidTypes()
	for _, t := range types {
		switch {
		case t == nil || !canBeUUID(t):
			fail("%v cannot be a UUID: its kind must be [16]byte, or it must be a struct with one field of such a kind", t)
		case slices.Contains(b.documents, t):
			fail("%v is registered as a UUID and as a document", t)
		case hasOwnRepresentation(t):
			fail("%v cannot be registered: it has a representation of its own", t)
		}
	}
	rules := b.typeRules()
	for _, t := range b.documents {
		if !rules.canBeDocument(t) {
			fail("%v cannot be registered with RegisterDocumentType: it must be a struct around a UUID, a UUID that can be null, "+
				"or a struct of which a UUID is lost", t)
		}
	}
	for _, t := range b.nulls {
		if nullFieldsOf(t) == nil {
			fail("%v cannot be a UUID that is null: it must be a struct of two fields, a UUID and a bool", t)
		}
	}
	for _, t := range b.bytes {
		switch {
		case t == nil || !isOctets(t):
			fail("%v cannot be registered with RegisterBytesType: its kind must be [16]byte", t)
		case slices.Contains(types, t):
			fail("%v is registered as a UUID and as plain bytes", t)
		}
	}
	others := typeSet(slices.Concat(types, b.nulls, b.documents, b.bytes))
	for _, f := range b.funcs {
		if reason := errFunc(f, others); reason != "" {
			fail("%v cannot be registered with RegisterUUIDFunc: %s", f.t, reason)
		}
		others[f.t] = true
	}
	for _, f := range b.with {
		if f == nil {
			fail("With needs a function, it was given nil")
		}
	}
	if b.keepBinary && b.implicit != tUUID {
		fail("SetImplicitType and KeepBinary contradict each other")
	}
	if slices.Contains(b.unregistered, asUUID) && slices.Contains(b.unregistered, asBytes) {
		fail("UnregisteredAsUUID and UnregisteredAsBytes contradict each other")
	}
	return u, errors.Join(errs...)
}
