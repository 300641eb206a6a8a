package structcodec

import (
	"encoding"
	"reflect"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// readElements sets the elements of s to those of the array, of which countElements has counted as many.
func readElements(array []byte, s reflect.Value, elem readFunc) error {
	for i, at := 0, 4; array[at] != 0; i++ {
		t := array[at]
		for at++; array[at] != 0; at++ { // the key
		}
		at++
		size := valueSize(t, array[at:])
		if err := elem(t, array[at:at+size], s.Index(i)); err != nil {
			return wrapKey(strconv.Itoa(i), err)
		}
		at += size
	}
	return nil
}

func (c decodeCompiler) readSlice(t reflect.Type, slow readFunc) (readFunc, bool) {
	if t.Kind() != reflect.Slice || t.Elem() == tByte || t.Elem() == tE {
		c.callsCaller() // the elements can be of any type
		return slow, true
	}
	elem, ok := c.compileElem(t.Elem())
	if !ok {
		return nil, false
	}
	iface := t.Elem().Kind() == reflect.Interface
	return func(bt byte, data []byte, v reflect.Value) error {
		switch {
		case bson.Type(bt) == bson.TypeNull:
			v.SetZero()
			return nil
		case bson.Type(bt) != bson.TypeArray, iface && v.Len() > 0: // values in interfaces are decoded into
			return slow(bt, data, v)
		}
		// The slice changes when all elements are read, and keeps its array if there is room.
		n := countElements(data)
		if n < 0 {
			return errMalformed
		}
		if n > 0 && v.IsNil() {
			return readNewSlice(data, n, v, elem)
		}
		s := reflect.MakeSlice(t, n, n)
		if err := readElements(data, s, elem); err != nil {
			return err
		}
		if v.IsNil() {
			v.Set(s)
			return nil
		}
		v.SetLen(0)
		v.Set(reflect.AppendSlice(v, s))
		return nil
	}, true
}

// readNewSlice sets v, which is a nil slice, to the n elements of the array. It is nil again if one cannot be read.
func readNewSlice(array []byte, n int, v reflect.Value, elem readFunc) error {
	complete := false
	defer func() {
		if !complete {
			v.SetZero()
		}
	}()
	v.Grow(n) // MakeSlice would allocate the header of a slice, too
	v.SetLen(n)
	v.SetCap(n)
	err := readElements(array, v, elem)
	complete = err == nil
	return err
}

func (c decodeCompiler) readArray(t reflect.Type, slow readFunc) (readFunc, bool) {
	if t.Kind() != reflect.Array || t.Elem() == tByte || t.Elem() == tE || t.Elem().Kind() == reflect.Interface {
		c.callsCaller() // the elements can be of any type
		return slow, true
	}
	elem, ok := c.compileElem(t.Elem())
	if !ok {
		return nil, false
	}
	sliceType := reflect.SliceOf(t.Elem())
	return func(bt byte, data []byte, v reflect.Value) error {
		n := 0
		if bson.Type(bt) == bson.TypeArray {
			n = countElements(data)
		}
		if n < 0 {
			return errMalformed
		}
		if bson.Type(bt) != bson.TypeArray || n > t.Len() {
			return slow(bt, data, v)
		}
		s := reflect.MakeSlice(sliceType, n, n)
		if err := readElements(data, s, elem); err != nil {
			return err
		}
		reflect.Copy(v, s)
		return nil
	}, true
}

var (
	tKeyUnmarshaler  = reflect.TypeFor[bson.KeyUnmarshaler]()
	tTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (c decodeCompiler) readMap(t reflect.Type, slow readFunc) (readFunc, bool) {
	if t.Kind() != reflect.Map {
		c.callsCaller() // the elements can be of any type
		return slow, true
	}
	entries, ok := c.readEntries(t)
	if !ok {
		return nil, false
	}
	return func(bt byte, data []byte, v reflect.Value) error {
		switch bson.Type(bt) {
		case bson.TypeNull:
			v.SetZero()
			return nil
		case bson.TypeEmbeddedDocument:
		default:
			return slow(bt, data, v)
		}
		n := countElements(data)
		if n < 0 {
			return errMalformed
		}
		if v.IsNil() {
			v.Set(reflect.MakeMapWithSize(t, n))
		}
		return entries(data, v)
	}, true
}

// readEntries returns what sets the elements of a document in a map of type t, which is not nil.
func (c decodeCompiler) readEntries(t reflect.Type) (func([]byte, reflect.Value) error, bool) {
	if t.ConvertibleTo(tMap) {
		if values := c.newAnyReader(); values.usable {
			c.callsCaller()
			return func(doc []byte, v reflect.Value) error {
				return values.readEntries(doc, v.Convert(tMap).Interface().(map[string]any))
			}, true
		}
	}
	elemType, keyType := t.Elem(), t.Key()
	elem, ok := c.compileElem(elemType)
	if !ok {
		return nil, false
	}
	if reflect.PointerTo(keyType).Implements(tTextUnmarshaler) {
		c.callsCaller()
	}
	key, ok := readKey(keyType)
	if !ok {
		return nil, false
	}
	return func(doc []byte, v reflect.Value) error {
		k, e := reflect.New(keyType).Elem(), reflect.New(elemType).Elem()
		for rest := doc[4:]; rest[0] != 0; {
			bt := rest[0]
			end := keyEnd(rest)
			name := string(rest[1:end])
			rest = rest[end+1:]
			size := valueSize(bt, rest)
			k.SetZero()
			if err := key(name, k); err != nil {
				return err
			}
			e.SetZero()
			if err := elem(bt, rest[:size], e); err != nil {
				return wrapKey(name, err)
			}
			v.SetMapIndex(k, e)
			rest = rest[size:]
		}
		return nil
	}, true
}

// readKey returns what sets a map key of type t to the key of an element.
func readKey(t reflect.Type) (func(string, reflect.Value) error, bool) {
	switch p := reflect.PointerTo(t); {
	case p.Implements(tKeyUnmarshaler):
		return nil, false
	case p.Implements(tTextUnmarshaler):
		return func(key string, k reflect.Value) error {
			return k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(key))
		}, true
	case t.Kind() == reflect.String:
		return func(key string, k reflect.Value) error {
			k.SetString(key)
			return nil
		}, true
	}
	return nil, false
}

func (c decodeCompiler) readAny(slow readFunc) readFunc {
	values := c.newAnyReader()
	return func(bt byte, data []byte, v reflect.Value) error {
		x, ok, err := values.read(bt, data)
		if err != nil {
			return err
		}
		if !ok {
			return slow(bt, data, v)
		}
		*v.Addr().Interface().(*any) = x
		return nil
	}
}

// readD reads into a [bson.D]. Unlike those of a map, the errors of its elements have no key.
func (c decodeCompiler) readD(slow readFunc) readFunc {
	values := c.newAnyReader()
	return func(bt byte, data []byte, v reflect.Value) error {
		if bson.Type(bt) != bson.TypeEmbeddedDocument || !values.usable {
			return slow(bt, data, v)
		}
		target := v.Addr().Interface().(*bson.D)
		d := *target
		if d != nil {
			d = d[:0]
			*target = d
		}
		d, err := values.readD(data, d)
		if err != nil {
			return err
		}
		*target = d
		return nil
	}
}
