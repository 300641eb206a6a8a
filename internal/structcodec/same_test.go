package structcodec_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sameError reports whether two errors have the same text, types and key paths.
func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var da, db *bson.DecodeError
	if errors.As(a, &da) != errors.As(b, &db) {
		return false
	}
	if da != nil && !slices.Equal(da.Keys(), db.Keys()) {
		return false
	}
	for x, y := a, b; ; x, y = errors.Unwrap(x), errors.Unwrap(y) {
		if reflect.TypeOf(x) != reflect.TypeOf(y) || (x == nil) != (y == nil) {
			return false
		}
		if x == nil {
			return a.Error() == b.Error()
		}
	}
}

// sameDocument reports whether two documents differ in the order of elements alone, as those of maps do.
func sameDocument(a, b []byte) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && x == y
}

func canonical(doc bson.Raw) (string, error) {
	elements, err := doc.Elements()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, e := range elements {
		v := e.Value()
		text := fmt.Sprintf("%x", v.Value)
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			if text, err = canonical(v.Value); err != nil {
				return "", err
			}
		}
		parts = append(parts, fmt.Sprintf("%q %d {%s}", e.Key(), v.Type, text))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", "), nil
}

// same reports whether two values are equal, with floats by their bits. Nil is not empty.
func same(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return same(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for it := a.MapRange(); it.Next(); {
			if !hasEntry(b, it.Key(), it.Value()) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Func, reflect.Chan:
		return a.IsNil() == b.IsNil()
	default:
		return a.Equal(b)
	}
}

// hasEntry reports whether m has the entry, or one that is the same. A key can be a pointer, or not a number.
func hasEntry(m, key, value reflect.Value) bool {
	if v := m.MapIndex(key); v.IsValid() {
		return same(v, value)
	}
	for it := m.MapRange(); it.Next(); {
		if same(it.Key(), key) && same(it.Value(), value) {
			return true
		}
	}
	return false
}

// dump shows a value with what its pointers point to.
func dump(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return "&" + dump(v.Elem())
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			parts = append(parts, v.Type().Field(i).Name+":"+dump(v.Field(i)))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice, reflect.Map:
		if v.IsNil() {
			return "nil"
		}
	}
	if v.CanInterface() {
		return fmt.Sprintf("%v(%#v)", v.Type(), v.Interface())
	}
	return v.String()
}

// hashable reports whether v can be a key of a map. An empty array of a type that is not comparable cannot, although its
// Comparable method says so.
func hashable(v reflect.Value) (ok bool) {
	defer func() { ok = recover() == nil }()
	reflect.MakeMap(reflect.MapOf(v.Type(), tBool)).SetMapIndex(v, reflect.ValueOf(true))
	return
}

var tBool = reflect.TypeFor[bool]()
