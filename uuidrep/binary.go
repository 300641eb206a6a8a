package uuidrep

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// NewBinary returns u as a BSON binary value in the [Standard] representation: subtype 4, 16 octets in the order of
// RFC 9562. The value shares no memory with u.
//
// It is the specification's BsonBinary constructor from a UUID alone.
func NewBinary[U ~[16]byte](u U) bson.Binary {
	return newBinary(u, bson.TypeBinaryUUID)
}

// NewBinaryWithRepresentation returns u as a BSON binary value in the representation r: subtype 3 or 4, 16 octets in
// r's order. The value shares no memory with u. [Unspecified] gives [ErrUnspecified].
//
// It is the specification's BsonBinary constructor from a UUID and a UuidRepresentation.
func NewBinaryWithRepresentation[U ~[16]byte](u U, r Representation) (bson.Binary, error) {
	subtype, err := r.Subtype()
	if err != nil {
		return bson.Binary{}, err
	}
	return newBinary(r.Permute(u), subtype), nil
}

func newBinary(octets [16]byte, subtype byte) bson.Binary {
	return bson.Binary{Subtype: subtype, Data: octets[:]}
}

// AsUUID returns the UUID in b, which must be in the [Standard] representation. Another subtype than 4 is a
// [*SubtypeError], another length than 16 octets a [*LengthError].
//
// It is the specification's BsonBinary.asUuid without a representation.
func AsUUID(b bson.Binary) (uuid.UUID, error) {
	return AsUUIDWithRepresentation(b, Standard)
}

// AsUUIDWithRepresentation returns the UUID in b, which must be in the representation r. Another subtype than r's is a
// [*SubtypeError], another length than 16 octets a [*LengthError]; [Unspecified] gives [ErrUnspecified].
//
// Subtype 3 has no mark of its byte order: read as the wrong one of the legacy representations, b gives another UUID
// and no error. It is the specification's BsonBinary.asUuid with a representation.
func AsUUIDWithRepresentation(b bson.Binary, r Representation) (uuid.UUID, error) {
	subtype, err := r.Subtype()
	if err != nil {
		return uuid.Nil, err
	}
	if b.Subtype != subtype {
		return uuid.Nil, &SubtypeError{Subtype: b.Subtype, Representation: r}
	}
	if len(b.Data) != 16 {
		return uuid.Nil, &LengthError{Length: len(b.Data)}
	}
	return r.Permute([16]byte(b.Data)), nil
}
