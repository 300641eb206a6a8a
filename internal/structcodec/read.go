package structcodec

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// readScalar returns what reads values of type t with the driver's decoder that is known as k. It reads the values that
// need no conversion, and leaves the others to slow.
func (c *decodeMode) readScalar(t reflect.Type, k known, slow readFunc) readFunc {
	switch {
	case k == knownInt:
		return c.readInt(t, slow)
	case k == knownUint:
		return c.readUint(t, slow)
	case !k.suits(t):
		return slow
	case k == knownFloat:
		return c.readFloat(t, slow)
	}
	switch k {
	case knownRawValue:
		return func(bt byte, data []byte, v reflect.Value) error {
			*v.Addr().Interface().(*bson.RawValue) = bson.RawValue{Type: bson.Type(bt), Value: append([]byte(nil), data...)}
			return nil
		}
	case knownRaw:
		return func(bt byte, data []byte, v reflect.Value) error {
			if bt := bson.Type(bt); bt != bson.TypeEmbeddedDocument && bt != bson.TypeArray {
				return slow(byte(bt), data, v)
			}
			raw := v.Addr().Interface().(*bson.Raw)
			*raw = append((*raw)[:0], data...)
			return nil
		}
	}
	want, set := setter(k)
	switch {
	case set == nil:
		return slow
	case k == knownTime && c.UseLocalTimeZone:
		set = func(data []byte, v reflect.Value) bool {
			ms := int64At(data)
			*v.Addr().Interface().(*time.Time) = time.Unix(ms/1000, ms%1000*1000000)
			return true
		}
	case k == knownString && c.ObjectIDAsHexString:
		text := slow
		slow = func(bt byte, data []byte, v reflect.Value) error {
			if bson.Type(bt) != bson.TypeObjectID {
				return text(bt, data, v)
			}
			v.SetString(bson.ObjectID(data).Hex())
			return nil
		}
	}
	return func(bt byte, data []byte, v reflect.Value) error {
		switch {
		case bson.Type(bt) == bson.TypeNull:
			v.SetZero()
		case bson.Type(bt) != want || !set(data, v):
			return slow(bt, data, v)
		}
		return nil
	}
}

// setter returns the BSON type of the plain values of the codec k, and what sets v to one if it can.
func setter(k known) (bson.Type, func(data []byte, v reflect.Value) bool) {
	switch k {
	case knownBool:
		return bson.TypeBoolean, func(data []byte, v reflect.Value) bool {
			if data[0] > 1 {
				return false
			}
			v.SetBool(data[0] == 1)
			return true
		}
	case knownString:
		return bson.TypeString, setText
	case knownTime:
		return bson.TypeDateTime, func(data []byte, v reflect.Value) bool {
			ms := int64At(data)
			*v.Addr().Interface().(*time.Time) = time.Unix(ms/1000, ms%1000*1000000).UTC()
			return true
		}
	case knownDateTime:
		return bson.TypeDateTime, func(data []byte, v reflect.Value) bool {
			v.SetInt(int64At(data))
			return true
		}
	case knownJavaScript:
		return bson.TypeJavaScript, setText
	case knownSymbol:
		return bson.TypeSymbol, setText
	case knownObjectID:
		return bson.TypeObjectID, func(data []byte, v reflect.Value) bool {
			*v.Addr().Interface().(*bson.ObjectID) = bson.ObjectID(data)
			return true
		}
	case knownDecimal128:
		return bson.TypeDecimal128, func(data []byte, v reflect.Value) bool {
			*v.Addr().Interface().(*bson.Decimal128) = readDecimal128(data)
			return true
		}
	case knownTimestamp:
		return bson.TypeTimestamp, func(data []byte, v reflect.Value) bool {
			*v.Addr().Interface().(*bson.Timestamp) = readTimestamp(data)
			return true
		}
	case knownBinary:
		return bson.TypeBinary, func(data []byte, v reflect.Value) bool {
			*v.Addr().Interface().(*bson.Binary) = readBinary(data)
			return true
		}
	case knownRegex:
		return bson.TypeRegex, func(data []byte, v reflect.Value) bool {
			end := bytes.IndexByte(data, 0)
			regex := bson.Regex{Pattern: string(data[:end]), Options: string(data[end+1 : len(data)-1])}
			*v.Addr().Interface().(*bson.Regex) = regex
			return true
		}
	case knownNull:
		return bson.TypeNull, setEmpty
	case knownUndefined:
		return bson.TypeUndefined, setEmpty
	case knownMinKey:
		return bson.TypeMinKey, setEmpty
	case knownMaxKey:
		return bson.TypeMaxKey, setEmpty
	case knownBytes:
		return bson.TypeBinary, func(data []byte, v reflect.Value) bool {
			if data[4] != bson.TypeBinaryGeneric {
				return false
			}
			*v.Addr().Interface().(*[]byte) = readBinary(data).Data
			return true
		}
	}
	return 0, nil
}

func setText(data []byte, v reflect.Value) bool {
	v.SetString(string(data[4 : len(data)-1]))
	return true
}

// setEmpty sets v, which has no fields.
func setEmpty([]byte, reflect.Value) bool { return true }

func int64At(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// integer returns the integer in data, if no conversion can fail. A fraction is cut off if the context says so.
func (c *decodeMode) integer(bt byte, data []byte) (int64, bool) {
	switch bson.Type(bt) {
	case bson.TypeInt32:
		return int64(int32At(data)), true
	case bson.TypeInt64:
		return int64At(data), true
	case bson.TypeDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(data))
		return int64(f), (c.AllowTruncatingDoubles || f == math.Trunc(f)) && math.Abs(f) < 1<<53
	}
	return 0, false
}

func (c *decodeMode) readFloat(t reflect.Type, slow readFunc) readFunc {
	single := t.Kind() == reflect.Float32
	return func(bt byte, data []byte, v reflect.Value) error {
		var f float64
		switch bson.Type(bt) {
		case bson.TypeDouble:
			f = math.Float64frombits(binary.LittleEndian.Uint64(data))
		case bson.TypeInt32:
			f = float64(int32At(data))
		case bson.TypeInt64:
			f = float64(int64At(data))
		case bson.TypeNull:
		default:
			return slow(bt, data, v)
		}
		if single && !c.AllowTruncatingDoubles && float64(float32(f)) != f { // an error
			return slow(bt, data, v)
		}
		v.SetFloat(f)
		return nil
	}
}

func (c *decodeMode) readInt(t reflect.Type, slow readFunc) readFunc {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
	default:
		return slow
	}
	return func(bt byte, data []byte, v reflect.Value) error {
		if bson.Type(bt) == bson.TypeNull {
			v.SetZero()
			return nil
		}
		i, ok := c.integer(bt, data)
		if !ok || v.OverflowInt(i) {
			return slow(bt, data, v)
		}
		v.SetInt(i)
		return nil
	}
}

func (c *decodeMode) readUint(t reflect.Type, slow readFunc) readFunc {
	switch t.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
	default:
		return slow
	}
	return func(bt byte, data []byte, v reflect.Value) error {
		if bson.Type(bt) == bson.TypeNull {
			v.SetZero()
			return nil
		}
		i, ok := c.integer(bt, data)
		if !ok || i < 0 || v.OverflowUint(uint64(i)) {
			return slow(bt, data, v)
		}
		v.SetUint(uint64(i))
		return nil
	}
}
