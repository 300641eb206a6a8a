package bsoncodec

import (
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
