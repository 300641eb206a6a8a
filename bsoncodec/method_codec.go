package bsoncodec

import (
	"bytes"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// The driver calls the marshaling methods of a type before it looks at its kind, so that neither the rules for structs nor
// the codec of arrays see such a type. The codecs of this file stand before the driver's for methods. They refuse a method
// that a struct has from an embedded field, if it leaves out other fields, and a method that writes a UUID of its value as
// subtype 0.

// A methodEncoder is the encoder of the types with a marshaling method.
type methodEncoder struct {
	method
	rules  *typeRules
	driver bson.ValueEncoder
}

// EncodeValue calls the method of val as the driver does, unless it is refused. An interface can hold a type with another
// codec, one that is registered as a document.
func (c *methodEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if doc, ok := c.rules.document(val); ok {
		if enc := encoderOf(ec.Registry, doc.Type()); enc != bson.ValueEncoder(c) {
			return enc.EncodeValue(ec, vw, doc)
		}
	}
	s, err := c.rules.marshaling(ec, val, c.method)
	if err != nil {
		return err
	}
	if s == nil {
		return c.driver.EncodeValue(ec, vw, val)
	}
	receiver := val
	if val.Kind() != reflect.Pointer && val.Kind() != reflect.Interface && val.CanAddr() {
		receiver = val.Addr() // which has the methods of the value, too
	}
	if c.whole {
		if m, ok := receiver.Interface().(bson.Marshaler); ok {
			return c.driver.EncodeValue(ec, vw, reflect.ValueOf(searchedDocument{*s, m}))
		}
	} else if m, ok := receiver.Interface().(bson.ValueMarshaler); ok {
		return c.driver.EncodeValue(ec, vw, reflect.ValueOf(searchedValue{*s, m}))
	}
	return c.driver.EncodeValue(ec, vw, val)
}

// Driver makes a methodEncoder a [driver.KindEncoder].
func (c *methodEncoder) Driver() bson.ValueEncoder { return c.driver }

// marshaling returns what calls the method m of val and searches the result for UUIDs of val. It is nil if there is nothing
// to search for. A method that the rules refuse is an error.
func (r *typeRules) marshaling(ec bson.EncodeContext, val reflect.Value, m method) (*searchedMethod, error) {
	t := methodTypeOf(val)
	if t == nil {
		return nil, nil
	}
	k := r.method(t, m)
	if err := k.of(func() bool { return encodesJSONTags(ec) }); err != nil || !k.searched {
		return nil, err
	}
	return &searchedMethod{r, val, t}, nil
}

// A searchedMethod is a value whose method returns nothing that is refused.
type searchedMethod struct {
	rules *typeRules
	val   reflect.Value
	t     reflect.Type
}

type searchedValue struct {
	searchedMethod
	bson.ValueMarshaler
}

type searchedDocument struct {
	searchedMethod
	bson.Marshaler
}

// MarshalBSONValue returns what the method of the value returns.
func (s searchedValue) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := s.ValueMarshaler.MarshalBSONValue()
	if err == nil {
		err = s.rules.errSubtype0(s.val, s.t, method{}, bson.RawValue{Type: bson.Type(t), Value: data})
	}
	return t, data, err
}

// MarshalBSON returns what the method of the value returns.
func (s searchedDocument) MarshalBSON() ([]byte, error) {
	doc, err := s.Marshaler.MarshalBSON()
	if err == nil {
		err = s.rules.errSubtype0(s.val, s.t, method{whole: true}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
	}
	return doc, err
}

// MarshalDocument returns what the method MarshalBSON of doc returns, if it loses nothing.
func (r *typeRules) MarshalDocument(ec bson.EncodeContext, doc bson.Marshaler) ([]byte, error) {
	if v, ok := r.document(reflect.ValueOf(doc)); ok {
		return encodedDocument(ec, v)
	}
	s, err := r.marshaling(ec, reflect.ValueOf(doc), method{whole: true})
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return doc.MarshalBSON()
	}
	return searchedDocument{*s, doc}.MarshalBSON()
}

// MarshalValue returns what the method MarshalBSONValue of v returns, if it loses nothing.
func (r *typeRules) MarshalValue(ec bson.EncodeContext, v bson.ValueMarshaler) (byte, []byte, error) {
	if doc, ok := r.document(reflect.ValueOf(v)); ok {
		data, err := encodedDocument(ec, doc)
		return byte(bson.TypeEmbeddedDocument), data, err
	}
	s, err := r.marshaling(ec, reflect.ValueOf(v), method{})
	switch {
	case err != nil:
		return 0, nil, err
	case s == nil:
		return v.MarshalBSONValue()
	}
	return searchedValue{*s, v}.MarshalBSONValue()
}

// encodedDocument returns what the registry of ec encodes for doc, the value of a type that is registered as a document.
func encodedDocument(ec bson.EncodeContext, doc reflect.Value) ([]byte, error) {
	b, encoded, err := driver.WriteDocument(func(vw bson.ValueWriter) error {
		return encoderOf(ec.Registry, doc.Type()).EncodeValue(ec, vw, doc)
	})
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return bytes.Clone(encoded), nil
}

// A methodDecoder is the decoder of the types with an unmarshaling method.
type methodDecoder struct {
	method
	rules  *typeRules
	driver bson.ValueDecoder
}

// DecodeValue calls the method of val as the driver does, unless it is refused. An interface can hold a type with another
// codec, one that is registered as a document.
func (c *methodDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if doc, ok := c.rules.document(val); ok {
		if dec := decoderOf(dc.Registry, doc.Type()); dec != bson.ValueDecoder(c) {
			return decodeDocument(dec, dc, vr, val, doc)
		}
	}
	if val.IsValid() {
		t := val.Type()
		if dynamic := methodTypeOf(val); dynamic != nil {
			t = dynamic
		} else if t.Kind() == reflect.Pointer {
			t = t.Elem() // of which the driver makes one
		}
		if err := c.rules.method(t, c.method).of(func() bool { return decodesJSONTags(dc) }); err != nil {
			return err
		}
	}
	return c.driver.DecodeValue(dc, vr, val)
}

// decodeDocument decodes with dec into doc, which is in val. If it is not behind a pointer, it is replaced.
func decodeDocument(dec bson.ValueDecoder, dc bson.DecodeContext, vr bson.ValueReader, val, doc reflect.Value) error {
	if doc.CanSet() {
		return dec.DecodeValue(dc, vr, doc)
	}
	replaced := reflect.New(doc.Type()).Elem()
	replaced.Set(doc)
	if err := dec.DecodeValue(dc, vr, replaced); err != nil {
		return err
	}
	for val.Kind() == reflect.Pointer || val.Elem().Kind() != reflect.Struct {
		val = val.Elem()
	}
	val.Set(replaced)
	return nil
}

// Driver makes a methodDecoder a [driver.KindDecoder].
func (c *methodDecoder) Driver() bson.ValueDecoder { return c.driver }
