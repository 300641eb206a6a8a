package autoid

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
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

// idField is what a struct type tells about the _id that the driver writes for it.
type idField struct {
	where placement // if the value does not tell more
	index []int     // of the field that is the _id; nil if it is not known

	omitEmpty bool                     // the field's tag has omitempty
	empty     func(reflect.Value) bool // reports whether the driver takes the field for empty; nil if it is not known
	sure      bool                     // no other field can be the _id
}

// place tells where v, a struct, has its _id. If zeroIsMissing, a zero _id counts as missing.
func (f *idField) place(v reflect.Value, zeroIsMissing bool) placement {
	field, ok := f.value(v)
	switch {
	case !ok && zeroIsMissing && f.where != nowhere:
		return anywhere
	case !ok:
		return f.where
	case f.sure && f.omitEmpty && f.empty != nil && f.empty(field):
		return nowhere
	case isZero(field) && (zeroIsMissing || f.omitEmpty && field.Kind() == reflect.Array):
		return replaced
	case f.empty != nil && !f.empty(field):
		return somewhere
	default:
		return f.where // an option of the client can omit the field
	}
}

// value returns the field of v that is the _id, if it is known and there.
func (f *idField) value(v reflect.Value) (reflect.Value, bool) {
	if f.index == nil {
		return reflect.Value{}, false
	}
	for i, at := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, true
}

// isZero reports whether v is nil, zero, or a pointer to something zero.
func isZero(v reflect.Value) bool {
	for range maxPointers {
		if !v.IsValid() {
			return true
		}
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		v = v.Elem()
	}
	if v.IsValid() && v.CanInterface() {
		if z, ok := v.Interface().(bson.Zeroer); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			return z.IsZero()
		}
	}
	return !v.IsValid() || v.IsZero()
}

// idFields holds the idField of each struct type: reflect.Type to *idField. It does not depend on
// the registry or its options, see fieldScan.
var idFields sync.Map

func idFieldOf(t reflect.Type) *idField {
	if f, ok := idFields.Load(t); ok {
		return f.(*idField)
	}
	s := fieldScan{id: idField{where: nowhere, sure: true}}
	s.fields(t, nil, true)
	f := &s.id
	if s.unknown {
		f.where, f.sure = anywhere, false
	}
	if s.twice {
		f.index = nil
	}
	kept, _ := idFields.LoadOrStore(t, f)
	return kept.(*idField)
}

// A fieldScan goes through the fields of a struct in the order in which the driver writes them.
//
// Whether the driver reads json tags if a bson tag is missing is an option that a codec cannot see.
// So the scan follows both readings at once, and gives up if they make a difference.
type fieldScan struct {
	id      idField
	found   bool // a field that can be the _id came
	other   bool // a field that can be another element came
	unknown bool // a map or a field with two readings can hold an _id
	twice   bool // several fields can be the _id
}

// fields scans t, which is at the given index. If known, the driver writes the fields of t whatever
// its options are, unless a pointer on the way is nil. A struct that is inline in itself never
// ends, as in the driver.
func (s *fieldScan) fields(t reflect.Type, index []int, known bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		// The codec of the driver's mgo registry takes embedded fields that are not exported, too.
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		plain, json := readTag(f, false), readTag(f, true)
		if plain.skip && json.skip {
			continue
		}
		at := append(slices.Clip(index), i)
		if plain.inline || json.inline {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if plain != json || inner.Kind() != reflect.Struct {
				s.unknown = true
				continue
			}
			s.fields(inner, at, known && f.IsExported())
			continue
		}
		if !plain.is("_id") && !json.is("_id") {
			s.other = true
			continue
		}
		if s.found {
			s.unknown, s.twice = true, true
			return
		}
		s.found = true
		s.id.where = firstOrNever
		if s.other {
			s.id.where = anywhere
		}
		if known && plain == json && f.IsExported() {
			s.id.index, s.id.omitEmpty, s.id.empty = at, plain.omitEmpty, emptyFunc(f.Type)
		}
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

// fieldTag is what the driver reads from the tag of a struct field, as far as it decides on keys.
type fieldTag struct {
	name      string
	omitEmpty bool
	inline    bool
	skip      bool
}

func (t fieldTag) is(name string) bool { return !t.skip && !t.inline && t.name == name }

// readTag reads the bson tag of f; if there is none, the json tag if json is set; and else a whole
// tag without a key.
func readTag(f reflect.StructField, json bool) fieldTag {
	text, ok := f.Tag.Lookup("bson")
	if !ok && json {
		text, ok = f.Tag.Lookup("json")
	}
	if !ok && !strings.Contains(string(f.Tag), ":") {
		text = string(f.Tag)
	}
	if text == "-" {
		return fieldTag{skip: true}
	}
	t := fieldTag{name: strings.ToLower(f.Name)}
	for i, part := range strings.Split(text, ",") {
		if i == 0 && part != "" {
			t.name = part
		}
		t.omitEmpty = t.omitEmpty || part == "omitempty"
		t.inline = t.inline || part == "inline"
	}
	return t
}
