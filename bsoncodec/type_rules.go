package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// The driver encodes a struct as a document of its exported fields. A struct around a UUID, such as
//
//	type OrderID struct{ uuid.UUID }
//
// becomes {uuid: …} then, which no other program reads. The codecs of structs refuse such types inside
// documents. Where the fields are not exported, the UUIDs are lost: such types are refused as whole
// documents too, because an empty filter matches every document. The builder says what they are.

// typeRules are what a registry knows of types of structs.
type typeRules struct {
	uuids, bytes, documents map[reflect.Type]bool // the registered types, those of UUIDs that can be null among uuids
	funcs                   map[reflect.Type]*uuidFunc
	unregistered            treatment
	encode, decode          sync.Map // of reflect.Type to *verdict
	methods                 sync.Map // of types and methods to *methodType
	subtype0                bool     // methods may return UUIDs as subtype 0

	// The driver's codec of structs stores embedded fields that are not exported.
	encodesEmbedded, decodesEmbedded bool
}

// storesEmbedded reports whether the driver's codec of structs for a direction stores embedded fields that are not exported.
func (r *typeRules) storesEmbedded(decode bool) bool {
	if decode {
		return r.decodesEmbedded
	}
	return r.encodesEmbedded
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

// A verdict says whether a type of structs is refused in one direction, and why.
type verdict struct {
	refused  bool
	anywhere refusal
	inside   refusal     // in a document
	settled  atomic.Bool // settleFields was called
}

// A refusal is why a type is refused, nil if it is not.
type refusal struct {
	err      error
	withJSON error // if "json" struct tags stand in for "bson" struct tags
}

// of returns the error for a client, which is asked for its tags only if these decide.
func (r refusal) of(usesJSON func() bool) error {
	if (r.err == nil) != (r.withJSON == nil) && usesJSON() {
		return r.withJSON
	}
	return r.err
}

// of returns the verdict on t, a type of structs without a codec of its own.
func (r *typeRules) of(t reflect.Type, decode bool) *verdict {
	known := &r.encode
	if decode {
		known = &r.decode
	}
	v, ok := known.Load(t)
	if !ok {
		v, _ = known.LoadOrStore(t, r.decide(t, decode))
	}
	return v.(*verdict)
}

func (r *typeRules) decide(t reflect.Type, decode bool) *verdict {
	v := new(verdict)
	err := errV1Type(t, decode)
	if err == nil && holdsUUID(t) {
		if decode {
			err = errV1Unmarshaler(t)
		} else {
			err = errV1Marshaler(t)
		}
	}
	if v.anywhere = (refusal{err, err}); err == nil {
		v.anywhere = refusal{r.errAnywhere(t, decode, false), r.errAnywhere(t, decode, true)}
	}
	if !r.documents[t] {
		v.inside = refusal{r.errWrapper(t, decode, false), r.errWrapper(t, decode, true)}
	}
	v.refused = v.anywhere != refusal{} || v.inside != refusal{}
	return v
}

// errAnywhere returns the error of a struct of which a UUID is lost, or stored in another representation. It is nil if
// there is none.
func (r *typeRules) errAnywhere(t reflect.Type, decode, jsonTags bool) error {
	if r.documents[t] {
		return nil
	}
	if err := r.errInline(t, decode, jsonTags, 0); err != nil {
		return err
	}
	if lost := r.lost(t, r.storesEmbedded(decode), jsonTags); lost != "" {
		return r.errRefused(t, decode, lost)
	}
	return nil
}

// lost says how the driver stores t, a struct type, if UUIDs in it are lost by that, and "" if none are. Next to a field
// that is stored, one that is not exported is left out on purpose, but for a UUID with the bool that says whether it is there.
func (r *typeRules) lost(t reflect.Type, embedded, jsonTags bool) string {
	if !stores(t, embedded, jsonTags, map[reflect.Type]bool{}) {
		switch _, sole := soleField(t, jsonTags); {
		case !r.reaches(t, jsonTags):
			return ""
		case sole:
			return "a struct around a UUID that is not exported, which the driver stores as an empty document"
		}
		return "a struct with a UUID of which no field is exported, so that the driver stores an empty document"
	}
	fields := fieldsOf(t, jsonTags)
	if len(fields) != 2 {
		return ""
	}
	for i, f := range fields {
		if valid := fields[1-i]; valid.Type.Kind() == reflect.Bool && !isStored(f, embedded) && r.isUUID(f.Type, 0) {
			return "a bool and a UUID that is not exported, of which the driver stores the bool alone"
		}
	}
	return ""
}

// lostInline returns the name of an embedded field of the struct type t that is not exported and has the tag inline, if the
// driver does not store it and there is a UUID in it, and "" if there is none.
func (r *typeRules) lostInline(t reflect.Type, embedded, jsonTags bool) string {
	for _, f := range fieldsOf(t, jsonTags) {
		if f.Anonymous && !isStored(f, embedded) && elements.TagOf(f, jsonTags).Inline && r.reaches(f.Type, jsonTags) {
			return f.Name
		}
	}
	return ""
}

// isStored reports whether the driver stores f, unless the struct tag says otherwise. It can be told to store embedded
// fields that are not exported.
func isStored(f reflect.StructField, embedded bool) bool {
	return f.IsExported() || embedded && f.Anonymous
}

// stores reports whether the documents that the driver writes for the struct type t can have an element. The types in seen
// have none.
func stores(t reflect.Type, embedded, jsonTags bool, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		tag := elements.TagOf(f, jsonTags)
		if !isStored(f, embedded) || tag.Skip {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if !tag.Inline || inner.Kind() != reflect.Struct || stores(inner, embedded, jsonTags, seen) {
			return true
		}
	}
	return false
}

// reaches reports whether a value of type t holds a UUID or leads to one, through any field that is not tagged "-". Nothing
// is known of interfaces.
func (r *typeRules) reaches(t reflect.Type, jsonTags bool) bool {
	fields := func(t reflect.Type) []reflect.StructField { return fieldsOf(t, jsonTags) }
	return leadsTo(t, fields, func(t reflect.Type) answer {
		switch {
		case r.bytes[t], isOctets(t) && !r.uuids[t] && r.unregistered == asBytes:
			return no
		case r.uuids[t], isOctets(t):
			return yes
		}
		return look
	})
}

// An answer says whether a type is what is looked for, or may lead to it.
type answer uint8

const (
	look answer = iota
	no
	yes
)

// leadsTo reports whether tell answers yes for t or for a type that values of type t lead to: through pointers, elements,
// keys, and the fields of structs that fields returns. It does not look into a type for which tell answers no.
func leadsTo(t reflect.Type, fields func(reflect.Type) []reflect.StructField, tell func(reflect.Type) answer) bool {
	seen := map[reflect.Type]bool{}
	var leads func(t reflect.Type) bool
	leads = func(t reflect.Type) bool {
		if seen[t] {
			return false
		}
		seen[t] = true
		switch tell(t) {
		case yes:
			return true
		case no:
			return false
		}
		switch t.Kind() {
		case reflect.Array:
			return t.Len() > 0 && leads(t.Elem())
		case reflect.Pointer, reflect.Slice:
			return leads(t.Elem())
		case reflect.Map:
			return leads(t.Key()) || leads(t.Elem())
		case reflect.Struct:
			if to := pointsTo(t); to != nil && leads(to) {
				return true
			}
			return slices.ContainsFunc(fields(t), func(f reflect.StructField) bool { return leads(f.Type) })
		}
		return false
	}
	return leads(t)
}

// pointsTo returns what the struct type t is a pointer to, as [atomic.Pointer] and weak.Pointer are: a field is an
// [unsafe.Pointer], and another one is an empty array of pointers that says of which type. It is nil for any other type.
func pointsTo(t reflect.Type) (to reflect.Type) {
	pointer := false
	for i := range t.NumField() {
		switch f := t.Field(i).Type; {
		case f.Kind() == reflect.UnsafePointer:
			pointer = true
		case f.Kind() == reflect.Array && f.Len() == 0 && f.Elem().Kind() == reflect.Pointer:
			to = f.Elem().Elem()
		}
	}
	if !pointer {
		return nil
	}
	return to
}

var tLocker = reflect.TypeFor[sync.Locker]()

// mustNotCopy returns the type in t, or t itself, whose values must not be copied, as a [sync.Mutex] or an [atomic.Pointer]:
// a pointer to it can be locked, which is how go vet tells them. It is nil if there is none.
func mustNotCopy(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() > 0 {
			return mustNotCopy(t.Elem())
		}
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(tLocker) && !t.Implements(tLocker) {
			return t
		}
		for i := range t.NumField() {
			switch found := mustNotCopy(t.Field(i).Type); {
			case found == nil:
			case found.Name() == "noCopy": // by such a field a type says it of itself
				return t
			default:
				return found
			}
		}
	}
	return nil
}

// errInline returns the error of a struct that has a struct around a UUID inline, or within what is inline, if the driver
// does not store that UUID or stores it in another representation. It is nil if there is none. What is inline of a type
// that is registered as a document is part of that.
func (r *typeRules) errInline(t reflect.Type, decode, jsonTags bool, depth int) error {
	embedded := r.storesEmbedded(decode)
	if name := r.lostInline(t, embedded, jsonTags); name != "" {
		return &UnregisteredTypeError{Type: t, decode: decode, reason: fmt.Sprintf("its field %s has the tag inline and a UUID in it, "+
			"and the driver stores nothing of an embedded type that is not exported: export the type, or call "+
			"RegisterDocumentType(%s) of the RegistryBuilder to leave it out", name, typeFor(t))}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !isStored(f, embedded) || !elements.TagOf(f, jsonTags).Inline {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || depth > maxPointers || r.documents[inner] {
			continue
		}
		var reason string
		switch sole, ok := soleField(inner, jsonTags); {
		case r.lost(inner, embedded, jsonTags) != "":
			reason = "a UUID that is not exported, which the driver does not store"
		case r.funcs[inner] != nil:
			reason = "a UUID by functions, which are not called then"
		case !ok || !r.isUUID(sole.Type, 0):
		case !sole.IsExported() && (hasText(inner) || r.uuids[inner] || isValueOfItsOwn(inner, decode)):
			reason = "a UUID that is not exported, which the driver does not store"
		case sole.Anonymous && elements.TagText(sole, jsonTags) != "" && isValueOfItsOwn(sole.Type, decode):
			// The methods are those of the UUID, which the driver calls for the key.
		case sole.Anonymous && isValueOfItsOwn(inner, decode):
			reason = "a UUID with methods for BSON, which the driver does not call then"
		}
		if reason != "" {
			return &UnregisteredTypeError{Type: inner, decode: decode, reason: fmt.Sprintf(
				"the field %s of %v has the tag inline and is a struct around %s: give it a key of its own, or call "+
					"RegisterDocumentType(%s) of the RegistryBuilder for that document", f.Name, t, reason, typeFor(t))}
		}
		if err := r.errInline(inner, decode, jsonTags, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isValueOfItsOwn reports whether t or *t, or what t points to, has the driver's method for values in a direction.
func isValueOfItsOwn(t reflect.Type, decode bool) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decode {
		return reflect.PointerTo(t).Implements(tValueUnmarshaler)
	}
	return reflect.PointerTo(t).Implements(tValueMarshaler)
}

// errWrapper returns the error of a struct around a UUID, or of a UUID that can be null, inside a document. It is nil if
// t is neither.
func (r *typeRules) errWrapper(t reflect.Type, decode, jsonTags bool) error {
	stored := r.aroundUUID(t, jsonTags)
	if stored == "" {
		stored = r.nullUUID(t, jsonTags)
	}
	if stored == "" {
		return nil
	}
	return r.errRefused(t, decode, stored)
}

// errRefused returns the error of t, a struct that the driver stores as it says, with the call to make.
func (r *typeRules) errRefused(t reflect.Type, decode bool, stored string) error {
	if p := reflect.PointerTo(t); !decode && (p.Implements(tValueMarshaler) || p.Implements(tMarshaler)) {
		return errPointerReceiver(t)
	}
	const orDocument = "call %s(%s) of the RegistryBuilder to store the UUID, or RegisterDocumentType for that document"
	var wayOut string
	switch never := mustNotCopy(t); {
	case canBeUUID(t):
		wayOut = fmt.Sprintf(orDocument, "RegisterUUIDType", typeFor(t))
	case canBeNull(t):
		wayOut = fmt.Sprintf(orDocument, "RegisterNullUUIDType", typeFor(t))
	case never != nil:
		wayOut = fmt.Sprintf("use the UUID itself, because a value of type %v must not be copied, or call RegisterDocumentType(%s) "+
			"of the RegistryBuilder for that document", never, typeFor(t))
	case r.isLost(t):
		wayOut = fmt.Sprintf("call RegisterUUIDFunc[%s] of package bsoncodec if it is one UUID, or RegisterDocumentType(%s) of the "+
			"RegistryBuilder for that document", typeName(t), typeFor(t))
	case r.canBeDocument(t):
		wayOut = fmt.Sprintf("use the UUID itself, or call RegisterDocumentType(%s) of the RegistryBuilder for that document", typeFor(t))
	default:
		wayOut = "use the UUID itself, or register a codec for the type"
	}
	return &UnregisteredTypeError{Type: t, decode: decode, reason: "it is " + stored + ": " + wayOut}
}

// aroundUUID says how a struct around a UUID is stored, "" if t is none.
func (r *typeRules) aroundUUID(t reflect.Type, jsonTags bool) string {
	f, ok := soleField(t, jsonTags)
	if !ok || !f.Anonymous || elements.TagText(f, jsonTags) != "" || !r.isUUID(f.Type, 0) {
		return ""
	}
	return fmt.Sprintf("a struct around a UUID, which the driver stores as the document {%s: …}", strings.ToLower(f.Name))
}

// nullUUID says how a UUID that can be null is stored, "" if t is none.
func (r *typeRules) nullUUID(t reflect.Type, jsonTags bool) string {
	c := nullFieldsOf(t)
	if c == nil || !hasScan(t) {
		return ""
	}
	id, valid := t.Field(c.uuid), t.Field(c.valid)
	if !id.IsExported() || valid.Name != "Valid" || elements.TagText(id, jsonTags) != "" || elements.TagText(valid, jsonTags) != "" || !r.isUUID(id.Type, 0) {
		return ""
	}
	return fmt.Sprintf("a UUID that can be null, which the driver stores as the document {%s: …, valid: …}", c.key)
}

// maxPointers is how many pointers and structs around a UUID isUUID looks behind.
const maxPointers = 8

// isUUID reports whether t is a UUID to the registry: registered or of kind [16]byte, a pointer to one or a
// struct around one, whatever codec or methods it has.
func (r *typeRules) isUUID(t reflect.Type, depth int) bool {
	switch {
	case depth > maxPointers || r.bytes[t] || r.documents[t]:
		return false
	case r.uuids[t]:
		return true
	case isOctets(t):
		return r.unregistered != asBytes
	case t.Kind() == reflect.Pointer:
		return r.isUUID(t.Elem(), depth+1)
	case t.Kind() == reflect.Struct:
		f, ok := soleField(t, false)
		return ok && elements.TagText(f, false) == "" && (f.Anonymous || !f.IsExported()) && r.isUUID(f.Type, depth+1)
	}
	return false
}

// fieldsOf returns the fields of the struct type t besides those named _ and those that the driver skips.
func fieldsOf(t reflect.Type, jsonTags bool) []reflect.StructField {
	var fields []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "_" && !elements.TagOf(f, jsonTags).Skip {
			fields = append(fields, f)
		}
	}
	return fields
}

// allFields returns the fields of the struct type t.
func allFields(t reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		fields = append(fields, t.Field(i))
	}
	return fields
}

// soleField returns the field of the struct type t, if [fieldsOf] returns one.
func soleField(t reflect.Type, jsonTags bool) (sole reflect.StructField, ok bool) {
	fields := fieldsOf(t, jsonTags)
	if len(fields) != 1 {
		return sole, false
	}
	return fields[0], true
}

// hasText reports whether t or *t is text or JSON.
func hasText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(tTextMarshaler) || p.Implements(tJSONMarshaler)
}

// hasScan reports whether *t is a database/sql.Scanner.
func hasScan(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Scan(any) error }]())
}

// canBeUUID reports whether t can be registered as a UUID.
func canBeUUID(t reflect.Type) bool {
	if t.Kind() == reflect.Struct {
		field, _ := uuidField(t)
		return field != nil
	}
	return isUUIDKind(t)
}

// uuidField returns where the UUID is in a struct around one: the indexes of the field, of the field in that, and so
// on. The keys are those of the documents that the driver writes, "" for a field that it leaves out. The field is nil
// if t is not such a struct.
func uuidField(t reflect.Type) (field []int, keys []string) {
	for t.Kind() == reflect.Struct {
		f, ok := soleField(t, false)
		if !ok {
			return nil, nil
		}
		field, keys = append(field, f.Index...), append(keys, keyOf(f))
		t = f.Type
	}
	if !isUUIDKind(t) {
		return nil, nil
	}
	return field, keys
}

// keyOf returns the key of f in the documents that the driver writes, in lower case, "" if it leaves f out.
func keyOf(f reflect.StructField) string {
	if !f.IsExported() {
		return ""
	}
	return strings.ToLower(elements.TagOf(f, false).Name)
}

// hasOwnRepresentation reports whether t is a type of package uuidrep that has a representation of its own.
func hasOwnRepresentation(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == tStandardUUID.PkgPath()
}

// typeFor returns the expression of Go for the reflect.Type t, as far as its name tells.
func typeFor(t reflect.Type) string { return "reflect.TypeFor[" + typeName(t) + "]()" }

// typeName returns the name of t in Go, as far as it tells.
func typeName(t reflect.Type) string {
	var name strings.Builder
	start := 0 // of the last identifier or import path
	s := t.String()
	for i := range len(s) {
		switch s[i] {
		case '[', ']', ',', '*', ' ', '{', '}':
			name.WriteString(s[start : i+1])
			start = i + 1
		case '/':
			start = i + 1
		}
	}
	name.WriteString(s[start:])
	return name.String()
}

// qualified returns the name of t with the import path of its package.
func qualified(t reflect.Type) string {
	if t.PkgPath() == "" {
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}

// encodeError returns the error of encoding a value of a type that is refused to vw, nil if it is a whole document.
func (v *verdict) encodeError(ec bson.EncodeContext, vw bson.ValueWriter) error {
	usesJSON := func() bool { return encodesJSONTags(ec) }
	if err := v.anywhere.of(usesJSON); err != nil {
		return err
	}
	// At the top level a writer refuses to write null, without any effect.
	if err := v.inside.of(usesJSON); err != nil && !isTransition(vw.WriteNull()) {
		return err
	}
	return nil
}

// decodeError returns the error of decoding what is at vr into a value of a type that is refused, nil if it is a whole document.
func (v *verdict) decodeError(dc bson.DecodeContext, vr bson.ValueReader) error {
	usesJSON := func() bool { return decodesJSONTags(dc) }
	if err := v.anywhere.of(usesJSON); err != nil {
		return err
	}
	if err := v.inside.of(usesJSON); err != nil && !isTransition(vr.ReadNull()) {
		return err
	}
	return nil
}

// refusedInside reports whether reg refuses to decode into what v points to inside a document, and not as a whole one.
func refusedInside(reg *bson.Registry, v any) bool {
	t := reflect.TypeOf(v)
	for depth := 0; t != nil && t.Kind() == reflect.Pointer && depth < maxPointers; depth++ {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	rules := rulesOf(reg)
	return rules != nil && rules.of(t, true).refused
}

// isTransition reports whether err says that a value stands where a document must be.
func isTransition(err error) bool {
	var e bson.TransitionError
	return errors.As(err, &e)
}
