package bsoncodec

import (
	"bytes"
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// buildMark marks a registry to which a builder was applied. It is registered as the encoder of
// [driver.BuildMark].
type buildMark struct {
	rules    *typeRules
	building bool // the functions of With run
	nested   bool // one of them applied a builder
}

var tBuildMark = reflect.TypeFor[driver.BuildMark]()

// IsBuildMark makes a buildMark what [driver.IsBuilt] looks for.
func (*buildMark) IsBuildMark() {}

// buildMarkOf returns the mark of reg, if a builder was applied to it.
func buildMarkOf(reg *bson.Registry) (*buildMark, bool) {
	m, ok := encoderOf(reg, tBuildMark).(*buildMark)
	return m, ok
}

// newBuildMark marks reg. It is an error if reg is marked already.
func newBuildMark(reg *bson.Registry) (*buildMark, error) {
	if m, ok := buildMarkOf(reg); ok {
		if m.building {
			m.nested = true
			return nil, errNested
		}
		return nil, errors.New("bsoncodec: the registry has codecs for UUIDs already: build another")
	}
	m := &buildMark{building: true}
	reg.RegisterTypeEncoder(tBuildMark, m)
	return m, nil
}

// end reports whether a function of With applied another builder to the registry.
func (m *buildMark) end() error {
	m.building = false
	if m.nested {
		return errNested
	}
	return nil
}

var errNested = errors.New("bsoncodec: a function of With applied a builder to the registry that is being built: " +
	"one registry stores UUIDs in one representation")

// EncodeValue makes a buildMark a ValueEncoder. There are no values of its type to encode.
func (m *buildMark) EncodeValue(_ bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	return bson.ValueEncoderError{Name: "BuildMarkEncodeValue", Received: val}
}

// MarshalDocument makes a buildMark what [driver.MarshalDocument] asks.
func (m *buildMark) MarshalDocument(ec bson.EncodeContext, doc bson.Marshaler) ([]byte, error) {
	if v, ok := m.rules.document(reflect.ValueOf(doc)); ok {
		return encodedDocument(ec, v)
	}
	s, err := m.rules.marshaling(ec, reflect.ValueOf(doc), method{whole: true})
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return doc.MarshalBSON()
	}
	return searchedDocument{*s, doc}.MarshalBSON()
}

// MarshalValue makes a buildMark what [driver.MarshalValue] asks.
func (m *buildMark) MarshalValue(ec bson.EncodeContext, v bson.ValueMarshaler) (byte, []byte, error) {
	if doc, ok := m.rules.document(reflect.ValueOf(v)); ok {
		data, err := encodedDocument(ec, doc)
		return byte(bson.TypeEmbeddedDocument), data, err
	}
	s, err := m.rules.marshaling(ec, reflect.ValueOf(v), method{})
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
	m, built := buildMarkOf(reg)
	if !built {
		return v, nil
	}
	target := reflect.ValueOf(v)
	switch _, ok := m.rules.document(target); {
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
	m, ok := buildMarkOf(reg)
	t := methodTypeOf(reflect.ValueOf(v))
	if !ok || t == nil {
		return nil
	}
	return m.rules.method(t, method{decode: true, whole: true}).of(func() bool { return o.UseJSONStructTags })
}
