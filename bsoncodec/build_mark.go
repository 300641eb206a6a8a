package bsoncodec

import (
	"bytes"
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/driver"
)

// A registry has one [built.Note], of which the rules are the typeRules.

// rulesOf returns the rules of reg, nil if no builder was applied to it.
func rulesOf(reg *bson.Registry) *typeRules {
	n := built.Of(reg)
	if n == nil {
		return nil
	}
	r, _ := n.Rules.(*typeRules)
	return r
}

// newNote gives reg a note. It is an error if reg has one already.
func newNote(reg *bson.Registry, rules *typeRules) (*built.Note, error) {
	if n := built.Of(reg); n != nil {
		if n.Stage != built.Done {
			n.Stage = built.Nested
			return nil, errNested
		}
		return nil, errors.New("bsoncodec: the registry has codecs for UUIDs already: build another")
	}
	n := &built.Note{Rules: rules, Stage: built.Building}
	n.AddTo(reg)
	return n, nil
}

var errNested = errors.New("bsoncodec: a function of With applied a builder to the registry that is being built: " +
	"one registry stores UUIDs in one representation")

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

// pastUnmarshaler returns v, or a pointer to it if its method UnmarshalBSON is not to be called because reg has its type as
// a document: the driver calls the method of what it is given, and a pointer to a pointer has none.
func pastUnmarshaler(reg *bson.Registry, v any) (any, error) {
	if _, ok := v.(bson.Unmarshaler); !ok {
		return v, nil
	}
	rules := rulesOf(reg)
	if rules == nil {
		return v, nil
	}
	target := reflect.ValueOf(v)
	switch _, ok := rules.document(target); {
	case !ok:
		return v, nil
	case target.Kind() != reflect.Pointer:
		return nil, errNoPointer(v)
	}
	p := reflect.New(target.Type())
	p.Elem().Set(target)
	return p.Interface(), nil
}

// errUnmarshaler returns the error of decoding a whole document into v, whose method UnmarshalBSON the driver calls without
// asking the registry reg, nil if there is none.
func errUnmarshaler(reg *bson.Registry, v bson.Unmarshaler, o Options) error {
	rules, t := rulesOf(reg), methodTypeOf(reflect.ValueOf(v))
	if rules == nil || t == nil {
		return nil
	}
	return rules.method(t, method{decode: true, whole: true}).of(func() bool { return o.UseJSONStructTags })
}
