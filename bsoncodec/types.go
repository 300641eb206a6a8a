package bsoncodec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
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
	tTime         = reflect.TypeFor[time.Time]()

	tValueMarshaler   = reflect.TypeFor[bson.ValueMarshaler]()
	tValueUnmarshaler = reflect.TypeFor[bson.ValueUnmarshaler]()
	tMarshaler        = reflect.TypeFor[bson.Marshaler]()
	tUnmarshaler      = reflect.TypeFor[bson.Unmarshaler]()
	tKeyMarshaler     = reflect.TypeFor[bson.KeyMarshaler]()
	tKeyUnmarshaler   = reflect.TypeFor[bson.KeyUnmarshaler]()
	tTextMarshaler    = reflect.TypeFor[encoding.TextMarshaler]()
	tTextUnmarshaler  = reflect.TypeFor[encoding.TextUnmarshaler]()
	tJSONMarshaler    = reflect.TypeFor[json.Marshaler]()
	tLocker           = reflect.TypeFor[sync.Locker]()
)

// isOctets reports whether the driver takes t for binary data of 16 bytes.
func isOctets(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem() == tByte
}

// isUUIDKind reports whether t can be registered as a UUID. An array of 16 elements of a defined
// byte type can, although the driver takes it for an array of integers.
func isUUIDKind(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem().Kind() == reflect.Uint8
}

// canBeUUID reports whether t can be registered as a UUID.
func canBeUUID(t reflect.Type) bool {
	if t.Kind() == reflect.Struct {
		field, _ := uuidField(t)
		return field != nil
	}
	return isUUIDKind(t)
}

// uuidField returns the path to the UUID in a struct around one, as [reflect.Value.FieldByIndex] takes it, and the key of
// each field on the path in the documents that the driver writes, as [keyOf] returns it. Both are nil if t is not such a
// struct.
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

// keyOf returns the key of f in the documents that the driver writes, in lower case. It is "" if the driver leaves f out.
func keyOf(f reflect.StructField) string {
	if !f.IsExported() {
		return ""
	}
	return strings.ToLower(elements.TagOf(f, false).Name)
}

// newKey returns a key of type t and the octets of its UUID.
func newKey(t reflect.Type) (key reflect.Value, octets []byte) {
	key = reflect.New(t).Elem()
	if field, _ := uuidField(t); field != nil {
		return key, key.FieldByIndex(field).Bytes()
	}
	return key, key.Bytes()
}

// settable returns v, a field of an addressable struct, so that it can be set if it is not exported too.
func settable(v reflect.Value) reflect.Value {
	if v.CanSet() {
		return v
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// nullFields describes the two fields of a UUID that can be null.
type nullFields struct {
	uuid, valid int   // the indexes of the fields
	octets      []int // the path to the octets, as FieldByIndex takes it

	// The keys of the fields in the documents that the driver writes, as keyOf returns them.
	key, validKey string
}

// nullFieldsOf returns the fields of t, nil if it is not a struct of a UUID and a bool.
func nullFieldsOf(t reflect.Type) *nullFields {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := fieldsOf(t, false)
	if len(fields) != 2 {
		return nil
	}
	for i, u := range fields {
		if v := fields[1-i]; v.Type.Kind() == reflect.Bool && canBeUUID(u.Type) {
			inner, _ := uuidField(u.Type)
			return &nullFields{uuid: u.Index[0], valid: v.Index[0], octets: append(u.Index, inner...), key: keyOf(u), validKey: keyOf(v)}
		}
	}
	return nil
}

// isWhole reports whether the documents that the driver writes hold both fields.
func (c *nullFields) isWhole() bool { return c.key != "" && c.validKey != "" }

// canBeNull reports whether t can be registered as a UUID that can be null.
func canBeNull(t reflect.Type) bool {
	f := nullFieldsOf(t)
	return f != nil && !hasOwnRepresentation(t.Field(f.uuid).Type)
}

// hasOwnRepresentation reports whether t is a type of package uuidrep that has a representation of its own.
func hasOwnRepresentation(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == tStandardUUID.PkgPath()
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
			case found.Name() == "noCopy": // a type with such a field must not be copied itself
				return t
			default:
				return found
			}
		}
	}
	return nil
}

// maxPointers is how many pointers and structs around a UUID isUUID looks behind.
const maxPointers = 8

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

// hasText reports whether t or *t is text or JSON.
func hasText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(tTextMarshaler) || p.Implements(tJSONMarshaler)
}

// hasScan reports whether *t is a database/sql.Scanner.
func hasScan(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Scan(any) error }]())
}

// methodTypeOf returns the type whose method the driver calls for val, without pointers and interfaces around it. It is nil
// if there is no value.
func methodTypeOf(val reflect.Value) reflect.Type {
	for val.Kind() == reflect.Pointer || val.Kind() == reflect.Interface {
		val = val.Elem()
	}
	if !val.IsValid() {
		return nil
	}
	return val.Type()
}

func typeSet(types []reflect.Type) map[reflect.Type]bool {
	set := make(map[reflect.Type]bool, len(types))
	for _, t := range types {
		set[t] = true
	}
	return set
}
