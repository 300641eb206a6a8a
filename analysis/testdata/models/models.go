// Package models declares documents and imports no driver.
package models

import "github.com/google/uuid"

type OrderID [16]byte

// Wrapped has the octets of a UUID in an embedded field.
type Wrapped struct{ uuid.UUID }

// Hidden shows its UUID as text only.
type Hidden struct{ id uuid.UUID }

func (h Hidden) MarshalText() ([]byte, error) { return h.id.MarshalText() }

// Named makes a document that everybody reads.
type Named struct{ ID uuid.UUID }

//bsonids:registered
type Known struct{ uuid.UUID } // want Known:"registered"

type Order struct {
	ID       OrderID     `bson:"_id"`      // want `a registry of bsoncodec refuses OrderID`
	Customer Wrapped     `bson:"customer"` // want `a struct around a UUID`
	Lines    []*Hidden   `bson:"lines"`    // want `refuses Hidden, a struct around a UUID`
	Owner    Named       `bson:"owner"`
	Session  Known       `bson:"session"`
	Left     OrderID     `bson:"-"`
	Other    uuid.UUID   `bson:"other"`
	All      []uuid.UUID `bson:"all"`
}
