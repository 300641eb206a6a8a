package structcodec

import (
	"encoding/json"
	"net/url"
	"reflect"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A known is a codec of the driver whose work a plan can do itself.
type known uint8

const (
	unknown known = iota
	knownBool
	knownInt
	knownUint
	knownFloat
	knownString
	knownTime
	knownBytes
	knownAny
	knownSlice
	knownArray
	knownMap
	knownPointer
	knownObjectID
	knownDecimal128
	knownBinary
	knownDateTime
	knownNull
	knownUndefined
	knownMinKey
	knownMaxKey
	knownTimestamp
	knownJavaScript
	knownSymbol
	knownRaw
	knownRawValue
	knownD
	knownRegex
	knownOther // a codec of the driver that always reads the value, or writes one
)

// stockCodecs are the codecs of a registry of the driver.
type stockCodecs struct {
	encoders        map[any]known
	decoders        map[any]known
	rawEncoder      bson.ValueEncoder
	rawDecoder      bson.ValueDecoder
	rawValueEncoder bson.ValueEncoder
}

var stock = sync.OnceValue(func() *stockCodecs {
	reg := bson.NewRegistry()
	s := &stockCodecs{encoders: map[any]known{}, decoders: map[any]known{}}
	for _, k := range []struct {
		t reflect.Type
		k known
	}{
		{reflect.TypeFor[bool](), knownBool},
		{reflect.TypeFor[int](), knownInt},
		{reflect.TypeFor[uint](), knownUint},
		{reflect.TypeFor[float64](), knownFloat},
		{reflect.TypeFor[string](), knownString},
		{tTime, knownTime},
		{tBytes, knownBytes},
		{tAny, knownAny},
		{reflect.TypeFor[[]int](), knownSlice},
		{reflect.TypeFor[[1]int](), knownArray},
		{reflect.TypeFor[map[string]int](), knownMap},
		{reflect.TypeFor[*int](), knownPointer},
		{tObjectID, knownObjectID},
		{tDecimal128, knownDecimal128},
		{tBinary, knownBinary},
		{tDateTime, knownDateTime},
		{reflect.TypeFor[bson.Null](), knownNull},
		{reflect.TypeFor[bson.Undefined](), knownUndefined},
		{reflect.TypeFor[bson.MinKey](), knownMinKey},
		{reflect.TypeFor[bson.MaxKey](), knownMaxKey},
		{reflect.TypeFor[bson.Timestamp](), knownTimestamp},
		{reflect.TypeFor[bson.JavaScript](), knownJavaScript},
		{reflect.TypeFor[bson.Symbol](), knownSymbol},
		{tRaw, knownRaw},
		{tRawValue, knownRawValue},
		{tD, knownD},
		{tRegex, knownRegex},
		{reflect.TypeFor[json.Number](), knownOther},
		{reflect.TypeFor[url.URL](), knownOther},
		{reflect.TypeFor[bson.DBPointer](), knownOther},
		{reflect.TypeFor[bson.CodeWithScope](), knownOther},
		{reflect.TypeFor[bson.Vector](), knownOther},
	} {
		if enc, err := reg.LookupEncoder(k.t); err == nil {
			if key := codecKey(enc); key != nil && s.encoders[key] == unknown {
				s.encoders[key] = k.k
			}
		}
		if dec, err := reg.LookupDecoder(k.t); err == nil {
			if key := codecKey(dec); key != nil && s.decoders[key] == unknown {
				s.decoders[key] = k.k
			}
		}
	}
	s.rawEncoder, _ = reg.LookupEncoder(tRaw)
	s.rawDecoder, _ = reg.LookupDecoder(tRaw)
	s.rawValueEncoder, _ = reg.LookupEncoder(tRawValue)
	return s
})

func knownEncoder(enc bson.ValueEncoder) known {
	if key := codecKey(enc); key != nil {
		return stock().encoders[key]
	}
	return unknown
}

func knownDecoder(dec bson.ValueDecoder) known {
	if key := codecKey(dec); key != nil {
		return stock().decoders[key]
	}
	return unknown
}

// codecKey returns what two equal codecs of the driver have in common, or nil: their functions, or their type if no
// setting in them is true. The codecs of the driver's other registries differ in these settings.
func codecKey(codec any) any {
	v := reflect.ValueOf(codec)
	switch v.Kind() {
	case reflect.Func:
		return v.Pointer()
	case reflect.Struct:
		if v.NumField() == 2 && v.Field(0).Kind() == reflect.Func && v.Field(1).Kind() == reflect.Func {
			return [2]uintptr{v.Field(0).Pointer(), v.Field(1).Pointer()}
		}
	case reflect.Pointer:
		s := v.Elem()
		if s.Kind() != reflect.Struct {
			return nil
		}
		for i := range s.NumField() {
			if f := s.Field(i); f.Kind() == reflect.Bool && f.Bool() {
				return nil
			}
		}
		return v.Type()
	}
	return nil
}

// Types that plans know.
var (
	tAny        = reflect.TypeFor[any]()
	tTime       = reflect.TypeFor[time.Time]()
	tByte       = reflect.TypeFor[byte]()
	tBytes      = reflect.TypeFor[[]byte]()
	tString     = reflect.TypeFor[string]()
	tE          = reflect.TypeFor[bson.E]()
	tRegex      = reflect.TypeFor[bson.Regex]()
	tD          = reflect.TypeFor[bson.D]()
	tA          = reflect.TypeFor[bson.A]()
	tM          = reflect.TypeFor[bson.M]()
	tMap        = reflect.TypeFor[map[string]any]()
	tPointer    = reflect.TypeFor[*struct{}]()
	tObjectID   = reflect.TypeFor[bson.ObjectID]()
	tDecimal128 = reflect.TypeFor[bson.Decimal128]()
	tBinary     = reflect.TypeFor[bson.Binary]()
	tDateTime   = reflect.TypeFor[bson.DateTime]()
	tRaw        = reflect.TypeFor[bson.Raw]()
	tRawValue   = reflect.TypeFor[bson.RawValue]()
	tZeroer     = reflect.TypeFor[bson.Zeroer]()
)
