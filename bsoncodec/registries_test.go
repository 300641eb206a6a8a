package bsoncodec_test

import (
	"bytes"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
)

// One registry encodes and decodes in several ways: from memory or through the driver's Encoder and Decoder, by plans or
// without them, as a whole document or as a value. The results are the same, so the helpers of the tests try every way.

// twins holds, for a registry that build returned, the registry of the same builder without plans.
var twins sync.Map

// register calls f, which registers codecs after Build, with reg and with its twin.
func register(reg *bson.Registry, f func(*bson.Registry)) {
	f(reg)
	if twin, ok := twins.Load(reg); ok {
		f(twin.(*bson.Registry))
	}
}

// withTwin returns reg and its twin by name, and nothing if reg has none.
func withTwin(reg *bson.Registry) map[string]*bson.Registry {
	twin, ok := twins.Load(reg)
	if !ok {
		return nil
	}
	return map[string]*bson.Registry{"plans": reg, "without plans": twin.(*bson.Registry)}
}

// encode is bsoncodec.Marshal. The other ways of encoding v must have the same result.
func encode(t testing.TB, reg *bson.Registry, v any) ([]byte, error) {
	t.Helper()
	raw, err := bsoncodec.Marshal(reg, v)
	for name, reg := range withTwin(reg) {
		check := func(way string, other []byte, otherErr error) {
			t.Helper()
			if (err == nil) != (otherErr == nil) || err == nil && !bytes.Equal(raw, other) && sorted(raw) != sorted(other) {
				t.Errorf("Marshal(%T): %v, %v; %s, %s: %v, %v", v, bson.Raw(raw), err, way, name, bson.Raw(other), otherErr)
			}
		}
		other, otherErr := bsoncodec.Marshal(reg, v)
		check("Marshal", other, otherErr)
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(reg)
		otherErr = enc.Encode(v)
		check("Encoder", buf.Bytes(), otherErr)
		rv, otherErr := bsoncodec.MarshalValue(reg, bson.D{{Key: "v", Value: v}})
		if inner, ok := bson.Raw(rv.Value).Lookup("v").DocumentOK(); ok || otherErr != nil {
			check("MarshalValue", inner, otherErr)
		}
	}
	return raw, err
}

// decode is bsoncodec.Unmarshal of a well-formed document. The other ways of decoding into what v was must have the same
// result.
func decode(t testing.TB, reg *bson.Registry, raw []byte, v any) error {
	t.Helper()
	before := clone(reflect.ValueOf(v))
	err := bsoncodec.Unmarshal(reg, raw, v)
	for name, reg := range withTwin(reg) {
		check := func(way string, decode func(v any) error) {
			t.Helper()
			other := clone(before).Interface()
			if otherErr := decode(other); (err == nil) != (otherErr == nil) || err == nil && !reflect.DeepEqual(v, other) {
				t.Errorf("Unmarshal of %v into %T: %+v, %v; %s, %s: %+v, %v", bson.Raw(raw), v, pointee(v), err, way, name, pointee(other), otherErr)
			}
		}
		check("Unmarshal", func(v any) error { return bsoncodec.Unmarshal(reg, raw, v) })
		check("Decoder", func(v any) error {
			dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
			dec.SetRegistry(reg)
			return dec.Decode(v)
		})
	}
	return err
}

// pointee returns what v points to, for a message.
func pointee(v any) any {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		return p.Elem().Interface()
	}
	return v
}

// sorted returns the document as text, with the keys in order: the entries of maps have none.
func sorted(doc bson.Raw) string {
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Sprintf("%X", []byte(doc))
	}
	var all []string
	for _, e := range elements {
		v := e.Value()
		text := fmt.Sprintf("%v %X", v.Type, v.Value)
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			text = v.Type.String() + sorted(v.Value)
		}
		all = append(all, e.Key()+" "+text)
	}
	sort.Strings(all)
	return "{" + strings.Join(all, ",") + "}"
}

// clone returns a deep copy of v. What fields hold that are not exported is not copied.
func clone(v reflect.Value) reflect.Value {
	if !v.IsValid() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()).Convert(v.Type()))
			c.Elem().Set(clone(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			c.Set(clone(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			c.Set(reflect.MakeSlice(v.Type(), v.Cap(), v.Cap()))
			for i, full := 0, v.Slice(0, v.Cap()); i < v.Cap(); i++ {
				c.Index(i).Set(clone(full.Index(i)))
			}
			c.SetLen(v.Len())
		}
	case reflect.Array:
		for i := range v.Len() {
			c.Index(i).Set(clone(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMap(v.Type()))
			for it := v.MapRange(); it.Next(); {
				c.SetMapIndex(it.Key(), clone(it.Value()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(clone(v.Field(i)))
			}
		}
	}
	return c
}
