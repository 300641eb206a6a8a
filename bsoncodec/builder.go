package bsoncodec

import (
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

// NewRegistry returns a registry with the driver's codecs and those for UUIDs in the representation
// r. It is [NewRegistryBuilder] and [RegistryBuilder.Build] in one call, with the same errors.
func NewRegistry(r uuidrep.Representation) (*bson.Registry, error) {
	return NewRegistryBuilder(r).Build()
}

// RegistryBuilder collects the settings of a registry for UUIDs. Make one with [NewRegistryBuilder] and
// call its methods in any order. Then call [RegistryBuilder.Build] or [RegistryBuilder.ApplyTo], which
// return the errors of all earlier calls. The codecs for UUIDs depend on one another and on those of the
// caller, and must be registered in one order. That is why there is a builder, although version 2 of the
// driver has none.
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
// With [uuidrep.Unspecified] it is [uuidrep.ErrUnspecified] to encode a UUID, or to decode one into a target of
// a UUID type.
func NewRegistryBuilder(r uuidrep.Representation) *RegistryBuilder {
	b := &RegistryBuilder{rep: r, implicit: tUUID}
	for _, t := range stdUUIDTypes {
		b.RegisterUUIDType(t)
	}
	return b.RegisterUUIDType(tUUID).RegisterNullUUIDType(tNullUUID)
}

// RegisterUUIDType makes t a UUID: a value of this type is encoded and decoded as [uuid.UUID] is,
// whatever methods it has. Its kind must be [16]byte, with the bytes in network order, as in
// github.com/gofrs/uuid. Or it must be a struct with one field of such a type, exported or not; fields
// named _ and fields with the tag bson:"-" do not count. Build returns an error for any other type.
// A map key of a type without text methods is encoded as the text of the UUID.
//
// Without a codec the driver writes a struct as a document, such as {uuid: …} if it embeds a
// [uuid.UUID]. A registered struct is decoded from that document as well as from a UUID. The UUID in
// the document can have each form that a UUID field can have: subtype 0, for instance, needs
// [RegistryBuilder.AlsoDecodeSubtype0]. A struct around a UUID that is not registered is refused; see
// [RegistryBuilder.RegisterDocumentType]. [RegisterUUIDFunc] makes any other type a UUID.
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

// RegisterNullUUIDType makes t a UUID that can be null: a value of this type is encoded as its UUID
// if it is valid, and as null if it is not. It must be a struct of two fields, exported or not: a UUID
// of a type that [RegistryBuilder.RegisterUUIDType] takes, and a bool that is true if the UUID is valid.
// Fields named _ and fields with the tag bson:"-" do not count. The NullUUID of github.com/gofrs/uuid is
// such a type, and so is [database/sql.Null] of a UUID. Build returns an error for any other type.
// RegisterNullUUIDType also registers the type of the UUID. For other types there is [RegisterUUIDFunc].
//
// Without a codec the driver writes such a struct as {uuid: …, valid: …} if both fields are exported. It
// is decoded from that document, too. The UUID in it can have each form that a UUID field can have.
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

// RegisterUUIDFunc makes T a UUID by functions that return the UUID of a value and make the value of a
// UUID. It is for types that [RegistryBuilder.RegisterUUIDType] and
// [RegistryBuilder.RegisterNullUUIDType] do not take, such as a prefix with a UUID, a defined string
// type, or the option of another library. RegisterUUIDFunc returns b.
//
//	bsoncodec.RegisterUUIDFunc(b,
//		func(id RoomID) (uuid.UUID, bool) { return id.UUID(), true },
//		func(id uuid.UUID, ok bool) (RoomID, error) { return NewRoomID(id), nil })
//
// A value is encoded and decoded as its UUID, whatever methods T has. If get returns false, the value has
// no UUID and is encoded as null. To decode null or undefined, set is called with the zero UUID and false.
// If get returns the zero UUID and true, that UUID is encoded. If decoding fails because of set, the error
// wraps that of set.
//
// A map key of a type T without text methods is encoded as the text of the UUID. A key without a UUID, and
// two keys with one UUID, are errors.
//
// Build returns an error if
//   - T is a pointer or an interface;
//   - Go predeclares T, as string: every string in a document would be a UUID or null;
//   - values of T must not be copied, as those of an [atomic.Pointer] or of a struct with a [sync.Mutex];
//   - T is registered twice, or by another function as well;
//   - get or set is nil.
//
// A codec for T that a function of [RegistryBuilder.With] registers is replaced.
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

// RegisterDocumentType makes t a document of its exported fields, as the driver encodes a struct. UUIDs in
// these fields are encoded and decoded as everywhere; fields that are not exported are left out.
//
// The type must be a struct that the registry refuses otherwise. These structs are refused, in both
// directions, with an [*UnregisteredTypeError]:
//
//   - a struct of which the driver stores no field, if it holds a UUID, such as struct{ id uuid.UUID }, or if
//     its fields lead to one through pointers, arrays, slices and maps;
//   - a struct of two fields, a UUID that is not exported and a bool;
//   - a struct that embeds a type that is not exported, with the tag inline and a UUID in it;
//   - a struct with one of these inline;
//   - a struct with an inline struct around a UUID that has methods for BSON, which the driver does not call
//     for an inline field, unless they are the methods of a UUID that has a struct tag;
//   - a struct that has a method for BSON from a field that it embeds, if the driver would store other fields
//     of it without that method;
//   - inside a document, a struct whose only field is an embedded UUID without a struct tag: without a codec
//     the driver writes {uuid: …} for it;
//   - inside a document, a struct of a UUID and a bool Valid without struct tags, and with a method Scan, as
//     [uuid.NullUUID]: without a codec the driver writes {uuid: …, valid: …}.
//
// Fields named _ and fields with the tag bson:"-" do not count. A type is not refused if the caller has
// registered a codec or a hook for it, or if the driver calls a method of its values for BSON that loses
// nothing. In other structs than these, a UUID that is not exported is left out, as any such field.
//
// Build returns an error for any other type, and for one that is registered with
// [RegistryBuilder.RegisterUUIDType], too.
//
// Methods for BSON of t are not called, with one exception: the driver calls MarshalBSON and UnmarshalBSON of
// a whole document, which a collection inserts or a cursor decodes, and asks no registry. The functions of
// this package and the collections of package autoid ask it. If an embedded field has these two methods, give
// the field a name.
//
// If t can be registered as a UUID, it is also decoded from a UUID and from null. So a program that writes
// documents can run beside a program that writes UUIDs. To move from the one to the other, first call
// RegisterDocumentType in every program, then replace it by RegisterUUIDType or, for uuid.NullUUID and types
// like it, by [RegistryBuilder.RegisterNullUUIDType].
func (b *RegistryBuilder) RegisterDocumentType(t reflect.Type) *RegistryBuilder {
	if !slices.Contains(b.documents, t) {
		b.documents = append(b.documents, t)
	}
	if canBeNull(t) {
		b.RegisterNullUUIDType(t)
	}
	return b
}

// RegisterBytesType makes t plain bytes, such as a checksum: the driver encodes a value of this type as
// binary subtype 0. Methods, hooks and codecs for t keep their precedence.
//
// The kind of t must be [16]byte. Another kind, and a type that is a UUID too, are errors of Build.
func (b *RegistryBuilder) RegisterBytesType(t reflect.Type) *RegistryBuilder {
	b.bytes = append(b.bytes, t)
	return b
}

// UnregisteredAsUUID makes every type of kind [16]byte a UUID, as
// [RegistryBuilder.RegisterUUIDType] does for one type, unless the type has marshaling methods, a
// hook or a codec of its own, or [RegistryBuilder.RegisterBytesType] names it. A kind codec of the
// caller for arrays stays in force. UnregisteredAsUUID and [RegistryBuilder.UnregisteredAsBytes] on
// one builder are an error of Build.
func (b *RegistryBuilder) UnregisteredAsUUID() *RegistryBuilder {
	b.unregistered = append(b.unregistered, asUUID)
	return b
}

// UnregisteredAsBytes keeps the driver's behavior for the types of kind [16]byte that are not
// registered: they are encoded as binary subtype 0, and decoded from the subtypes 0 and 2. If a UUID
// type is not registered, its values are written as subtype 0, without an error. UnregisteredAsBytes
// and [RegistryBuilder.UnregisteredAsUUID] on one builder are an error of Build.
func (b *RegistryBuilder) UnregisteredAsBytes() *RegistryBuilder {
	b.unregistered = append(b.unregistered, asBytes)
	return b
}

// AllowSubtype0OfMethods lets the methods MarshalBSON and MarshalBSONValue of types write UUIDs as binary
// subtype 0. Otherwise this is an [*UnregisteredTypeError]: if the result of such a method has a binary value
// of subtype 0 with the 16 octets of a UUID, in any representation, and the value whose method it is holds
// that UUID, in a type of kind [16]byte or as text of 36 characters. If the value also holds the 16 octets as
// plain bytes, in a slice of bytes, in a [bson.Binary] or in a type of [RegistryBuilder.RegisterBytesType],
// there is no error. [RegistryBuilder.AlsoDecodeSubtype0] and [RegistryBuilder.UnregisteredAsBytes] allow it,
// too.
//
// The driver calls MarshalBSON of a whole document without asking the registry. [Marshal] and package autoid do ask it.
func (b *RegistryBuilder) AllowSubtype0OfMethods() *RegistryBuilder {
	b.subtype0 = true
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

// KeepBinary decodes a UUID into a target of type any as a [bson.Binary], as the driver's own registry
// does. This includes the values of [bson.D] and [bson.M]. Targets of a UUID type receive UUIDs. It is for
// a program whose type assertions still expect a bson.Binary. KeepBinary and
// [RegistryBuilder.SetImplicitType] on one builder are an error of Build.
func (b *RegistryBuilder) KeepBinary() *RegistryBuilder {
	b.keepBinary = true
	return b
}

// AlsoDecode makes the registry read UUIDs in the representation r too, in every place. It still
// writes its own representation only. This is for collections that hold both subtypes.
//
// One of the two representations must be [uuidrep.Standard], because subtype 3 can be read in one
// byte order only. Build returns an error if two representations have one subtype, and if r is
// [uuidrep.Unspecified] or the registry's own representation.
func (b *RegistryBuilder) AlsoDecode(r uuidrep.Representation) *RegistryBuilder {
	b.also = append(b.also, r)
	return b
}

// AlsoDecodeSubtype0 decodes binary values of subtype 0 with 16 bytes into UUID fields, in network order.
// Go programs without a codec wrote UUIDs so. Targets of type any still receive a [bson.Binary], because
// such a value need not be a UUID.
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

// EncodeAsString makes the registry write UUIDs as strings of 36 characters in lower case, for data
// that holds them as text, and read strings as [RegistryBuilder.AlsoDecodeString] does. Binary
// values are read as before, in the representation of the registry, which may be Unspecified.
// Targets of type any receive a string.
func (b *RegistryBuilder) EncodeAsString() *RegistryBuilder {
	b.asString = true
	return b
}

// EncodeZeroAsNull makes the registry write a UUID whose bits are all zero as null, which reads
// back as the zero UUID, or as a nil pointer. A valid zero value of a type that
// [RegistryBuilder.RegisterNullUUIDType] registers is written as a UUID.
func (b *RegistryBuilder) EncodeZeroAsNull() *RegistryBuilder {
	b.zeroAsNull = true
	return b
}

// With calls f with the registry before the codecs for UUIDs are registered. So f can register codecs,
// hooks and type map entries of the caller's, which are in force for all values but UUIDs:
//
//   - A codec for bson.D, any, pointers, slices, arrays or structs replaces that of this package, unless it
//     is the driver's own.
//   - A codec for a UUID type is replaced by that of this package. Register such a codec after Build.
//   - A codec for a type that [RegistryBuilder.RegisterNullUUIDType] registers, or for [uuid.NullUUID], is
//     kept.
//   - A hook does not apply to the types that are registered, nor to pointers to them.
//
// A registry can serve clients with different [Options]. The codec of structs of this package names the
// fields of a type for each set of options; the driver's keeps those of the first client. A codec of
// structs of the caller's must take care of that itself.
//
// A nil f, and an f that applies a builder to the registry, are errors of Build.
func (b *RegistryBuilder) With(f func(*bson.Registry)) *RegistryBuilder {
	b.with = append(b.with, f)
	return b
}

// WithoutPlans makes the registry encode and decode documents with the driver's codecs alone. Otherwise it
// compiles a plan for each type. The results are the same; docs/performance.md lists the exceptions.
// [CheckPlans] says why a type has no plan.
func (b *RegistryBuilder) WithoutPlans() *RegistryBuilder {
	b.withoutPlans = true
	return b
}

// Build returns a new registry with the driver's own codecs, the caller's and those for UUIDs. It
// reports the mistakes of all earlier calls in one error.
//
// The registry is safe for concurrent use. Between Build and its first use, the caller can register codecs,
// hooks and type map entries. They are in force as those of [RegistryBuilder.With], and so is a codec for a
// UUID type: in fields, pointers, slices, arrays, maps and any, and for the UUID of a type of
// RegisterNullUUIDType. A map key remains the text of the UUID.
//
// Register no codec and no hook after the first use. The registry obeys it for the types that it meets
// later, and not for those that it has met; where the driver works without plans, with Extended JSON, a
// registry of [RegistryBuilder.WithoutPlans] or a value that is given to its Encoder or Decoder, this
// differs from type to type. Entries of the type map are obeyed at any time.
func (b *RegistryBuilder) Build() (*bson.Registry, error) {
	reg := bson.NewRegistry()
	if err := b.ApplyTo(reg); err != nil {
		return nil, err
	}
	return reg, nil
}

// ApplyTo registers the codecs for UUIDs on a registry that the caller has, for instance one of
// [bson.NewMgoRegistry]. It returns the errors of Build, and an error if reg is nil or has codecs of this
// package. After an error reg is unchanged, unless a function of With applied another builder to it: do not use it
// then.
//
// A codec that reg has for a UUID type, or for a pointer to a type that is registered, is replaced. Its other codecs and
// its hooks are treated as those that a function of [RegistryBuilder.With] registers.
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
	if note.Stage == built.Nested {
		note.Stage = built.Done
		return errNested
	}
	a.register(afterWith)
	if !b.withoutPlans {
		note.Plans = a.registerPlans()
	}
	note.Stage = built.Done
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

// newNote gives reg a note. It is an error if reg has one already.
func newNote(reg *bson.Registry, rules *typeRules) (*built.Note, error) {
	if n := built.Of(reg); n != nil {
		if n.Stage != built.Done {
			n.Stage = built.Nested
			return nil, errNested
		}
		return nil, errors.New("bsoncodec: the registry has codecs for UUIDs already: build another")
	}
	n := &built.Note{Rules: rules, Stage: built.Building}
	n.AddTo(reg)
	return n, nil
}

var errNested = errors.New("bsoncodec: a function of With applied a builder to the registry that is being built: " +
	"one registry stores UUIDs in one representation")

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

// typeRules returns the rules of the registries of b.
func (b *RegistryBuilder) typeRules() *typeRules {
	r := &typeRules{uuids: typeSet(b.uuidTypes()), funcs: b.funcTypes(), bytes: typeSet(b.bytes), documents: typeSet(b.documents), unregistered: b.treatment()}
	for _, t := range b.nulls {
		r.uuids[t] = true
	}
	for t := range r.funcs {
		r.uuids[t] = true
	}
	r.subtype0 = b.subtype0 || b.generic || r.unregistered == asBytes
	return r
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

// funcTypes returns the types of RegisterUUIDFunc.
func (b *RegistryBuilder) funcTypes() map[reflect.Type]*uuidFunc {
	types := make(map[reflect.Type]*uuidFunc, len(b.funcs))
	for _, f := range b.funcs {
		types[f.t] = f
	}
	return types
}

// treatment returns what the registry does with types that are not registered.
func (b *RegistryBuilder) treatment() treatment {
	if len(b.unregistered) == 0 {
		return refuse
	}
	return b.unregistered[0]
}
