package structcodec

import (
	"encoding"
	"reflect"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// readElements sets the elements of s to those of the array that start at the index at. The first one has the index
// first in the array. It returns where the elements after them start.
func readElements(array []byte, at, first int, s reflect.Value, elem readFunc) (int, error) {
	for i, n := 0, s.Len(); i < n; i++ {
		t := array[at]
		for at++; array[at] != 0; at++ { // the key
		}
		at++
		size := valueSize(t, array[at:])
		if err := elem(t, array[at:at+size], s.Index(i)); err != nil {
			return 0, wrapKey(strconv.Itoa(first+i), err)
		}
		at += size
	}
	return at, nil
}

// maxAhead is how many times the bytes of an element a plan allocates for it before it reads the element.
const maxAhead = 16

// readChunks reads the elements of the array from the index at on, of which the first is element i of n, into slices of
// type t. The first slice has up to size elements, each other one twice as many as the one before. When all elements are
// read, they are copied to v, a slice that then gets n elements, or an array.
//
// So elements that are far larger in memory than in the document, or that cannot be read, do not take more memory than the
// driver allocates for them.
func readChunks(array []byte, at, i, n, size int, t reflect.Type, v reflect.Value, elem readFunc) error {
	chunk := reflect.MakeSlice(t, min(size, n-i), min(size, n-i))
	at, err := readElements(array, at, i, chunk, elem)
	if err != nil {
		return err
	}
	end := i + chunk.Len()
	switch {
	case end < n:
		err = readChunks(array, at, end, n, 2*size, t, v, elem)
	case v.Kind() == reflect.Slice:
		resize(v, n)
	}
	if err != nil {
		return err
	}
	if i > 0 {
		v = v.Slice(i, end)
	}
	reflect.Copy(v, chunk)
	return nil
}

// resize makes v a slice of n elements, in its own array if there is room.
func resize(v reflect.Value, n int) {
	isNil := v.IsNil()
	v.SetLen(0)
	v.Grow(n)
	v.SetLen(n)
	if isNil {
		v.SetCap(n)
	}
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
	kept := c.keptElem(t.Elem())
	elemSize := int(t.Elem().Size())
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
		n, least := countElements(data)
		if n < 0 {
			return errMalformed
		}
		isNil, size := v.IsNil(), ahead(n, least, elemSize)
		switch {
		case isNil && n == 0:
			v.Set(reflect.MakeSlice(t, 0, 0))
			return nil
		case isNil && size == n && !kept.isKept():
			v.Grow(n) // MakeSlice would allocate the header of a slice, too
			v.SetLen(n)
			v.SetCap(n)
			return readNew(data, v, elem)
		}
		return readChunks(data, 4, 0, n, size, t, v, elem)
	}, true
}

// ahead returns how many of n elements are allocated before the first one is read: all, or one if an element takes elemSize
// bytes and the shortest has so few that this is too much.
func ahead(n, least, elemSize int) int {
	if elemSize > maxAhead*least {
		return 1
	}
	return n
}

// readNew sets the elements of v, which are zero, to those of the array. If one cannot be read, v is zero again.
func readNew(array []byte, v reflect.Value, elem readFunc) error {
	complete := false
	defer func() {
		if !complete {
			v.SetZero()
		}
	}()
	_, err := readElements(array, 4, 0, v, elem)
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
	kept := c.keptElem(t.Elem())
	sliceType := reflect.SliceOf(t.Elem())
	elemSize := int(t.Elem().Size())
	return func(bt byte, data []byte, v reflect.Value) error {
		n, least := 0, 0
		if bson.Type(bt) == bson.TypeArray {
			n, least = countElements(data)
		}
		if n < 0 {
			return errMalformed
		}
		if bson.Type(bt) != bson.TypeArray || n > t.Len() {
			return slow(bt, data, v)
		}
		// The array changes when all elements are read.
		if n == t.Len() && !kept.isKept() && v.IsZero() {
			return readNew(data, v, elem)
		}
		return readChunks(data, 4, 0, n, ahead(n, least, elemSize), sliceType, v, elem)
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
	slot := slotSize(t)
	return func(bt byte, data []byte, v reflect.Value) error {
		switch bson.Type(bt) {
		case bson.TypeNull:
			v.SetZero()
			return nil
		case bson.TypeEmbeddedDocument:
		default:
			return slow(bt, data, v)
		}
		n, least := countElements(data)
		if n < 0 {
			return errMalformed
		}
		if v.IsNil() {
			v.Set(reflect.MakeMapWithSize(t, entriesAhead(n, least, slot)))
		} else if c.ZeroMaps {
			v.Clear()
		}
		return entries(data, v)
	}, true
}

// slotSize returns how many bytes an entry of a map of type t takes at most, if the map is full.
func slotSize(t reflect.Type) int {
	const maxInPlace = 128 // a longer key or value is behind a pointer
	size := 1
	for _, part := range [...]reflect.Type{t.Key(), t.Elem()} {
		if part.Size() > maxInPlace {
			part = tPointer
		}
		size += int(part.Size())
	}
	return size
}

// entriesAhead returns how many entries of a map are allocated before the first of n elements is read, of which the
// shortest has least bytes. A map whose entries take slot bytes can have 16 slots for 7 entries.
func entriesAhead(n, least, slot int) int {
	const used = maxAhead * 7 / 16
	if used*least >= slot {
		return n
	}
	return n * (used * least) / slot
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
	keptKey := reflect.PointerTo(keyType).Implements(tTextUnmarshaler)
	if keptKey {
		c.callsCaller()
	}
	key, ok := readKey(keyType)
	if !ok {
		return nil, false
	}
	kept := c.keptElem(elemType)
	return func(doc []byte, v reflect.Value) error {
		if doc[4] == 0 {
			return nil // a value can be far larger than the document
		}
		keptElem := kept.isKept()
		k, e := reflect.New(keyType).Elem(), reflect.New(elemType).Elem()
		for rest := doc[4:]; rest[0] != 0; {
			bt := rest[0]
			end := keyEnd(rest)
			name := string(rest[1:end])
			rest = rest[end+1:]
			size := valueSize(bt, rest)
			if err := key(name, k); err != nil {
				return err
			}
			if err := elem(bt, rest[:size], e); err != nil {
				return wrapKey(name, err)
			}
			v.SetMapIndex(k, e)
			rest = rest[size:]
			if rest[0] == 0 {
				break
			}
			// Code of a caller can have kept a pointer to the key or into the value.
			if keptKey {
				k = reflect.New(keyType).Elem()
			}
			if keptElem {
				e = reflect.New(elemType).Elem()
			} else {
				e.SetZero()
			}
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
