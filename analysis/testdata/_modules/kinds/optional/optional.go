// Package optional has UUIDs that can be absent. // want package:`driver: `
package optional

import (
	"database/sql"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Maybe is an optional UUID.
type Maybe struct {
	id  uuid.UUID
	Set bool
}

// Opt has no element at all.
type Opt[T any] struct {
	value   T
	present bool
}

type User struct {
	ID      uuid.UUID           `bson:"_id"`
	Parent  Maybe               `bson:"parent"`  // want `refuses Maybe, a bool and a UUID that is not exported`
	Team    Opt[uuid.UUID]      `bson:"team"`    // want `refuses Opt\[github.com/google/uuid.UUID\], a struct around a UUID that is not exported, .*: call RegistryBuilder.RegisterNullUUIDType`
	Manager sql.Null[uuid.UUID] `bson:"manager"` // want `refuses database/sql.Null\[github.com/google/uuid.UUID\], a UUID that can be null, which the driver stores as a document`
	Former  gofrs.NullUUID      `bson:"former"`  // want `refuses github.com/gofrs/uuid/v5.NullUUID`
	Right   uuid.NullUUID       `bson:"right"`
	Other   *uuid.UUID          `bson:"other"`
	Age     Opt[int]            `bson:"age"`
	Flag    Flagged             `bson:"flag"`
}

// Flagged is stored as a document, with its UUID.
type Flagged struct {
	ID   uuid.UUID
	Flag bool
}

var _ bson.D

// Pointed is an optional UUID, too.
type Pointed struct {
	to *uuid.UUID
	OK bool
}

// Inlined loses the UUID of Maybe.
type Inlined struct { // want `refuses Inlined, a struct whose inline field Maybe has a UUID that is not exported`
	Maybe `bson:",inline"`
	To    Pointed `bson:"to"` // want `refuses Pointed, a bool and a UUID that is not exported, of which the driver stores the bool alone: call RegistryBuilder.RegisterNullUUIDType`
}
