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
)

// The driver encodes a struct as a document of its exported fields. A struct around a UUID, such as
//
//	type OrderID struct{ uuid.UUID }
//
// becomes {uuid: …} then, which no other program reads, and the document of one whose field is not
// exported is empty. The codecs of structs refuse such types inside documents, unless the builder
// says what they are.

// typeRules are what a registry knows of types of structs.
type typeRules struct {
	uuids, bytes, documents map[reflect.Type]bool // the registered types, those of UUIDs that can be null among uuids
	unregistered            treatment
	encode, decode          sync.Map // of reflect.Type to *verdict
}

// typeRules returns the rules of the registries of b.
func (b *RegistryBuilder) typeRules() *typeRules {
	r := &typeRules{uuids: typeSet(b.types), bytes: typeSet(b.bytes), documents: typeSet(b.documents), unregistered: b.treatment()}
	for _, t := range b.nulls {
		r.uuids[t] = true
	}
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
		v.anywhere = refusal{r.errInline(t, decode, false, 0), r.errInline(t, decode, true, 0)}
	}
	if !r.documents[t] {
		v.inside = refusal{r.errWrapper(t, decode, false), r.errWrapper(t, decode, true)}
	}
	v.refused = v.anywhere != refusal{} || v.inside != refusal{}
	return v
}

// errInline returns the error of a struct that has a struct around a UUID inline, or within what is inline, if the driver
// does not store that UUID or stores it in another representation. It is nil if there is none.
func (r *typeRules) errInline(t reflect.Type, decode, jsonTags bool, depth int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		_, flags, _ := strings.Cut(structTag(f, jsonTags), ",")
		if !f.IsExported() && !f.Anonymous || !slices.Contains(strings.Split(flags, ","), "inline") {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || depth > maxPointers {
			continue
		}
		var reason string
		switch sole, ok := soleField(inner, jsonTags); {
		case !ok || !r.isUUID(sole.Type, 0):
		case !sole.IsExported() && (hasText(inner) || r.uuids[inner] || isValueOfItsOwn(inner, decode)):
			reason = "a UUID that is not exported, which the driver does not store"
		case sole.Anonymous && structTag(sole, jsonTags) != "" && isValueOfItsOwn(sole.Type, decode):
			// The methods are those of the UUID, which the driver calls for the key.
		case sole.Anonymous && isValueOfItsOwn(inner, decode):
			reason = "a UUID with methods for BSON, which the driver does not call then"
		}
		if reason != "" {
			return &UnregisteredTypeError{Type: inner, decode: decode, reason: fmt.Sprintf(
				"the field %s of %v has the tag inline and is a struct around %s: give it a key of its own", f.Name, t, reason)}
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
	stored, register := r.aroundUUID(t, jsonTags), "RegisterUUIDType"
	if stored == "" {
		stored, register = r.nullUUID(t, jsonTags), "RegisterNullUUIDType"
	}
	if stored == "" {
		return nil
	}
	if p := reflect.PointerTo(t); !decode && (p.Implements(tValueMarshaler) || p.Implements(tMarshaler)) {
		return errPointerReceiver(t)
	}
	var wayOut string
	switch {
	case canBeUUID(t) || newNullUUIDCodec(t) != nil:
		wayOut = fmt.Sprintf("call %s(%s) of the RegistryBuilder to store the UUID, or RegisterDocumentType for that document",
			register, typeFor(t))
	case canBeDocument(t):
		wayOut = fmt.Sprintf("use the UUID itself, or call RegisterDocumentType(%s) of the RegistryBuilder for that document", typeFor(t))
	default:
		wayOut = "use the UUID itself, or register a codec for the type"
	}
	return &UnregisteredTypeError{Type: t, decode: decode, reason: "it is " + stored + ": " + wayOut}
}

// aroundUUID says how a struct around a UUID is stored, "" if t is none.
func (r *typeRules) aroundUUID(t reflect.Type, jsonTags bool) string {
	f, ok := soleField(t, jsonTags)
	switch {
	case !ok || structTag(f, jsonTags) != "" || !r.isUUID(f.Type, 0):
		return ""
	case f.Anonymous && f.IsExported():
		return fmt.Sprintf("a struct around a UUID, which the driver stores as the document {%s: …}", strings.ToLower(f.Name))
	case f.Anonymous, !f.IsExported() && hasText(t):
		return "a struct around a UUID that is not exported, which the driver stores as an empty document"
	}
	return ""
}

// nullUUID says how a UUID that can be null is stored, "" if t is none.
func (r *typeRules) nullUUID(t reflect.Type, jsonTags bool) string {
	c := newNullUUIDCodec(t)
	if c == nil || !hasScan(t) || structTag(t.Field(c.uuid), jsonTags) != "" || structTag(t.Field(c.valid), jsonTags) != "" ||
		!r.isUUID(t.Field(c.uuid).Type, 0) {
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
		return ok && structTag(f, false) == "" && (f.Anonymous || !f.IsExported() && hasText(t)) && r.isUUID(f.Type, depth+1)
	}
	return false
}

// soleField returns the field of the struct type t, if it has one besides those named _ and those that the driver skips.
func soleField(t reflect.Type, jsonTags bool) (sole reflect.StructField, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" || structTag(f, jsonTags) == "-" {
			continue
		}
		if ok {
			return sole, false
		}
		sole, ok = f, true
	}
	return sole, ok
}

// structTag returns the struct tag of f that the driver reads.
func structTag(f reflect.StructField, jsonTags bool) string {
	tag, ok := f.Tag.Lookup("bson")
	if !ok && jsonTags {
		tag, ok = f.Tag.Lookup("json")
	}
	if !ok && !strings.Contains(string(f.Tag), ":") {
		tag = string(f.Tag)
	}
	return tag
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
		key := ""
		if f.IsExported() {
			key, _, _ = strings.Cut(structTag(f, false), ",")
			if key == "" {
				key = strings.ToLower(f.Name)
			}
		}
		field, keys = append(field, f.Index...), append(keys, strings.ToLower(key))
		t = f.Type
	}
	if !isUUIDKind(t) {
		return nil, nil
	}
	return field, keys
}

// typeFor returns the expression of Go for the reflect.Type t, as far as its name tells.
func typeFor(t reflect.Type) string {
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
	return "reflect.TypeFor[" + name.String() + "]()"
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
	usesJSON := func() bool {
		ec.Registry = nil
		return optionsByEncodeContext()[ec].UseJSONStructTags
	}
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
	usesJSON := func() bool {
		dc.Registry = nil
		return optionsByDecodeContext()[dc].UseJSONStructTags
	}
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
	mark, ok := buildMarkOf(reg)
	return ok && mark.rules.of(t, true).refused
}

// isTransition reports whether err says that a value stands where a document must be.
func isTransition(err error) bool {
	var e bson.TransitionError
	return errors.As(err, &e)
}
