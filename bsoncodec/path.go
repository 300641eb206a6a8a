package bsoncodec

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/elements"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// The driver says where in a document it failed to decode a value, and not where it failed to encode
// one. So an encoder of this package that returns an [UnregisteredTypeError] looks in the value that it
// was given for one of the type that was refused. The encoder of the whole document is the last one.

// withPath returns err, an error of encoding val, with the path of the value if it is of a type that is
// not registered.
func withPath(ec bson.EncodeContext, val reflect.Value, err error) error {
	e, ok := err.(*UnregisteredTypeError)
	if !ok || e.decode {
		return err
	}
	s := search{reg: ec.Registry, key: e.Type, values: maxSearched, match: func(v reflect.Value) bool {
		t := v.Type()
		if e.method && t.Kind() == reflect.Pointer && !v.IsNil() {
			t = t.Elem()
		}
		return t == e.Type && !(e.notAddressable && v.CanAddr()) && (e.only == nil || e.only(v))
	}}
	s.jsonTags = encodesJSONTags(ec)
	path, _ := s.find(val)
	found := *e
	found.Path = strings.Join(path, ".")
	return &found
}

// maxSearched is how many values a search looks at, and maxSearchedDepth how deep they can be. Values
// can be within themselves.
const (
	maxSearched      = 1 << 20
	maxSearchedDepth = 200
)

// A search looks for a value, or for a map with keys of a type, in a value that reg encodes.
type search struct {
	reg      *bson.Registry
	match    func(reflect.Value) bool
	key      reflect.Type // of keys, or nil
	jsonTags bool
	values   int // that may still be looked at
	depth    int // of the value that is looked at
}

// find returns the path of the value in v.
func (s *search) find(v reflect.Value) (path []string, ok bool) {
	s.depth++
	defer func() { s.depth-- }()
	if s.values--; s.values < 0 || s.depth > maxSearchedDepth || !v.IsValid() {
		return nil, false
	}
	if s.match(v) {
		return nil, true
	}
	t := v.Type()
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer:
		if t.Kind() == reflect.Pointer && !s.looksInto(t) {
			return nil, false
		}
		return s.find(v.Elem())
	case reflect.Struct:
		if s.looksInto(t) {
			return s.findField(v)
		}
		if t == tCodeWithScope && driver.HasOwnEncoder(s.reg, t) {
			return s.find(v.FieldByName("Scope")) // whose keys are those of the value
		}
	case reflect.Map:
		if s.looksInto(t) {
			return s.findEntry(v)
		}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 && s.looksInto(t) {
			return s.findElement(v)
		}
	}
	return nil, false
}

// looksInto reports whether the encoder of t encodes what values of type t hold with the encoders of the registry.
func (s *search) looksInto(t reflect.Type) bool {
	enc := driver.EncoderBehind(s.reg, encoderOf(s.reg, t), t)
	if _, plans := enc.(*structcodec.Codec); plans || driver.IsStructEncoder(enc) || driver.IsMapEncoder(enc) {
		return true
	}
	probe, ok := probes[inUse].kinds[t.Kind()]
	return ok && driver.IsOwnEncoder(enc, probe)
}

var tCodeWithScope = reflect.TypeFor[bson.CodeWithScope]()

func (s *search) findField(v reflect.Value) (path []string, ok bool) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		tag := elements.TagOf(f, s.jsonTags)
		if !f.IsExported() || tag.Skip {
			continue
		}
		fv := v.Field(i)
		if tag.OmitEmpty && isOmitted(fv) {
			fv = reflect.Value{}
		}
		if tag.Inline {
			path, ok = s.findInline(fv)
		} else if path, ok = s.find(fv); ok {
			path = append([]string{tag.Name}, path...)
		}
		if ok {
			return path, true
		}
	}
	return nil, false
}

// findInline looks at v, the value of a field that is inline. The fields of an inline struct are encoded one by one, whatever
// the encoder of the struct is.
func (s *search) findInline(v reflect.Value) (path []string, ok bool) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		return s.findField(v)
	}
	return s.find(v)
}

// isOmitted reports whether the tag omitempty leaves v out, for the values that can be of a type that is refused, or hold one.
func isOmitted(v reflect.Value) bool {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	omitted := !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
	if !omitted {
		z, ok := v.Interface().(bson.Zeroer)
		omitted = ok && z.IsZero()
	}
	return omitted
}

// findEntry looks at the entries of a map in the order of their keys, so that one map always gives one path.
func (s *search) findEntry(v reflect.Value) (path []string, ok bool) {
	if v.Len() > 0 && v.Type().Key() == s.key {
		return nil, true
	}
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		entries = append(entries, entry{keyText(it.Key()), it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range entries {
		if path, ok = s.find(e.value); ok {
			return append([]string{e.key}, path...), true
		}
	}
	return nil, false
}

// An entry is one of a map.
type entry struct {
	key   string
	value reflect.Value
}

// keyText returns the key of a map in a document.
func keyText(key reflect.Value) string {
	switch {
	case key.Kind() == reflect.String:
		return key.String()
	case key.Kind() == reflect.Pointer && key.IsNil():
		return ""
	case key.Kind() == reflect.Interface && key.Elem().Kind() == reflect.Pointer && key.Elem().IsNil():
		return fmt.Sprint(key) // only StringifyMapKeysWithFmt writes it: without, the driver panics
	}
	switch k := key.Interface().(type) {
	case bson.KeyMarshaler:
		if text, err := k.MarshalKey(); err == nil {
			return text
		}
	case encoding.TextMarshaler:
		if text, err := k.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(key)
}

func (s *search) findElement(v reflect.Value) (path []string, ok bool) {
	if v.Kind() == reflect.Slice && v.Type().ConvertibleTo(tD) {
		for _, e := range v.Convert(tD).Interface().(bson.D) {
			if path, ok = s.find(reflect.ValueOf(e.Value)); ok {
				return append([]string{e.Key}, path...), true
			}
		}
		return nil, false
	}
	for i := range v.Len() {
		if path, ok = s.find(v.Index(i)); ok {
			return append([]string{strconv.Itoa(i)}, path...), true
		}
	}
	return nil, false
}
