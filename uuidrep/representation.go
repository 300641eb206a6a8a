// Package uuidrep holds the representations of a UUID in BSON: their byte orders and binary subtypes, explicit
// conversion to and from [bson.Binary], and a field type for each of them.
//
// It implements "Explicit encoding and decoding" of the MongoDB driver specification "Handling of Native UUID Types".
// Nothing here needs a registry or a client; package bsoncodec converts implicitly.
//
// Give a field of one of the field types a name. A struct that embeds one has its methods, so that for BSON the whole
// struct is that UUID and its other fields are not stored: as an element without a word, as a document with an error.
package uuidrep

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Representation says how a UUID is stored in BSON: as which binary subtype, and with its octets in which order.
// The zero value is [Unspecified], which stores none. A Representation is a plain value, safe to copy and to share.
//
// It is the UuidRepresentation enumeration of the specification; the names are the values of the connection string
// option uuidRepresentation. The octets below are those of 00112233-4455-6677-8899-aabbccddeeff.
type Representation uint8

const (
	// Unspecified is the default: UUIDs are neither encoded nor decoded, and every attempt is [ErrUnspecified].
	Unspecified Representation = iota

	// Standard is subtype 4 in the order of RFC 9562, section 4: 00112233445566778899AABBCCDDEEFF.
	Standard

	// CSharpLegacy is subtype 3 as the C# driver wrote it, octets 0–3, 4–5 and 6–7 each reversed:
	// 33221100554477668899AABBCCDDEEFF.
	CSharpLegacy

	// JavaLegacy is subtype 3 as the Java driver wrote it, octets 0–7 and 8–15 each reversed:
	// 7766554433221100FFEEDDCCBBAA9988.
	JavaLegacy

	// PythonLegacy is subtype 3 in the order of RFC 9562: 00112233445566778899AABBCCDDEEFF.
	PythonLegacy
)

var names = [...]string{
	Unspecified:  "unspecified",
	Standard:     "standard",
	CSharpLegacy: "csharpLegacy",
	JavaLegacy:   "javaLegacy",
	PythonLegacy: "pythonLegacy",
}

// Parse returns the representation that s names, in any letter case: "unspecified", "standard", "csharpLegacy",
// "javaLegacy" or "pythonLegacy". Any other string, the empty one included, is an error that lists these.
//
// The names are fixed by the specification's table of the uuidRepresentation option.
func Parse(s string) (Representation, error) {
	for r, name := range names {
		// EqualFold alone would take letters outside ASCII that fold to these; they are longer in UTF-8.
		if len(s) == len(name) && strings.EqualFold(s, name) {
			return Representation(r), nil
		}
	}
	return Unspecified, fmt.Errorf("uuidrep: unknown UUID representation %q: the valid ones are %s",
		s, strings.Join(names[:], ", "))
}

// String returns the name that [Parse] reads, as the specification spells it: "csharpLegacy". A value that is none of
// the five constants gives "Representation(n)", which Parse refuses.
func (r Representation) String() string {
	if r.valid() {
		return names[r]
	}
	return fmt.Sprintf("Representation(%d)", uint8(r))
}

// MarshalText returns the name of r, for flags, environment variables and configuration files. A value that is none
// of the five constants is an error. It implements [encoding.TextMarshaler].
func (r Representation) MarshalText() ([]byte, error) {
	if !r.valid() {
		return nil, r.unknown()
	}
	return []byte(names[r]), nil
}

// UnmarshalText sets r to the representation that text names, as [Parse] reads it, with the same errors; after an
// error r is unchanged. It implements [encoding.TextUnmarshaler].
func (r *Representation) UnmarshalText(text []byte) error {
	p, err := Parse(string(text))
	if err != nil {
		return err
	}
	*r = p
	return nil
}

// Subtype returns the BSON binary subtype that r encodes to: 4 for [Standard], 3 for the three legacy ones. For
// [Unspecified] and unknown values it is [ErrUnspecified] or an error that names the value.
func (r Representation) Subtype() (byte, error) {
	switch r {
	case Standard:
		return bson.TypeBinaryUUID, nil
	case CSharpLegacy, JavaLegacy, PythonLegacy:
		return bson.TypeBinaryUUIDOld, nil
	case Unspecified:
		return 0, ErrUnspecified
	}
	return 0, r.unknown()
}

// Permute returns the 16 octets of a UUID in the order in which r stores them or, given the stored ones, the UUID's:
// each order is its own inverse. Only [CSharpLegacy] and [JavaLegacy] change anything.
//
// The orders are those of the specification's UuidRepresentation enumeration.
func (r Representation) Permute(u [16]byte) [16]byte {
	hi, lo := r.PermuteWords(binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:]))
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return u
}

// PermuteWords is [Representation.Permute] on the octets 0–7 and 8–15 as big-endian words, for code that converts many
// UUIDs in a row.
func (r Representation) PermuteWords(hi, lo uint64) (uint64, uint64) {
	switch r {
	case CSharpLegacy:
		// All eight octets reversed put the three groups in reverse, too.
		hi = bits.ReverseBytes64(hi)
		hi = hi<<32 | uint64(bits.RotateLeft32(uint32(hi>>32), 16))
	case JavaLegacy:
		hi, lo = bits.ReverseBytes64(hi), bits.ReverseBytes64(lo)
	}
	return hi, lo
}

func (r Representation) valid() bool { return int(r) < len(names) }

func (r Representation) unknown() error {
	return fmt.Errorf("uuidrep: %v is not a UUID representation: the valid ones are %s", r, strings.Join(names[:], ", "))
}
