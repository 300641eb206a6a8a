package autoid

import (
	"reflect"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// placement says where the encoded form of a document can have its _id.
type placement uint8

const (
	anywhere     placement = iota // only the encoded form tells
	nowhere                       // there is none
	somewhere                     // there is one
	firstOrNever                  // the first element is the _id, or there is none
	replaced                      // there is none, or one that counts as missing
)

// A reading is how the driver reads the tags of structs for one client.
type reading struct {
	json      bool // UseJSONStructTags
	omitEmpty bool // OmitEmpty
}

// readings holds the reading of each context without a registry: bson.EncodeContext to reading.
var readings sync.Map

// readingOf returns the reading of ec, which keeps its options to itself: an encoder without a past
// is asked for it.
func readingOf(ec bson.EncodeContext) reading {
	ec.Registry = nil
	if r, ok := readings.Load(ec); ok {
		return r.(reading)
	}
	asked := ec
	asked.Registry = bson.NewRegistry()
	// Nothing can fail: the driver's codecs encode two bools into memory.
	doc, _ := encodeDocument(asked, tagged{Named: true})
	_, notNamed := doc.LookupErr("json")
	_, notEmpty := doc.LookupErr("empty")
	r := reading{json: notNamed == nil, omitEmpty: notEmpty != nil}
	readings.Store(ec, r)
	return r
}

// tagged is a struct whose encoded form shows a reading.
type tagged struct {
	Named bool `json:"json"`
	Empty bool `bson:"empty"`
}

// idField describes the _id that the driver writes for a struct type.
type idField struct {
	where placement // if the value does not tell more

	elements.Field // that is the _id, with the OmitEmpty of the client; its Index is nil if it is not known

	empty func(reflect.Value) bool // reports whether the driver takes the field for empty; nil if it is not known
	sure  bool                     // no other field can be the _id

	either []*idField // those of the two readings, if only the encoded form tells which one is the _id
}

// zeroFields returns the fields of v, a struct, that can be its _id and count as missing, if only the encoded form
// tells which field it is.
func (f *idField) zeroFields(v reflect.Value, zeroIsMissing bool) []reflect.Value {
	var zero []reflect.Value
	for _, one := range f.either {
		field, ok := one.value(v)
		if ok && isZero(field) && (zeroIsMissing || one.OmitEmpty && isWrittenWhenZero(field)) {
			zero = append(zero, field)
		}
	}
	return zero
}

// place tells where v, a struct, has its _id, and returns the field if it is known and there. If
// zeroIsMissing, a zero _id counts as missing.
func (f *idField) place(v reflect.Value, zeroIsMissing bool) (placement, reflect.Value) {
	field, ok := f.value(v)
	switch {
	case !ok && zeroIsMissing && f.where != nowhere:
		return anywhere, field
	case !ok:
		return f.where, field
	case f.sure && f.OmitEmpty && f.empty != nil && f.empty(field):
		return nowhere, field
	case isZero(field) && (zeroIsMissing || f.OmitEmpty && isWrittenWhenZero(field)):
		return replaced, field
	case f.sure && !f.OmitEmpty, f.sure && f.empty != nil:
		return somewhere, field
	default:
		return f.where, field // an option of the client can omit the field
	}
}

// isWrittenWhenZero reports whether v is an array or a struct, to which the driver does not apply omitempty, or leads to a
// UUID that can be null.
func isWrittenWhenZero(v reflect.Value) bool {
	if v.Kind() == reflect.Array || v.Kind() == reflect.Struct {
		return true
	}
	for range maxPointers {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		v = v.Elem()
	}
	return v.IsValid() && isNullUUID(v.Type())
}

// isNullUUID reports whether t is a struct of a UUID and of a bool that says whether it is valid.
func isNullUUID(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() != 2 {
		return false
	}
	id, valid := t.Field(0).Type, t.Field(1).Type
	return id.Kind() == reflect.Array && id.Len() == 16 && id.Elem().Kind() == reflect.Uint8 && valid.Kind() == reflect.Bool
}

// value returns the field of v that is the _id, if it is known and there.
func (f *idField) value(v reflect.Value) (reflect.Value, bool) {
	if f.Index == nil {
		return reflect.Value{}, false
	}
	return f.Value(v)
}

// isZero reports whether v is nil, zero, or a pointer to something zero.
func isZero(v reflect.Value) bool {
	for range maxPointers {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		v = v.Elem()
	}
	if v.IsValid() {
		if z, ok := v.Interface().(bson.Zeroer); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			return z.IsZero()
		}
	}
	return !v.IsValid() || v.IsZero()
}

// idFields holds the idField of each struct type and reading: readType to *idField.
var idFields sync.Map

type readType struct {
	t reflect.Type
	reading
}

// idFieldOf returns what t tells if the driver reads its tags as r.
func idFieldOf(t reflect.Type, r reading) *idField {
	key := readType{t, r}
	if f, ok := idFields.Load(key); ok {
		return f.(*idField)
	}
	s := fieldScan{omitEmpty: r.omitEmpty, id: idField{where: nowhere, sure: true}}
	for _, f := range (elements.Reading{JSON: r.json, Embedded: true}).All(t) {
		s.scan(f)
	}
	f := &s.id
	if s.unknown {
		f.where, f.sure = anywhere, false
	}
	if s.twice {
		f.Index = nil
	}
	kept, _ := idFields.LoadOrStore(key, f)
	return kept.(*idField)
}

// idFieldOfEither returns what t tells if the driver reads its tags as r or as the clients do whose
// UseJSONStructTags is the other one. The driver's codec of structs keeps the reading that it met
// first, and another client of the same registry can have been first.
func idFieldOfEither(t reflect.Type, r reading) *idField {
	f, other := idFieldOf(t, r), idFieldOf(t, reading{json: !r.json, omitEmpty: r.omitEmpty})
	if f.where == other.where && f.sure == other.sure && f.OmitEmpty == other.OmitEmpty && slices.Equal(f.Index, other.Index) {
		return f
	}
	// The encoded form tells the reading, and whether its _id is zero.
	either := &idField{where: anywhere, Field: f.Field}
	if f.Index == nil {
		either.Field = other.Field
	}
	if f.where != nowhere && other.where != nowhere {
		either.Index = nil // the _id need not be from this field
		either.either = []*idField{f, other}
	}
	return either
}

// A fieldScan goes through the elements of a struct in their order.
type fieldScan struct {
	omitEmpty bool // OmitEmpty
	id        idField
	found     bool // a field that can be the _id came
	depth     int  // of that field
	other     bool // a field that can be another element came
	unknown   bool // a map or a field that only some registries write can hold an _id
	twice     bool // it is not known which field is the _id
}

// scan notes what f tells. It can be a field that only the codec of the driver's mgo registries writes: an embedded one that
// is not exported.
func (s *fieldScan) scan(f elements.Field) {
	switch {
	case f.Inline:
		s.unknown = true
	case f.Name != "_id":
		s.other = true
	default:
		s.candidate(f)
	}
}

// candidate notes a field with the key _id. Of several the driver writes the one that is inline in
// the fewest structs, and refuses the type if that does not decide.
func (s *fieldScan) candidate(f elements.Field) {
	if s.found {
		s.unknown = true
		if len(f.Index) > s.depth {
			return
		}
		s.twice = len(f.Index) == s.depth || !f.Exported
	}
	first := !s.found && !s.other
	s.found, s.depth = true, len(f.Index)
	s.id.where = anywhere
	if first {
		s.id.where = firstOrNever
	}
	if f.Exported {
		f.OmitEmpty = f.OmitEmpty || s.omitEmpty
		s.id.Field, s.id.empty = f, emptyFunc(f.Type)
	}
}

// emptyFunc returns a function that reports whether the driver takes a field of type t for empty,
// or nil if that depends on options or on more than the type.
func emptyFunc(t reflect.Type) func(reflect.Value) bool {
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[bson.ObjectID]():
		return reflect.Value.IsZero // like its method, which would be called on a copy
	case kind == reflect.Pointer || kind == reflect.Interface:
		return nil
	case t.Implements(reflect.TypeFor[bson.Zeroer]()):
		return func(v reflect.Value) bool { return v.Interface().(bson.Zeroer).IsZero() }
	case reflect.Bool <= kind && kind <= reflect.Float64 || kind == reflect.String:
		return reflect.Value.IsZero
	case kind == reflect.Array:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	default:
		return nil
	}
}
