package autoid

import (
	"reflect"
	"strings"
	"sync"
)

// placement says where the encoded form of a document can have its _id.
type placement uint8

const (
	anywhere     placement = iota // only the encoded form tells
	nowhere                       // there is none
	somewhere                     // there is one
	firstOrNever                  // the first element is the _id, or there is none
)

// structPlacements holds the placement of each struct type seen: reflect.Type to placement. It does not depend on the
// registry or its options, see fieldsPlacement.
var structPlacements sync.Map

func structPlacement(t reflect.Type) placement {
	if p, ok := structPlacements.Load(t); ok {
		return p.(placement)
	}
	p := nowhere
	var s fieldScan
	switch {
	case !s.fields(t, nil):
		p = anywhere
	case s.id:
		p = firstOrNever
	}
	structPlacements.Store(t, p)
	return p
}

// A fieldScan goes through the fields of a struct in the order in which the driver writes them.
//
// Whether the driver reads json tags where a bson tag is missing is an option that a codec cannot see, and the driver
// keeps what it found for a type under the option that came first. So the scan follows both readings at once and gives
// up where they would make a difference.
type fieldScan struct {
	id    bool // a field that can be the _id came, and nothing before it
	other bool // a field that can be another element came
}

// fields goes through t, which stands inside the structs of outer. It reports whether _id can only be first.
func (s *fieldScan) fields(t reflect.Type, outer []reflect.Type) bool {
	for _, o := range outer {
		if o == t {
			return false
		}
	}
	outer = append(outer, t)
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
		if plain.inline || json.inline {
			if plain != json {
				return false
			}
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct || !s.fields(inner, outer) {
				return false
			}
			continue
		}
		if plain.is("_id") || json.is("_id") {
			if s.id || s.other {
				return false
			}
			s.id = true
			continue
		}
		s.other = true
	}
	return true
}

// fieldTag is what the driver reads from the tag of a struct field, as far as it decides on keys.
type fieldTag struct {
	name   string
	inline bool
	skip   bool
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
	name, flags, _ := strings.Cut(text, ",")
	t := fieldTag{name: name, inline: name == "inline"}
	if name == "" {
		t.name = strings.ToLower(f.Name)
	}
	for flag := range strings.SplitSeq(flags, ",") {
		if flag == "inline" {
			t.inline = true
		}
	}
	return t
}
