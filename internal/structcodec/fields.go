package structcodec

import (
	"fmt"
	"reflect"
	"strings"
)

// A field is one element of the document of a struct.
type field struct {
	name      string
	index     []int // through inline structs, outermost first
	typ       reflect.Type
	omitEmpty bool
	minSize   bool
	truncate  bool
	pointers  bool // an inline pointer is on the way
}

// maxInline is how deep inline structs may nest. A struct can be inline in itself, by a pointer.
const maxInline = 32

// tagging is how the tags of structs are read.
type tagging struct {
	json         bool // the json tag counts if a field has no bson tag
	noDuplicates bool // two fields of one name are an error, whatever their depth
}

// fieldsOf returns the elements of the documents of the struct type t in the order in which the driver writes them, and
// the index of the field that is an inline map, or -1. A type that the driver refuses is an error.
func (g tagging) fieldsOf(t reflect.Type, depth int) (fields []field, inlineMap int, err error) {
	if depth > maxInline {
		return nil, 0, fmt.Errorf("inline structs are nested more than %d deep", maxInline)
	}
	var all []field
	inlineMap = -1
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		tag := g.parseTag(sf)
		switch {
		case tag.skip:
		case tag.inline && sf.Type.Kind() == reflect.Map:
			if inlineMap >= 0 {
				return nil, 0, fmt.Errorf("%s is a second inline map", sf.Name)
			}
			if sf.Type.Key() != tString {
				return nil, 0, fmt.Errorf("the keys of %s, an inline map, are not of type string", sf.Name)
			}
			inlineMap = i
		case tag.inline:
			inner, err := g.inlineFields(sf, i, depth)
			if err != nil {
				return nil, 0, err
			}
			all = append(all, inner...)
		case strings.IndexByte(tag.name, 0) >= 0:
			return nil, 0, fmt.Errorf("the key of %s holds a zero byte", sf.Name)
		default:
			all = append(all, field{
				name: tag.name, index: []int{i}, typ: sf.Type,
				omitEmpty: tag.omitEmpty, minSize: tag.minSize, truncate: tag.truncate,
			})
		}
	}
	fields, err = g.dominant(all)
	return fields, inlineMap, err
}

// inlineFields returns the elements of sf, field i of a struct, whose type is inline. The driver ignores a map that is
// inline in that type.
func (g tagging) inlineFields(sf reflect.StructField, i, depth int) ([]field, error) {
	t := sf.Type
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is inline and no struct or map", sf.Name)
	}
	fields, _, err := g.fieldsOf(t, depth+1)
	if err != nil {
		return nil, err
	}
	for j := range fields {
		f := &fields[j]
		f.index = append([]int{i}, f.index...)
		f.pointers = f.pointers || pointer
	}
	return fields, nil
}

// dominant returns the fields without those that another field of the same name dominates: the one that is less deep
// wins. Two fields of one name at the least depth are an error of the driver.
func (g tagging) dominant(all []field) ([]field, error) {
	least := make(map[string]int, len(all)) // the depth of each name
	for _, f := range all {
		if depth, ok := least[f.name]; !ok || len(f.index) < depth {
			least[f.name] = len(f.index)
		}
	}
	seen := make(map[string]bool, len(all))
	var kept []field
	for _, f := range all {
		if len(f.index) != least[f.name] {
			if g.noDuplicates {
				return nil, fmt.Errorf("the key %q is in an inline struct, too, and ErrorOnInlineDuplicates is set", f.name)
			}
			continue
		}
		if seen[f.name] {
			return nil, fmt.Errorf("two fields have the key %q", f.name)
		}
		seen[f.name] = true
		kept = append(kept, f)
	}
	return kept, nil
}

// A tag is what the struct tag of a field says.
type tag struct {
	name      string
	omitEmpty bool
	minSize   bool
	truncate  bool
	inline    bool
	skip      bool
}

// parseTag reads the bson tag of f. A whole tag without a key is one, too.
func (g tagging) parseTag(f reflect.StructField) tag {
	text, ok := f.Tag.Lookup("bson")
	if !ok && g.json {
		text, ok = f.Tag.Lookup("json")
	}
	if !ok && !strings.Contains(string(f.Tag), ":") {
		text = string(f.Tag)
	}
	if text == "-" {
		return tag{skip: true}
	}
	t := tag{name: strings.ToLower(f.Name)}
	for i, part := range strings.Split(text, ",") {
		if i == 0 && part != "" {
			t.name = part
		}
		switch part {
		case "omitempty":
			t.omitEmpty = true
		case "minsize":
			t.minSize = true
		case "truncate":
			t.truncate = true
		case "inline":
			t.inline = true
		}
	}
	return t
}

// value returns field f of v, or false if an inline pointer on the way is nil.
func (f *field) value(v reflect.Value) (reflect.Value, bool) {
	for i, x := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v, true
}

// target returns field f of v, which is settable, and allocates inline pointers on the way.
func (f *field) target(v reflect.Value) reflect.Value {
	for i, x := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

// pointerThenStruct reports whether an inline struct that is not a pointer is inline in an inline pointer. The driver
// panics if it has to allocate such a pointer.
func (f *field) pointerThenStruct(t reflect.Type) bool {
	pointer := false
	for _, x := range f.index[:len(f.index)-1] {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		t = t.Field(x).Type
		if pointer && t.Kind() != reflect.Pointer {
			return true
		}
		pointer = pointer || t.Kind() == reflect.Pointer
	}
	return false
}
