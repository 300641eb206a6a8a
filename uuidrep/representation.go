// Package uuidrep holds the representations of a UUID in BSON: their byte orders and binary
// subtypes, explicit conversion to and from [bson.Binary], a field type for each of them, and [ID], a
// UUID with a type parameter.
//
//	b, err := uuidrep.NewBinaryWithRepresentation(id, uuidrep.JavaLegacy) // subtype 3, Java byte order
//	if err != nil {
//		return err
//	}
//	id, err = uuidrep.AsWithRepresentation[uuid.UUID](b, uuidrep.JavaLegacy)
//
//	type Order struct {
//		ID       uuid.UUID              `bson:"_id"`
//		Customer uuidrep.JavaLegacyUUID `bson:"customer"` // whatever the registry says
//	}
//
// Nothing here needs a registry or a client; package bsoncodec converts implicitly. Give a field of
// one of the field types a name: a struct that embeds one has its methods, so that the driver
// stores the whole struct as that UUID, without the other fields.
//
// The package implements "Explicit encoding and decoding" of the MongoDB driver specification
// "Handling of Native UUID Types".
package uuidrep

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/byteorder"
)

// Representation says how a UUID is stored in BSON: as which binary subtype, and with its bytes in
// which order. The zero value is [Unspecified], which stores none. A Representation is a plain
// value, safe to copy and to share.
//
// The bytes below are those of 00112233-4455-6677-8899-aabbccddeeff.
//
// It is the UuidRepresentation enumeration of the specification; the names are the values of the
// connection string option uuidRepresentation.
type Representation uint8

const (
	// Unspecified is the default: UUIDs are neither encoded nor decoded, and every attempt is
	// [ErrUnspecified].
	Unspecified Representation = iota

	// Standard is subtype 4 in the order of RFC 9562, section 4: 00112233445566778899AABBCCDDEEFF.
	Standard

	// CSharpLegacy is subtype 3 as the C# driver wrote it, the bytes 0–3, 4–5 and 6–7 each
	// reversed: 33221100554477668899AABBCCDDEEFF.
	CSharpLegacy

	// JavaLegacy is subtype 3 as the Java driver wrote it, the bytes 0–7 and 8–15 each reversed:
	// 7766554433221100FFEEDDCCBBAA9988.
	JavaLegacy

	// PythonLegacy is subtype 3 in the order of RFC 9562: 00112233445566778899AABBCCDDEEFF.
	PythonLegacy
)

// The constants of package byteorder are these.
var (
	_ [0]struct{} = [CSharpLegacy - byteorder.CSharpLegacy]struct{}{}
	_ [0]struct{} = [JavaLegacy - byteorder.JavaLegacy]struct{}{}
)

var names = [...]string{
	Unspecified:  "unspecified",
	Standard:     "standard",
	CSharpLegacy: "csharpLegacy",
	JavaLegacy:   "javaLegacy",
	PythonLegacy: "pythonLegacy",
}

// Parse returns the representation that s names, in any letter case: "unspecified", "standard",
// "csharpLegacy", "javaLegacy" or "pythonLegacy". Any other string, the empty one included, is an
// error that lists these.
//
// The names are those of the specification's table of the option uuidRepresentation.
func Parse(s string) (Representation, error) {
	for r, name := range names {
		// EqualFold also folds letters outside ASCII, which are longer in UTF-8.
		if len(s) == len(name) && strings.EqualFold(s, name) {
			return Representation(r), nil
		}
	}
	return Unspecified, fmt.Errorf("uuidrep: unknown UUID representation %q: the valid ones are %s",
		s, strings.Join(names[:], ", "))
}

// String returns the name that [Parse] reads, as the specification spells it: "csharpLegacy". For a
// value that is not one of the five constants it returns "Representation(n)", which Parse refuses.
func (r Representation) String() string {
	if r.valid() {
		return names[r]
	}
	return fmt.Sprintf("Representation(%d)", uint8(r))
}

// MarshalText returns the name of r, for flags, environment variables and configuration files. A
// value that is not one of the five constants is an error. It implements [encoding.TextMarshaler].
func (r Representation) MarshalText() ([]byte, error) {
	if !r.valid() {
		return nil, r.unknown()
	}
	return []byte(names[r]), nil
}

// UnmarshalText sets r to the representation that text names, as [Parse] reads it, with the same
// errors. After an error r is unchanged. It implements [encoding.TextUnmarshaler].
func (r *Representation) UnmarshalText(text []byte) error {
	p, err := Parse(string(text))
	if err != nil {
		return err
	}
	*r = p
	return nil
}

// Subtype returns the BSON binary subtype that r encodes to: 4 for [Standard], 3 for the three
// legacy ones. [Unspecified] is [ErrUnspecified], and a value that is not one of the five constants
// is an error.
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

// Permute returns the 16 bytes of a UUID in the order in which r stores them. Given the stored
// bytes, it returns the UUID's: each order is its own inverse. Only [CSharpLegacy] and [JavaLegacy]
// change the order.
//
// The orders are those of the specification's UuidRepresentation enumeration.
func (r Representation) Permute(u [16]byte) [16]byte {
	byteorder.Permute(u[:], u[:], uint8(r))
	return u
}

func (r Representation) valid() bool { return int(r) < len(names) }

func (r Representation) unknown() error {
	return fmt.Errorf("uuidrep: %v is not a UUID representation: the valid ones are %s", r, strings.Join(names[:], ", "))
}
