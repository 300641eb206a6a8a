// Package elements tells which elements the documents have that the driver writes for a struct, in which order, and what
// the struct tags of the fields say.
package elements

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// A Tag is what the struct tag of a field says.
type Tag struct {
	Name      string // the key of the element
	OmitEmpty bool
	MinSize   bool
	Truncate  bool
	Inline    bool
	Skip      bool // the field is left out; nothing else is set
}

// TagText returns the text of the struct tag that the driver reads: that of the tag "bson" of f. If f has none and json is
// set, it is that of the tag "json", and if no tag has a key, the whole tag.
func TagText(f reflect.StructField, json bool) string {
	text, ok := f.Tag.Lookup("bson")
	if !ok && json {
		text, ok = f.Tag.Lookup("json")
	}
	if !ok && !strings.Contains(string(f.Tag), ":") {
		text = string(f.Tag)
	}
	return text
}

// TagOf reads the text that [TagText] returns. The key can be an option as well: with `bson:"inline"` a field is inline.
func TagOf(f reflect.StructField, json bool) Tag {
	text := TagText(f, json)
	if text == "-" {
		return Tag{Skip: true}
	}
	t := Tag{Name: strings.ToLower(f.Name)}
	for i, part := range strings.Split(text, ",") {
		if i == 0 && part != "" {
			t.Name = part
		}
		switch part {
		case "omitempty":
			t.OmitEmpty = true
		case "minsize":
			t.MinSize = true
		case "truncate":
			t.Truncate = true
		case "inline":
			t.Inline = true
		}
	}
	return t
}

// A Field is a field of a struct, or of a struct that is inline in it.
type Field struct {
	Tag
	Type     reflect.Type
	Index    []int // through inline structs, outermost first
	Pointers bool  // an inline pointer is on the way
	Exported bool  // the field is, and so are all on the way
}

// A Reading is how the driver reads the tags of structs, which depends on the options of the client and on its codec of
// structs.
type Reading struct {
	JSON         bool // UseJSONStructTags: the tag "json" counts if a field has no tag "bson"
	NoDuplicates bool // ErrorOnInlineDuplicates: two fields of one name are an error, whatever their depth
	Embedded     bool // the codec of the mgo registries: embedded fields that are not exported count
}

// own returns the fields of the struct type t that the driver does not skip.
func (r Reading) own(t reflect.Type) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for i := range t.NumField() {
			sf := t.Field(i)
			if !sf.IsExported() && !(r.Embedded && sf.Anonymous) {
				continue
			}
			f := Field{Tag: TagOf(sf, r.JSON), Type: sf.Type, Index: []int{i}, Exported: sf.IsExported()}
			if !f.Skip && !yield(f) {
				return
			}
		}
	}
}

// inlineStruct returns the struct type that f is or points to, if f is inline, and nil if there is none.
func (f *Field) inlineStruct() reflect.Type {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !f.Inline || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// in makes f, a field of the type of the inline field outer, a field of the struct that outer is in.
func (f *Field) in(outer *Field) {
	f.Index = slices.Concat(outer.Index, f.Index)
	f.Pointers = f.Pointers || outer.Type.Kind() == reflect.Pointer
	f.Exported = f.Exported && outer.Exported
}

// All returns the fields that can have an element of a document of the struct type t, in the order of the elements: those
// of inline structs stand in the place of the struct. Several can have one name. A field that is Inline is a map, or of a
// type that the driver refuses.
func (r Reading) All(t reflect.Type) []Field { return r.all(t, nil) }

// all is All for a struct type that is inline in the types around it.
func (r Reading) all(t reflect.Type, around []reflect.Type) (fields []Field) {
	around = append(around, t)
	for f := range r.own(t) {
		inner := f.inlineStruct()
		if inner == nil || slices.Contains(around, inner) {
			fields = append(fields, f)
			continue
		}
		for _, within := range r.all(inner, around) {
			within.in(&f)
			fields = append(fields, within)
		}
	}
	return fields
}

// Of returns the fields that have the elements of the documents of the struct type t, in their order, and the index of the
// field that is an inline map, or -1. Of the fields of one name it returns the one that is inline in the fewest structs. A
// type that the driver refuses is an error, and so is one that is inline in itself, for which the driver never ends.
func (r Reading) Of(t reflect.Type) (fields []Field, inlineMap int, err error) { return r.of(t, nil) }

// of is Of for a struct type that is inline in the types around it.
func (r Reading) of(t reflect.Type, around []reflect.Type) (fields []Field, inlineMap int, err error) {
	around = append(around, t)
	inlineMap = -1
	for f := range r.own(t) {
		inner := f.inlineStruct()
		switch {
		case slices.Contains(around, inner):
			return nil, 0, fmt.Errorf("%s is inline in its own type", t.Field(f.Index[0]).Name)
		case inner != nil:
			within, _, err := r.of(inner, around) // the driver ignores a map that is inline in an inline struct
			if err != nil {
				return nil, 0, err
			}
			for _, g := range within {
				g.in(&f)
				fields = append(fields, g)
			}
		case f.Inline && f.Type.Kind() == reflect.Map:
			if inlineMap >= 0 {
				return nil, 0, fmt.Errorf("%s is a second inline map", t.Field(f.Index[0]).Name)
			}
			if f.Type.Key() != tString {
				return nil, 0, fmt.Errorf("the keys of %s, an inline map, are not of type string", t.Field(f.Index[0]).Name)
			}
			inlineMap = f.Index[0]
		case f.Inline:
			return nil, 0, fmt.Errorf("%s is inline and no struct or map", t.Field(f.Index[0]).Name)
		case strings.IndexByte(f.Name, 0) >= 0:
			return nil, 0, fmt.Errorf("the key of %s holds a zero byte", t.Field(f.Index[0]).Name)
		default:
			fields = append(fields, f)
		}
	}
	fields, err = r.dominant(fields)
	return fields, inlineMap, err
}

var tString = reflect.TypeFor[string]()

// dominant returns the fields without those that another field of the same name dominates: the one that is less deep
// wins. Two fields of one name at the least depth are an error of the driver.
func (r Reading) dominant(all []Field) ([]Field, error) {
	least := make(map[string]int, len(all)) // the depth of each name
	for _, f := range all {
		if depth, ok := least[f.Name]; !ok || len(f.Index) < depth {
			least[f.Name] = len(f.Index)
		}
	}
	seen := make(map[string]bool, len(all))
	var kept []Field
	for _, f := range all {
		if len(f.Index) != least[f.Name] {
			if r.NoDuplicates {
				return nil, fmt.Errorf("the key %q is in an inline struct, too, and ErrorOnInlineDuplicates is set", f.Name)
			}
			continue
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("two fields have the key %q", f.Name)
		}
		seen[f.Name] = true
		kept = append(kept, f)
	}
	return kept, nil
}

// Value returns field f of v, or false if an inline pointer on the way is nil.
func (f *Field) Value(v reflect.Value) (reflect.Value, bool) {
	for i, x := range f.Index {
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

// Target returns field f of v, which is settable, and allocates inline pointers on the way.
func (f *Field) Target(v reflect.Value) reflect.Value {
	for i, x := range f.Index {
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

// PointerThenStruct reports whether an inline struct that is not a pointer is inline in an inline pointer on the way from t
// to f. The driver panics if it has to allocate such a pointer.
func (f *Field) PointerThenStruct(t reflect.Type) bool {
	pointer := false
	for _, x := range f.Index[:len(f.Index)-1] {
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
