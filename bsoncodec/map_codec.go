package bsoncodec

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

var (
	tKeyMarshaler    = reflect.TypeFor[bson.KeyMarshaler]()
	tKeyUnmarshaler  = reflect.TypeFor[bson.KeyUnmarshaler]()
	tTextMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	tTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	tString          = reflect.TypeFor[string]()
)

// anyMap finds the registry's codecs for maps: no codec is registered for this very type.
type anyMap map[string]struct{}

// registerMapKeys lets the driver's map codecs take keys of those of types that have no text methods of their own.
// Where every UUID type has them, as google/uuid's has, nothing stands before the driver's codecs.
func registerMapKeys(reg, stock *bson.Registry, types []reflect.Type) {
	c := &mapCodec{marshal: map[reflect.Type]bool{}, unmarshal: map[reflect.Type]bool{}}
	for _, t := range types {
		if !t.Implements(tKeyMarshaler) && !t.Implements(tTextMarshaler) {
			c.marshal[t] = true
		}
		if p := reflect.PointerTo(t); !p.Implements(tKeyUnmarshaler) && !p.Implements(tTextUnmarshaler) {
			c.unmarshal[t] = true
		}
	}
	probe := reflect.TypeFor[anyMap]()
	if len(c.marshal) > 0 && isStockEncoder(reg, stock, probe) {
		c.encoder, _ = reg.LookupEncoder(probe)
		reg.RegisterKindEncoder(reflect.Map, bson.ValueEncoderFunc(c.EncodeValue))
	}
	if len(c.unmarshal) > 0 && isStockDecoder(reg, stock, probe) {
		c.decoder, _ = reg.LookupDecoder(probe)
		reg.RegisterKindDecoder(reflect.Map, bson.ValueDecoderFunc(c.DecodeValue))
	}
}

// mapCodec gives UUID types without text methods the text of a UUID where they are the key of a map.
type mapCodec struct {
	marshal, unmarshal map[reflect.Type]bool // the key types
	encoder            bson.ValueEncoder     // the driver's
	decoder            bson.ValueDecoder
}

// EncodeValue is the ValueEncoder of maps.
func (c *mapCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Kind() != reflect.Map || !c.marshal[val.Type().Key()] {
		return c.encoder.EncodeValue(ec, vw, val)
	}
	return c.encoder.EncodeValue(ec, vw, textKeys(val))
}

// textKeys returns the map m with the text of its UUID keys as keys, nil for nil.
func textKeys(m reflect.Value) reflect.Value {
	t := reflect.MapOf(tString, m.Type().Elem())
	if m.IsNil() {
		return reflect.Zero(t)
	}
	text := reflect.MakeMapWithSize(t, m.Len())
	key := reflect.New(m.Type().Key()).Elem()
	for it := m.MapRange(); it.Next(); {
		key.Set(it.Key())
		text.SetMapIndex(reflect.ValueOf(uuid.UUID(key.Bytes()).String()), it.Value())
	}
	return text
}

// DecodeValue is the ValueDecoder of maps.
func (c *mapCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if val.Kind() != reflect.Map || !val.CanSet() || !c.unmarshal[val.Type().Key()] {
		return c.decoder.DecodeValue(dc, vr, val)
	}
	// The driver decides what becomes of the entries that the map has, by its options.
	text := reflect.New(reflect.MapOf(tString, val.Type().Elem())).Elem()
	text.Set(textKeys(val))
	if err := c.decoder.DecodeValue(dc, vr, text); err != nil {
		return err
	}
	if text.IsNil() {
		val.SetZero()
		return nil
	}
	decoded := reflect.MakeMapWithSize(val.Type(), text.Len())
	key := reflect.New(val.Type().Key()).Elem()
	for it := text.MapRange(); it.Next(); {
		u, err := parseText(it.Key().String())
		if err != nil {
			return fmt.Errorf("bsoncodec: cannot decode the map key %q into %v: %w", it.Key(), key.Type(), err)
		}
		copy(key.Bytes(), u[:])
		decoded.SetMapIndex(key, it.Value())
	}
	if val.IsNil() {
		val.Set(decoded)
		return nil
	}
	val.Clear()
	for it := decoded.MapRange(); it.Next(); {
		val.SetMapIndex(it.Key(), it.Value())
	}
	return nil
}
