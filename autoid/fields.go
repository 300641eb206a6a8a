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
)

// idField is what the type of a struct tells about the _id that the driver writes for it.
type idField struct {
	where placement // where the value does not tell more
	// The field that is the _id, whether its tag has omitempty, and what tells that the driver takes it for empty.
	// Index is nil where that is not known.
	index     []int
	omitEmpty bool
	empty     func(reflect.Value) bool
}

// place tells where v, a struct, has its _id.
func (f *idField) place(v reflect.Value) placement {
	if f.index == nil {
		return f.where
	}
	for _, i := range f.index {
		v = v.Field(i)
	}
	switch {
	case !f.empty(v):
		return somewhere
	case f.omitEmpty:
		return nowhere
	default:
		return f.where // an option of the client can omit it
	}
}

// idFields holds the idField of each struct type seen: reflect.Type to *idField. It does not depend on the registry or
// its options, see fieldScan.
var idFields sync.Map

func idFieldOf(t reflect.Type) *idField {
	if f, ok := idFields.Load(t); ok {
		return f.(*idField)
	}
	s := fieldScan{id: idField{where: nowhere}}
	f := &s.id
	if !s.fields(t, nil, true) {
		f = &idField{where: anywhere}
	}
	kept, _ := idFields.LoadOrStore(t, f)
	return kept.(*idField)
}

// A fieldScan goes through the fields of a struct in the order in which the driver writes them.
//
// Whether the driver reads json tags where a bson tag is missing is an option that a codec cannot see, and the driver
// keeps what it found for a type under the option that came first. So the scan follows both readings at once and gives
// up where they would make a difference.
type fieldScan struct {
	id    idField
	found bool // a field that can be the _id came
	other bool // a field that can be another element came
}

// fields goes through t, which stands at the given index; sure says that the driver writes it whatever the value and
// the options. It reports whether the _id, if there is one, has a known place. A struct that is inline in itself never
// ends, as in the driver.
func (s *fieldScan) fields(t reflect.Type, index []int, sure bool) bool {
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
			// An inline map can hold an _id, too, and an inline pointer can be nil.
			if plain != json || inner.Kind() != reflect.Struct ||
				!s.fields(inner, at, sure && inner == f.Type && f.IsExported()) {
				return false
			}
			continue
		}
		if !plain.is("_id") && !json.is("_id") {
			s.other = true
			continue
		}
		if s.found {
			return false
		}
		s.found = true
		s.id.where = firstOrNever
		if s.other {
			s.id.where = anywhere
		}
		if empty := emptyFunc(f.Type); sure && plain == json && f.IsExported() && empty != nil {
			s.id.index, s.id.omitEmpty, s.id.empty = at, plain.omitEmpty, empty
		}
	}
	return true
}

// emptyFunc returns what tells whether the driver takes a field of type t for empty, or nil where that depends on
// options or on more than the type.
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

// readTag reads the bson tag of f, in its place the json tag if that is asked for, or a whole tag without a key.
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
