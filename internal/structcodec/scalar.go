package structcodec

import (
	"encoding/binary"
	"math"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// compileScalar returns what appends values of type t with the driver's encoder enc, which is known as k.
func compileScalar(t reflect.Type, k known, enc bson.ValueEncoder, c *encodeMode) (appendFunc, bool) {
	if !k.suits(t) {
		return nil, false
	}
	if k == knownBytes && c.NilByteSliceAsEmpty {
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			return bson.TypeBinary, appendBinary(dst, bson.TypeBinaryGeneric, v.Bytes()), nil
		}, true
	}
	if f := scalars[k]; f != nil {
		return f, true
	}
	opaque := c.opaque(enc, "")
	switch k {
	case knownRaw:
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			raw := v.Bytes()
			if !validDocument(raw, 0) {
				return opaque(dst, v)
			}
			return bson.TypeEmbeddedDocument, append(dst, raw...), nil
		}, true
	case knownRawValue:
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			t, value := bson.Type(v.Field(0).Uint()), v.Field(1).Bytes()
			if checkValue(byte(t), value, 0) != len(value) {
				return opaque(dst, v)
			}
			return t, append(dst, value...), nil
		}, true
	case knownRegex:
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			pattern, options := v.Field(0).String(), v.Field(1).String()
			if hasZero(pattern) || hasZero(options) || !sorted(options) {
				return opaque(dst, v)
			}
			dst = append(append(dst, pattern...), 0)
			return bson.TypeRegex, append(append(dst, options...), 0), nil
		}, true
	default: // knownOther
		return opaque, true
	}
}

// sorted reports whether s has ASCII characters in ascending order only. The driver sorts the options of a regular
// expression.
func sorted(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 || i > 0 && s[i] < s[i-1] {
			return false
		}
	}
	return true
}

// suits reports whether the codec k takes values of type t. A caller can register it for any type.
func (k known) suits(t reflect.Type) bool {
	switch k {
	case knownBool:
		return t.Kind() == reflect.Bool
	case knownFloat:
		return t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64
	case knownString:
		return t.Kind() == reflect.String
	case knownOther:
		return true
	}
	return t == exact[k]
}

// exact is the only type of the values of a codec.
var exact = map[known]reflect.Type{
	knownTime: tTime, knownBytes: tBytes, knownObjectID: tObjectID, knownDecimal128: tDecimal128,
	knownBinary: tBinary, knownDateTime: tDateTime, knownNull: reflect.TypeFor[bson.Null](),
	knownUndefined: reflect.TypeFor[bson.Undefined](), knownMinKey: reflect.TypeFor[bson.MinKey](),
	knownMaxKey: reflect.TypeFor[bson.MaxKey](), knownTimestamp: reflect.TypeFor[bson.Timestamp](),
	knownJavaScript: reflect.TypeFor[bson.JavaScript](), knownSymbol: reflect.TypeFor[bson.Symbol](),
	knownRaw: tRaw, knownRawValue: tRawValue, knownRegex: tRegex,
}

// scalars are the appendFuncs of the codecs that need no type.
var scalars = [knownOther + 1]appendFunc{
	knownBool: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeBoolean, appendBool(dst, v.Bool()), nil
	},
	knownFloat: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeDouble, binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float())), nil
	},
	knownString: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeString, appendString(dst, v.String()), nil
	},
	knownJavaScript: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeJavaScript, appendString(dst, v.String()), nil
	},
	knownSymbol: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeSymbol, appendString(dst, v.String()), nil
	},
	knownTime: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		ms := bson.NewDateTimeFromTime(timeOf(v))
		return bson.TypeDateTime, binary.LittleEndian.AppendUint64(dst, uint64(ms)), nil
	},
	knownDateTime: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeDateTime, binary.LittleEndian.AppendUint64(dst, uint64(v.Int())), nil
	},
	knownBytes: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if v.IsNil() {
			return bson.TypeNull, dst, nil
		}
		return bson.TypeBinary, appendBinary(dst, bson.TypeBinaryGeneric, v.Bytes()), nil
	},
	knownBinary: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return bson.TypeBinary, appendBinary(dst, byte(v.Field(0).Uint()), v.Field(1).Bytes()), nil
	},
	knownObjectID: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if v.CanAddr() {
			return bson.TypeObjectID, append(dst, v.Bytes()...), nil
		}
		id := v.Interface().(bson.ObjectID)
		return bson.TypeObjectID, append(dst, id[:]...), nil
	},
	knownDecimal128: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		high, low := v.Interface().(bson.Decimal128).GetBytes()
		dst = binary.LittleEndian.AppendUint64(dst, low)
		return bson.TypeDecimal128, binary.LittleEndian.AppendUint64(dst, high), nil
	},
	knownTimestamp: func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		ts := v.Interface().(bson.Timestamp)
		dst = binary.LittleEndian.AppendUint32(dst, ts.I)
		return bson.TypeTimestamp, binary.LittleEndian.AppendUint32(dst, ts.T), nil
	},
	knownNull:      nothing(bson.TypeNull),
	knownUndefined: nothing(bson.TypeUndefined),
	knownMinKey:    nothing(bson.TypeMinKey),
	knownMaxKey:    nothing(bson.TypeMaxKey),
}

func nothing(t bson.Type) appendFunc {
	return func(dst []byte, _ reflect.Value) (bson.Type, []byte, error) { return t, dst, nil }
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendString(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)+1))
	return append(append(dst, s...), 0)
}

// appendBinary appends a binary value. The old binary subtype repeats its length.
func appendBinary(dst []byte, subtype byte, b []byte) []byte {
	if subtype == bson.TypeBinaryBinaryOld {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)+4))
		dst = append(dst, subtype)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
		return append(dst, b...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
	dst = append(dst, subtype)
	return append(dst, b...)
}
