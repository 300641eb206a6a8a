package bsoncodec

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// conversion is what one registry does with UUIDs. It does not change once the registry is built.
type conversion struct {
	rep     uuidrep.Representation // what is written, Unspecified for nothing
	subtype byte                   // as which binary subtype

	typed    subtypes // what a UUID field reads
	implicit subtypes // what any receives as a UUID
	text     bool     // UUID fields read strings
}

// subtypes holds the representation in which each binary subtype is a UUID, Unspecified where it is none.
type subtypes [bson.TypeBinaryUUID + 1]uuidrep.Representation

func (s *subtypes) representation(subtype byte) uuidrep.Representation {
	if int(subtype) < len(s) {
		return s[subtype]
	}
	return uuidrep.Unspecified
}

// permutes reports whether the octets of a UUID are written in another order than they have in memory.
func (c *conversion) permutes() bool {
	return c.rep == uuidrep.CSharpLegacy || c.rep == uuidrep.JavaLegacy
}

// permute sets the 16 octets of dst to those of src in the order of r. They may be the same. It is what
// [uuidrep.Representation.Permute] does, without copying arrays on the way.
func permute(dst, src []byte, r uuidrep.Representation) {
	hi, lo := r.PermuteWords(binary.BigEndian.Uint64(src[:8]), binary.BigEndian.Uint64(src[8:16]))
	binary.BigEndian.PutUint64(dst[:8], hi)
	binary.BigEndian.PutUint64(dst[8:16], lo)
}

// errUnspecified is the error of encoding a t, or decoding one, without a representation.
func errUnspecified(verb string, t reflect.Type) error {
	return fmt.Errorf("bsoncodec: cannot %s %v: %w", verb, t, uuidrep.ErrUnspecified)
}

// errBinary is the error of decoding a binary value that is no UUID here into a t.
func (c *conversion) errBinary(t reflect.Type, subtype byte, length int) error {
	if c.rep == uuidrep.Unspecified {
		return errUnspecified("decode a binary value into", t)
	}
	if c.typed.representation(subtype) != uuidrep.Unspecified {
		return fmt.Errorf("bsoncodec: cannot decode a binary value of subtype %d into %v: %w; a bson.Binary reads it as it is",
			subtype, t, &uuidrep.LengthError{Length: length})
	}
	err := &uuidrep.SubtypeError{Subtype: subtype, Representation: c.rep}
	wayOut := "a bson.Binary reads it as it is"
	switch subtype {
	case bson.TypeBinaryUUIDOld, bson.TypeBinaryUUID:
		wayOut += ", and a registry built with AlsoDecode reads both subtypes as UUIDs"
	case bson.TypeBinaryGeneric:
		if length == 16 {
			wayOut += ", and a registry built with AlsoDecodeGeneric reads it as a UUID"
		}
	}
	return fmt.Errorf("bsoncodec: cannot decode a binary value of %d octets into %v: %w; %s", length, t, err, wayOut)
}
