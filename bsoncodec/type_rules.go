package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"
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

// typeRules decide how a registry treats types: which are UUIDs, which are documents, and which are refused.
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

// treatment says how a registry treats the types of kind [16]byte that have no codec of their own.
type treatment uint8

const (
	refuse treatment = iota
	asUUID
	asBytes
)

// storesEmbedded reports whether the driver's codec of structs for a direction stores embedded fields that are not exported.
func (r *typeRules) storesEmbedded(decode bool) bool {
	if decode {
		return r.decodesEmbedded
	}
	return r.encodesEmbedded
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

// isLost reports whether the driver loses UUIDs of t for a client, with UseJSONStructTags or without.
func (r *typeRules) isLost(t reflect.Type) bool {
	return r.lost(t, false, false) != "" || r.lost(t, false, true) != ""
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

// A struct has the methods of the fields that it embeds. If one is a method for BSON, the driver calls it for the whole
// struct:
//
//	type Customer struct {
//		uuidrep.ID[Customer] `bson:"_id"`
//		Name                 string
//	}
//
// Within a document a Customer is a UUID then, and its Name is lost.

// errPromoted returns an error if the struct t has the method m from a field that it embeds, and other fields that the
// driver would store without the method. It returns nil for any other type.
func (r *typeRules) errPromoted(t reflect.Type, m method, jsonTags bool) error {
	origin, lost := m.promoted(t, r.storesEmbedded(m.decode), jsonTags, 0)
	if len(lost) == 0 {
		return nil
	}
	verb := "encodes"
	if m.decode {
		verb = "decodes"
	}
	fields := "the field " + lost[0]
	if len(lost) > 1 {
		fields = "the fields " + strings.Join(lost, ", ")
	}
	return &UnregisteredTypeError{Type: t, decode: m.decode, method: true, reason: fmt.Sprintf(
		"its method %s is that of the embedded field %s, which %s the whole struct, without %s: give the embedded field a name, "+
			`tag what is not to be stored with bson:"-", or call RegisterDocumentType(%s) of the RegistryBuilder for the document `+
			"of all fields", m.name(), origin, verb, fields, typeFor(t))}
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

// canHoldUUID reports whether a value of type t can hold a UUID that errSubtype0 looks for, as far as its type tells: one of
// kind [16]byte. A string, and what an interface can hold, count as UUIDs too, unless octets is set.
func (r *typeRules) canHoldUUID(t reflect.Type, octets bool) bool {
	return leadsTo(t, allFields, func(t reflect.Type) answer {
		if r.isOctetsOfUUID(t) || !octets && (t.Kind() == reflect.Interface || t.Kind() == reflect.String) {
			return yes
		}
		return look
	})
}

// isOctetsOfUUID reports whether t is an array of octets that is a UUID as far as the registry can tell.
func (r *typeRules) isOctetsOfUUID(t reflect.Type) bool { return isUUIDKind(t) && !r.bytes[t] }

// canBeDocument reports whether RegisterDocumentType takes t: a struct that is refused otherwise, for some client at least.
func (r *typeRules) canBeDocument(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	if nullFieldsOf(t) != nil || r.isLost(t) {
		return true
	}
	for _, jsonTags := range []bool{false, true} {
		for _, decode := range []bool{false, true} {
			if r.errInline(t, decode, jsonTags, 0) != nil {
				return true
			}
			for _, whole := range []bool{false, true} {
				if _, lost := (method{decode, whole}).promoted(t, true, jsonTags, 0); len(lost) > 0 {
					return true
				}
			}
		}
	}
	f, ok := soleField(t, true) // with "json" struct tags no other field is left out
	if ok && f.Type.Kind() == reflect.Pointer {
		f.Type = f.Type.Elem()
	}
	return ok && (canBeUUID(f.Type) || nullFieldsOf(f.Type) != nil)
}

// document returns the value in val, without pointers and interfaces around it, if its type is registered as a document.
func (r *typeRules) document(val reflect.Value) (reflect.Value, bool) {
	if len(r.documents) == 0 {
		return val, false
	}
	for val.Kind() == reflect.Pointer || val.Kind() == reflect.Interface {
		val = val.Elem()
	}
	return val, val.IsValid() && r.documents[val.Type()]
}

// A methodType says how the rules treat a method of one type.
type methodType struct {
	refusal
	searched bool // what the method returns is searched for UUIDs of the value
}

// method returns what the rules say of the method m of t.
func (r *typeRules) method(t reflect.Type, m method) *methodType {
	type key struct {
		t reflect.Type
		m method
	}
	if known, ok := r.methods.Load(key{t, m}); ok {
		return known.(*methodType)
	}
	k := &methodType{refusal: refusal{r.errPromoted(t, m, false), r.errPromoted(t, m, true)}}
	k.searched = !m.decode && !r.subtype0 && t.PkgPath() != tStandardUUID.PkgPath() && // which writes no subtype 0
		r.canHoldUUID(t, false)
	known, _ := r.methods.LoadOrStore(key{t, m}, k)
	return known.(*methodType)
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

// isTransition reports whether err says that a value stands where a document must be.
func isTransition(err error) bool {
	var e bson.TransitionError
	return errors.As(err, &e)
}
