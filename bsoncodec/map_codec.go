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

// textKey is the key that the driver's codecs meet instead, so that all but the text of the keys is theirs.
type textKey [16]byte

var tTextKey = reflect.TypeFor[textKey]()

func (k textKey) String() string { return uuid.UUID(k).String() }

func (k textKey) MarshalText() ([]byte, error) { return uuid.UUID(k).MarshalText() }

func (k *textKey) UnmarshalText(text []byte) error {
	u, err := parseText(string(text))
	if err != nil {
		return fmt.Errorf("bsoncodec: cannot decode the map key %q into a UUID: %w", text, err)
	}
	*k = textKey(u)
	return nil
}

// EncodeValue is the ValueEncoder of maps.
func (c *mapCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Kind() != reflect.Map || !c.marshal[val.Type().Key()] {
		return c.encoder.EncodeValue(ec, vw, val)
	}
	return c.encoder.EncodeValue(ec, vw, textKeys(val))
}

// textKeys returns the map m with its UUID keys as textKeys, nil for nil.
func textKeys(m reflect.Value) reflect.Value {
	t := reflect.MapOf(tTextKey, m.Type().Elem())
	if m.IsNil() {
		return reflect.Zero(t)
	}
	text := reflect.MakeMapWithSize(t, m.Len())
	setKeys(text, m)
	return text
}

// setKeys sets the entries of src in dst, both maps with keys of kind [16]byte.
func setKeys(dst, src reflect.Value) {
	to, from := reflect.New(dst.Type().Key()).Elem(), reflect.New(src.Type().Key()).Elem()
	for it := src.MapRange(); it.Next(); {
		from.Set(it.Key())
		copy(to.Bytes(), from.Bytes())
		dst.SetMapIndex(to, it.Value())
	}
}

// DecodeValue is the ValueDecoder of maps. As the driver's, it extends a map that is there, and keeps what it decoded
// before an error.
func (c *mapCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if val.Kind() != reflect.Map || (!val.CanSet() && val.IsNil()) || !c.unmarshal[val.Type().Key()] {
		return c.decoder.DecodeValue(dc, vr, val)
	}
	text := reflect.New(reflect.MapOf(tTextKey, val.Type().Elem())).Elem()
	text.Set(textKeys(val))
	err := c.decoder.DecodeValue(dc, vr, text)
	switch {
	case text.IsNil():
		val.SetZero()
		return err
	case val.IsNil():
		val.Set(reflect.MakeMapWithSize(val.Type(), text.Len()))
	default:
		val.Clear()
	}
	setKeys(val, text)
	return err
}
