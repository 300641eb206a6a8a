package uuidrep

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/uuidtext"
)

// NewBinary returns u, of any UUID type, as a BSON binary value in the [Standard] representation:
// subtype 4, 16 bytes in the order of RFC 9562. The value shares no memory with u.
//
// It is the specification's BsonBinary constructor from a UUID alone.
func NewBinary[U ~[16]byte](u U) bson.Binary {
	return newBinary(u, bson.TypeBinaryUUID)
}

// NewBinaryWithRepresentation returns u, of any UUID type, as a BSON binary value in the
// representation r: subtype 3 or 4, 16 bytes in the order of r. The value shares no memory with u.
// [Unspecified] is [ErrUnspecified].
//
// It is the specification's BsonBinary constructor from a UUID and a UuidRepresentation.
func NewBinaryWithRepresentation[U ~[16]byte](u U, r Representation) (bson.Binary, error) {
	subtype, err := r.Subtype()
	if err != nil {
		return bson.Binary{}, err
	}
	return newBinary(r.Permute(u), subtype), nil
}

func newBinary(bytes [16]byte, subtype byte) bson.Binary {
	return bson.Binary{Subtype: subtype, Data: bytes[:]}
}

// As returns the UUID in b as a U, any type of kind [16]byte: As[uuid.UUID](b). The value must be
// in the [Standard] representation.
//
// A subtype other than 4 is a [*SubtypeError], a length other than 16 bytes a [*LengthError], and so is
// the text of a UUID in a binary value of subtype 0, 2, 3 or 4.
//
// It is the specification's BsonBinary.asUuid without a representation.
func As[U ~[16]byte](b bson.Binary) (U, error) {
	return AsWithRepresentation[U](b, Standard)
}

// AsWithRepresentation returns the UUID in b as a U, any type of kind [16]byte. The value must be
// in the representation r. Nothing marks the byte order of subtype 3: read in the wrong one of the
// legacy representations, b gives another UUID and no error.
//
// A subtype other than r's is a [*SubtypeError], a length other than 16 bytes a [*LengthError], and so is
// the text of a UUID in a binary value of subtype 0, 2, 3 or 4. [Unspecified] is [ErrUnspecified].
//
// It is the specification's BsonBinary.asUuid with a representation.
func AsWithRepresentation[U ~[16]byte](b bson.Binary, r Representation) (U, error) {
	subtype, err := r.Subtype()
	if err != nil {
		return U{}, err
	}
	if b.Subtype == subtype && len(b.Data) == 16 {
		return U(r.Permute([16]byte(b.Data))), nil
	}
	_, text := uuidtext.ParseBinary(b.Subtype, b.Data)
	if b.Subtype != subtype && !text {
		return U{}, &SubtypeError{Subtype: b.Subtype, Representation: r}
	}
	return U{}, &LengthError{Length: len(b.Data), Text: text}
}
