package bsoncodec

import (
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/byteorder"
	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/bsonids/bsonids/uuidrep"
)

// conversion says how one registry encodes and decodes UUIDs. It does not change once the registry is built.
type conversion struct {
	rep     uuidrep.Representation // what is written, Unspecified for nothing
	subtype byte                   // as which binary subtype

	typed    subtypes // what a UUID field reads
	implicit subtypes // what any receives as a UUID
	text     bool     // UUID fields read strings

	asString   bool // UUIDs are written as strings
	zeroAsNull bool // the zero UUID is written as null
}

// binary reports whether every UUID is written as a binary value.
func (c *conversion) binary() bool {
	return c.rep != uuidrep.Unspecified && !c.asString && !c.zeroAsNull
}

// permutes reports whether the octets of a UUID are written in another order than they have in
// memory.
func (c *conversion) permutes() bool {
	return c.rep == uuidrep.CSharpLegacy || c.rep == uuidrep.JavaLegacy
}

// subtypes has the representation of the UUIDs of each binary subtype. It is Unspecified for a subtype whose values are no
// UUIDs.
type subtypes [256]uuidrep.Representation

// permute is [uuidrep.Representation.Permute] from src to dst, which may be the same, without
// copies of arrays.
func permute(dst, src []byte, r uuidrep.Representation) { byteorder.Permute(dst, src, uint8(r)) }

// errUnspecified is the error of encoding a t, or decoding one, without a representation.
func errUnspecified(verb string, t reflect.Type) error {
	return fmt.Errorf("bsoncodec: cannot %s %v: %w", verb, t, uuidrep.ErrUnspecified)
}

// errBinary is the error of decoding into a t a binary value that is not a UUID in this registry.
func (c *conversion) errBinary(t reflect.Type, subtype byte, octets []byte) error {
	if c.rep == uuidrep.Unspecified {
		return errUnspecified("decode a binary value into", t)
	}
	length := len(octets)
	_, text := uuidtext.ParseBinary(subtype, octets)
	if c.typed[subtype] != uuidrep.Unspecified || text {
		return fmt.Errorf("bsoncodec: cannot decode a binary value of subtype %d into %v: %w; "+
			"a bson.Binary reads any value", subtype, t, &uuidrep.LengthError{Length: length, Text: text})
	}
	wayOut := "a bson.Binary reads any value"
	switch subtype {
	case bson.TypeBinaryUUID:
		wayOut += ", a uuidrep.StandardUUID reads subtype 4 whatever the registry, " +
			"and a registry built with AlsoDecode reads both subtypes"
	case bson.TypeBinaryUUIDOld:
		wayOut += ", and a registry built with AlsoDecode reads both subtypes"
	case bson.TypeBinaryGeneric:
		if length == 16 {
			wayOut += ", and a registry built with AlsoDecodeSubtype0 reads subtype 0 as a UUID"
		}
	}
	return fmt.Errorf("bsoncodec: cannot decode a binary value of %d bytes into %v: %w; %s",
		length, t, &uuidrep.SubtypeError{Subtype: subtype, Representation: c.rep}, wayOut)
}
