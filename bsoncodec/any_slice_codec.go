package bsoncodec

import (
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// The driver decodes into an []any that has elements by the types of these elements: where a
// bson.Binary was, a binary value becomes a bson.Binary, and the driver of version 2.9.3 panics
// where nil was. But what an any receives for a binary value here depends on the value, and an
// element that was a UUID cannot receive another binary value. So such elements are decoded as
// empty ones. So are those of arrays of any, of which an empty one has elements that are nil.

// anySliceDecoder is the ValueDecoder of []any and bson.A.
type anySliceDecoder struct {
	implicit reflect.Type // what a UUID becomes
	driver   bson.ValueDecoder
	other    onFirstUse[bson.ValueDecoder]
}

var (
	tAnys    = reflect.TypeFor[[]any]()
	tA       = reflect.TypeFor[bson.A]()
	tAnySlot = reflect.TypeFor[anySlot]()
)

// DecodeValue is the ValueDecoder of []any and bson.A.
func (c *anySliceDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	other := c.other.get(func() bson.ValueDecoder {
		if driver.HasOwnDecoder(dc.Registry, tAnySlice) {
			return nil
		}
		return decoderOf(dc.Registry, tAnySlice)
	})
	if other != nil {
		return other.DecodeValue(dc, vr, val)
	}
	if !val.CanAddr() {
		return c.driver.DecodeValue(dc, vr, val)
	}
	var target *[]any
	switch p := val.Addr().Interface().(type) {
	case *[]any:
		target = p
	case *bson.A:
		target = (*[]any)(p)
	default:
		return c.driver.DecodeValue(dc, vr, val)
	}
	return decodeWithSlots(*target, c.implicit, func() ([]any, error) {
		err := c.driver.DecodeValue(dc, vr, val)
		return *target, err
	})
}

// decodeAnyArray decodes into val, an array of any, with the driver's decoder.
func decodeAnyArray(
	decoder bson.ValueDecoder, implicit reflect.Type, dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value,
) error {
	elements := val.Slice(0, val.Len()).Interface().([]any)
	return decodeWithSlots(elements, implicit, func() ([]any, error) {
		return elements, decoder.DecodeValue(dc, vr, val)
	})
}

// decodeWithSlots calls decode, which decodes into the elements before and returns those after, with
// slots in place of the elements that are decoded as empty ones.
func decodeWithSlots(before []any, implicit reflect.Type, decode func() ([]any, error)) error {
	elements := slices.Clone(before)
	for i, v := range before {
		if t := reflect.TypeOf(v); t == nil || t == tBinary || t == implicit {
			before[i] = new(anySlot)
		}
	}
	after, err := decode()
	if err == nil {
		for i, v := range after {
			if slot, ok := v.(*anySlot); ok && slot.decoded {
				after[i] = slot.v
			}
		}
	}
	for i, v := range before { // after an error, or if the array is another one or shorter
		if _, ok := v.(*anySlot); ok {
			before[i] = elements[i]
		}
	}
	return err
}

// anySlot stands for an element that is decoded as an empty any. The driver decodes through a
// pointer to it.
type anySlot struct {
	v       any
	decoded bool
}

// decodeAnySlot is the ValueDecoderFunc of anySlot.
func decodeAnySlot(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	slot := val.Addr().Interface().(*anySlot)
	slot.decoded = true
	return decoderOf(dc.Registry, tAny).DecodeValue(dc, vr, reflect.ValueOf(&slot.v).Elem())
}

// DecoderFor returns the driver's decoder, unless reg has another one for slices. The two differ for a target that has
// elements only, and plans leave such targets to c.
func (c *anySliceDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if !driver.HasOwnDecoder(reg, tAnySlice) {
		return c
	}
	return c.driver
}
