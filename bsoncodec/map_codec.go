package bsoncodec

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/uuidtext"
)

// mapCodec stands before the driver's codec of maps. It encodes keys that are UUIDs and have no text
// methods as the text of the UUID, and refuses keys of kind [16]byte that are not registered.
type mapCodec struct {
	rules   *typeRules
	encoder bson.ValueEncoder // the driver's
	decoder bson.ValueDecoder
	known   sync.Map // of reflect.Type to *keyType
}

// keyType says how a mapCodec treats one type of keys. If keys are no texts and there is no error, the
// driver's codec has them.
type keyType struct {
	encodeText, decodeText bool // a key is the text of a UUID
	encodeErr, decodeErr   error
	byFunc                 *uuidFunc // that makes the keys, or nil
}

// keyType returns what c does with keys of type t, nil for what the driver does.
func (c *mapCodec) keyType(t reflect.Type) *keyType {
	if (t.Kind() != reflect.Array || t.Len() != 16) && (t.Kind() != reflect.Struct || !c.rules.uuids[t]) && c.rules.funcs[t] == nil {
		return nil
	}
	if known, ok := c.known.Load(t); ok {
		return known.(*keyType)
	}
	k := &keyType{byFunc: c.rules.funcs[t]}
	uuids := c.rules.uuids[t] || k.byFunc != nil || c.rules.unregistered == asUUID && isOctets(t) && !c.rules.bytes[t]
	refused := c.rules.unregistered == refuse && isOctets(t) && !uuids && !c.rules.bytes[t]
	if !t.Implements(tKeyMarshaler) && !t.Implements(tTextMarshaler) {
		k.encodeText = uuids
		if refused {
			k.encodeErr = errNotRegistered(t, false)
		}
	}
	if p := reflect.PointerTo(t); !p.Implements(tKeyUnmarshaler) && !p.Implements(tTextUnmarshaler) {
		k.decodeText = uuids
		if refused {
			k.decodeErr = errNotRegistered(t, true)
		}
	}
	kept, _ := c.known.LoadOrStore(t, k)
	return kept.(*keyType)
}

// textKey is the key type that the driver's codecs get instead, so that everything but the text of
// the keys is theirs.
type textKey [16]byte

var tTextKey = reflect.TypeFor[textKey]()

func (k textKey) String() string { return uuid.UUID(k).String() }

func (k textKey) MarshalText() ([]byte, error) { return uuid.UUID(k).MarshalText() }

func (k *textKey) UnmarshalText(text []byte) error {
	u, err := uuidtext.Parse(string(text))
	if err != nil {
		return fmt.Errorf("bsoncodec: cannot decode the map key %q into a UUID: %w", text, err)
	}
	*k = textKey(u)
	return nil
}

// EncodeValue is the ValueEncoder of maps.
func (c *mapCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if val.Kind() != reflect.Map {
		return c.encoder.EncodeValue(ec, vw, val)
	}
	switch k := c.keyType(val.Type().Key()); {
	case k == nil:
	case k.encodeErr != nil && val.Len() > 0:
		return k.encodeErr
	case k.encodeText:
		var err error
		if val, err = k.textKeys(val); err != nil {
			return err
		}
	}
	if err := c.encoder.EncodeValue(ec, vw, val); err != nil {
		return withPath(ec, val, err)
	}
	return nil
}

// EncodeError returns err, an error of encoding val by a plan, as EncodeValue does.
func (*mapCodec) EncodeError(ec bson.EncodeContext, val reflect.Value, err error) error {
	return withPath(ec, val, err)
}

// EncodesMapsAsTheDriver makes a mapCodec a [driver.MapEncoder].
func (*mapCodec) EncodesMapsAsTheDriver() {}

// textKeys returns the map m with its UUID keys as textKeys, nil for nil.
func (k *keyType) textKeys(m reflect.Value) (reflect.Value, error) {
	t := reflect.MapOf(tTextKey, m.Type().Elem())
	if m.IsNil() {
		return reflect.Zero(t), nil
	}
	text := reflect.MakeMapWithSize(t, m.Len())
	to, toOctets := newKey(tTextKey)
	from, fromOctets := reflect.Value{}, []byte(nil)
	if k.byFunc == nil {
		from, fromOctets = newKey(m.Type().Key())
	}
	for it := m.MapRange(); it.Next(); {
		if k.byFunc != nil {
			id, ok, err := k.byFunc.uuidOf(it.Key())
			if err == nil && !ok {
				err = fmt.Errorf("bsoncodec: cannot encode a %v: the key %v has no UUID", m.Type(), it.Key())
			}
			if err != nil {
				return text, err
			}
			copy(toOctets, id[:])
		} else {
			from.Set(it.Key())
			copy(toOctets, fromOctets)
		}
		text.SetMapIndex(to, it.Value())
	}
	if text.Len() != m.Len() {
		return text, fmt.Errorf("bsoncodec: cannot encode a %v: two of its keys have one UUID", m.Type())
	}
	return text, nil
}

// setKeys sets the entries of text, a map with textKeys, in m.
func (k *keyType) setKeys(m, text reflect.Value) error {
	from, fromOctets := newKey(tTextKey)
	to, toOctets := reflect.Value{}, []byte(nil)
	if k.byFunc == nil {
		to, toOctets = newKey(m.Type().Key())
	}
	for it := text.MapRange(); it.Next(); {
		from.Set(it.Key())
		if k.byFunc != nil {
			key, err := k.byFunc.valueOf(uuid.UUID(fromOctets))
			if err != nil {
				return err
			}
			to = key
		} else {
			copy(toOctets, fromOctets)
		}
		m.SetMapIndex(to, it.Value())
	}
	return nil
}

// DecodeValue is the ValueDecoder of maps. Like the driver's, it extends a map that is not nil, and
// keeps what it decoded before an error.
func (c *mapCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if val.Kind() != reflect.Map || (!val.CanSet() && val.IsNil()) {
		return ofDocument(c.decoder, dc, vr, val)
	}
	k := c.keyType(val.Type().Key())
	switch vrType := vr.Type(); {
	case k != nil && k.decodeErr != nil && (vrType == bson.TypeEmbeddedDocument || vrType == 0):
		return k.decodeErr
	case k == nil || !k.decodeText:
		return ofDocument(c.decoder, dc, vr, val)
	}
	text := reflect.New(reflect.MapOf(tTextKey, val.Type().Elem())).Elem()
	keys, err := k.textKeys(val)
	if err != nil {
		return err
	}
	text.Set(keys)
	err = ofDocument(c.decoder, dc, vr, text)
	switch {
	case text.IsNil():
		val.SetZero()
		return err
	case val.IsNil():
		val.Set(reflect.MakeMapWithSize(val.Type(), text.Len()))
	default:
		val.Clear()
	}
	if errKey := k.setKeys(val, text); err == nil {
		err = errKey
	}
	return err
}

// EncoderFor returns the codec of maps of type t.
func (c *mapCodec) EncoderFor(_ *bson.Registry, t reflect.Type) bson.ValueEncoder {
	if t.Kind() != reflect.Map {
		return c
	}
	if k := c.keyType(t.Key()); k != nil && (k.encodeText || k.encodeErr != nil) {
		return c
	}
	return c.encoder
}

// DecoderFor returns the codec of maps of type t.
func (c *mapCodec) DecoderFor(_ *bson.Registry, t reflect.Type) bson.ValueDecoder {
	if t.Kind() != reflect.Map {
		return c
	}
	if k := c.keyType(t.Key()); k != nil && (k.decodeText || k.decodeErr != nil) {
		return c
	}
	return c.decoder
}
