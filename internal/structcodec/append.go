package structcodec

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// compile returns what appends values of type t as its encoder enc writes them. It reports false if only enc can.
func (c encodeCompiler) compile(t reflect.Type, enc bson.ValueEncoder) (appendFunc, bool) {
	resolved := c.resolveEncoder(enc, t)
	if _, ok := resolved.(ValueCodec); ok {
		vc := c.valueCodec(resolved)
		if vc == nil {
			return nil, false
		}
		return c.appendValueCodec(vc, enc), true
	}
	if same(resolved, c.Codec) {
		if t.Kind() != reflect.Struct {
			return nil, false
		}
		return c.appendStruct(c.plan(t)), true
	}
	switch k := knownEncoder(resolved); k {
	case knownInt, knownUint:
		return c.appendInteger(t, k, enc)
	case knownPointer, knownAny, knownSlice, knownArray, knownMap:
		key := encodedType{c.encodeMode, t}
		if o, ok := c.open[key]; ok {
			opaque := c.opaque(enc, "")
			return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
				if o.append == nil {
					return opaque(dst, v)
				}
				return o.append(dst, v)
			}, true
		}
		o := new(openAppend)
		c.open[key] = o
		f, ok := c.compileContainer(t, k)
		delete(c.open, key)
		o.append = f
		return f, ok
	default:
		return compileScalar(t, k, enc, c.encodeMode)
	}
}

func (c encodeCompiler) compileContainer(t reflect.Type, k known) (appendFunc, bool) {
	switch {
	case k == knownPointer && t.Kind() == reflect.Pointer:
		return c.appendPointer(t)
	case k == knownAny && t == tAny:
		dynamic := c.appendDynamic()
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			if v.IsNil() {
				return bson.TypeNull, dst, nil
			}
			return dynamic(dst, v.Elem())
		}, true
	case k == knownSlice && t.Kind() == reflect.Slice:
		return c.appendSlice(t)
	case k == knownArray && t.Kind() == reflect.Array && t.Elem() != tByte && t.Elem() != tE:
		return c.appendElements(t.Elem(), false)
	case k == knownMap && t.Kind() == reflect.Map:
		return c.appendMap(t)
	}
	return nil, false
}

func (c *encodeMode) appendValueCodec(vc ValueCodec, enc bson.ValueEncoder) appendFunc {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		t, extended, err := vc.AppendValue(dst, v)
		if err == c.notPlain {
			return appendEncoded(dst, c.ec, enc, "", v)
		}
		return t, extended, err
	}
}

func (c encodeCompiler) appendStruct(p *encodePlan) appendFunc {
	opaque := c.opaque(c.encoder, "")
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if !p.planned {
			return opaque(dst, v)
		}
		dst, err := p.appendDocument(dst, v)
		return bson.TypeEmbeddedDocument, dst, err
	}
}

func (c encodeCompiler) appendPointer(t reflect.Type) (appendFunc, bool) {
	elem, ok := c.compileElem(t.Elem())
	if !ok {
		return nil, false
	}
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if v.IsNil() {
			return bson.TypeNull, dst, nil
		}
		return elem(dst, v.Elem())
	}, true
}

// compileElem compiles the type of the elements of a container.
func (c encodeCompiler) compileElem(t reflect.Type) (appendFunc, bool) {
	enc, _ := c.encoderOf(t) // without an encoder there is no plan
	return c.compile(t, enc)
}

func (c encodeCompiler) appendSlice(t reflect.Type) (appendFunc, bool) {
	if t.Elem() == tByte {
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			if v.IsNil() && !c.NilSliceAsEmpty {
				return bson.TypeNull, dst, nil
			}
			return bson.TypeBinary, appendBinary(dst, bson.TypeBinaryGeneric, v.Bytes()), nil
		}, true
	}
	if t == tD || t.ConvertibleTo(tD) {
		return c.appendD, true
	}
	return c.appendElements(t.Elem(), !c.NilSliceAsEmpty)
}

// appendElements returns what appends an array of elements of type t. A slice that is nil is null if nilIsNull is set.
func (c encodeCompiler) appendElements(t reflect.Type, nilIsNull bool) (appendFunc, bool) {
	elem, ok := c.compileElem(t)
	if !ok {
		return nil, false
	}
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if nilIsNull && v.IsNil() {
			return bson.TypeNull, dst, nil
		}
		start := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		for i, n := 0, v.Len(); i < n; i++ {
			at := len(dst)
			if i < 10 {
				dst = append(dst, 0, '0'+byte(i), 0)
			} else {
				dst = append(strconv.AppendInt(append(dst, 0), int64(i), 10), 0)
			}
			t, extended, err := elem(dst, v.Index(i))
			if err != nil {
				return 0, dst, err
			}
			dst = extended
			dst[at] = byte(t)
		}
		dst = append(dst, 0)
		putLength(dst, start)
		return bson.TypeArray, dst, nil
	}, true
}

// appendD appends a document of a type that is convertible to [bson.D].
func (c *encodeMode) appendD(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if v.IsNil() && !c.NilSliceAsEmpty {
		return bson.TypeNull, dst, nil
	}
	var d bson.D
	if v.CanAddr() && v.Type() == tD {
		d = *v.Addr().Interface().(*bson.D)
	} else {
		d = v.Convert(tD).Interface().(bson.D)
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var err error
	for i := range d {
		if dst, err = c.appendKeyed(dst, d[i].Key, nil, reflect.ValueOf(d[i].Value)); err != nil {
			return 0, dst, err
		}
	}
	dst = append(dst, 0)
	putLength(dst, start)
	return bson.TypeEmbeddedDocument, dst, nil
}

// appendKeyed appends an element of a document whose keys are data. Without elem, the type of v decides, and v may be
// invalid for nil.
func (c *encodeMode) appendKeyed(dst []byte, key string, elem appendFunc, v reflect.Value) ([]byte, error) {
	if hasZero(key) {
		return dst, c.errKey(key, v)
	}
	at := len(dst)
	dst = append(dst, byte(bson.TypeNull))
	dst = append(append(dst, key...), 0)
	if !v.IsValid() {
		return dst, nil
	}
	if elem == nil {
		var err error
		if elem, err = c.dynamicFunc(v.Type()); err != nil {
			return dst, err
		}
	}
	t, extended, err := elem(dst, v)
	if err != nil {
		return dst, err
	}
	extended[at] = byte(t)
	return extended, nil
}

// errKey returns the driver's error for an element with a key that holds a zero byte. The fallback encodes a struct, so
// that its fields are not encoded before.
func (c *encodeMode) errKey(key string, v reflect.Value) error {
	if !v.IsValid() {
		v = reflect.ValueOf(bson.Null{})
	}
	for {
		enc, err := c.encoderOf(v.Type())
		if err != nil {
			return err
		}
		resolved := c.resolveEncoder(enc, v.Type())
		switch k := knownEncoder(resolved); {
		case (k == knownPointer || k == knownAny) && !v.IsNil():
			v = v.Elem()
			continue
		case same(resolved, c.Codec):
			enc = c.encoder
		}
		_, _, err = appendEncoded(nil, c.ec, enc, key, v)
		return err
	}
}

var (
	tKeyMarshaler  = reflect.TypeFor[bson.KeyMarshaler]()
	tTextMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func (c encodeCompiler) appendMap(t reflect.Type) (appendFunc, bool) {
	elem, ok := c.compileElem(t.Elem())
	if !ok {
		return nil, false
	}
	if enc, err := c.encoderOf(tAny); err == nil && knownEncoder(enc) == knownAny && t.ConvertibleTo(tMap) {
		return c.appendEntries, true
	}
	key, ok := c.keyFunc(t.Key())
	if !ok {
		return nil, false
	}
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if v.IsNil() && !c.NilMapAsEmpty {
			return bson.TypeNull, dst, nil
		}
		start := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		for it := v.MapRange(); it.Next(); {
			k, err := key(it.Key())
			if err == nil {
				dst, err = c.appendKeyed(dst, k, elem, it.Value())
			}
			if err != nil {
				return 0, dst, err
			}
		}
		dst = append(dst, 0)
		putLength(dst, start)
		return bson.TypeEmbeddedDocument, dst, nil
	}, true
}

// appendEntries appends the document of a map from string to any.
func (c *encodeMode) appendEntries(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if v.IsNil() && !c.NilMapAsEmpty {
		return bson.TypeNull, dst, nil
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var err error
	for key, x := range v.Convert(tMap).Interface().(map[string]any) {
		if dst, err = c.appendKeyed(dst, key, nil, reflect.ValueOf(x)); err != nil {
			return 0, dst, err
		}
	}
	dst = append(dst, 0)
	putLength(dst, start)
	return bson.TypeEmbeddedDocument, dst, nil
}

// keyFunc returns what makes the key of an element from a key of type t.
func (c *encodeMode) keyFunc(t reflect.Type) (func(reflect.Value) (string, error), bool) {
	switch {
	case c.StringifyMapKeysWithFmt && !equalsItself(t):
		return nil, false // the driver does not find the value of a key that is not a number
	case c.StringifyMapKeysWithFmt:
		return func(k reflect.Value) (string, error) { return fmt.Sprint(k), nil }, true
	case t.Kind() == reflect.String:
		return func(k reflect.Value) (string, error) { return k.String(), nil }, true
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t.Implements(tKeyMarshaler):
		return nil, false
	case t.Implements(tTextMarshaler):
		return func(k reflect.Value) (string, error) {
			text, err := k.Interface().(encoding.TextMarshaler).MarshalText()
			return string(text), err
		}, true
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(k reflect.Value) (string, error) { return strconv.FormatInt(k.Int(), 10), nil }, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(k reflect.Value) (string, error) { return strconv.FormatUint(k.Uint(), 10), nil }, true
	}
	return nil, false
}

// equalsItself reports whether every value of type t equals itself.
func equalsItself(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Interface:
		return false
	case reflect.Array:
		return equalsItself(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !equalsItself(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// appendInteger returns what appends integers of type t with the driver's encoder enc, which is known as k. A caller can
// register it for any type.
func (c encodeCompiler) appendInteger(t reflect.Type, k known, enc bson.ValueEncoder) (appendFunc, bool) {
	if signed := reflect.Int <= t.Kind() && t.Kind() <= reflect.Int64; signed != (k == knownInt) {
		return nil, false
	}
	minSize := c.IntMinSize
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			return bson.TypeInt32, binary.LittleEndian.AppendUint32(dst, uint32(v.Int())), nil
		}, true
	case reflect.Int64, reflect.Int:
		minSize = minSize || t.Kind() == reflect.Int
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			return appendInt(dst, v.Int(), minSize)
		}, true
	case reflect.Uint8, reflect.Uint16:
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			return bson.TypeInt32, binary.LittleEndian.AppendUint32(dst, uint32(v.Uint())), nil
		}, true
	case reflect.Uint32, reflect.Uint64, reflect.Uint:
		opaque := c.opaque(enc, "")
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			u := v.Uint()
			if u > math.MaxInt64 {
				return opaque(dst, v) // an error
			}
			return appendInt(dst, int64(u), minSize)
		}, true
	}
	return nil, false
}

func appendInt(dst []byte, i int64, minSize bool) (bson.Type, []byte, error) {
	if minSize && math.MinInt32 <= i && i <= math.MaxInt32 {
		return bson.TypeInt32, binary.LittleEndian.AppendUint32(dst, uint32(i)), nil
	}
	return bson.TypeInt64, binary.LittleEndian.AppendUint64(dst, uint64(i)), nil
}

// timeOf returns v, a [time.Time], without an allocation if it can.
func timeOf(v reflect.Value) time.Time {
	if v.CanAddr() {
		return *v.Addr().Interface().(*time.Time)
	}
	return v.Interface().(time.Time)
}
