package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The driver calls the marshaling methods of a type before it looks at its kind, so that neither the rules for structs nor
// the codec of arrays see such a type. The encoders and decoders of this file stand before the driver's for methods. They
// refuse a method that a struct has from an embedded field, if it leaves out other fields, and a method that writes a UUID
// of its value as subtype 0.

// A method is one of the four methods that the driver calls.
type method struct{ decode, whole bool }

// name returns the name of m. The names stand in the calls of MethodByName, too, because the linker keeps all methods of a
// program that calls it with a variable.
func (m method) name() string {
	switch {
	case m.decode && m.whole:
		return "UnmarshalBSON"
	case m.decode:
		return "UnmarshalBSONValue"
	case m.whole:
		return "MarshalBSON"
	}
	return "MarshalBSONValue"
}

// of returns m of the type t, or of *t if t does not have it.
func (m method) of(t reflect.Type) (reflect.Method, bool) {
	find := func(t reflect.Type) (reflect.Method, bool) {
		switch {
		case m.decode && m.whole:
			return t.MethodByName("UnmarshalBSON")
		case m.decode:
			return t.MethodByName("UnmarshalBSONValue")
		case m.whole:
			return t.MethodByName("MarshalBSON")
		}
		return t.MethodByName("MarshalBSONValue")
	}
	found, ok := find(t)
	if !ok && t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer {
		found, ok = find(reflect.PointerTo(t))
	}
	return found, ok
}

// A methodType is what the rules say of a method of one type.
type methodType struct {
	refusal
	searched bool // what the method returns is searched for UUIDs of the value
}

// method returns what the rules say of the method m of t.
func (r *typeRules) method(t reflect.Type, m method) *methodType {
	type key struct {
		t reflect.Type
		m method
	}
	if known, ok := r.methods.Load(key{t, m}); ok {
		return known.(*methodType)
	}
	k := &methodType{refusal: refusal{r.errPromoted(t, m, false), r.errPromoted(t, m, true)}}
	k.searched = !m.decode && !r.subtype0 && t.PkgPath() != tStandardUUID.PkgPath() && // which writes no subtype 0
		r.canHoldUUID(t, false)
	known, _ := r.methods.LoadOrStore(key{t, m}, k)
	return known.(*methodType)
}

// marshaling returns the error of encoding val by its method m, or what searches what the method returns, nil if nothing has
// to.
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

// methodTypeOf returns the type whose method the driver calls for val, without pointers and interfaces around it. It is nil
// if there is no value.
func methodTypeOf(val reflect.Value) reflect.Type {
	for val.Kind() == reflect.Pointer || val.Kind() == reflect.Interface {
		val = val.Elem()
	}
	if !val.IsValid() {
		return nil
	}
	return val.Type()
}

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

// encodesJSONTags reports whether "json" struct tags stand in for "bson" struct tags in ec.
func encodesJSONTags(ec bson.EncodeContext) bool {
	ec.Registry = nil
	return optionsByEncodeContext()[ec].UseJSONStructTags
}

// decodesJSONTags does for dc what encodesJSONTags does.
func decodesJSONTags(dc bson.DecodeContext) bool {
	dc.Registry = nil
	return optionsByDecodeContext()[dc].UseJSONStructTags
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
