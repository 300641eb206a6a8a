// Package model has types that package db registers, which it does not import. // want package:`driver: `
package model

import (
	"database/sql"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidrep"
)

type (
	OrderID      [16]byte
	ItemID       [16]byte
	PageID       [16]byte
	ListedID     [16]byte
	NullableID   [16]byte
	RoomID       struct{ value uuid.UUID }
	Wrapper      struct{ uuid.UUID }
	Typed[T any] [16]byte
	ForgottenID  [16]byte
)

// Customer is registered as a document. It has the methods of its id.
type Customer struct {
	uuidrep.ID[Customer] `bson:"_id"`
	Name                 string `bson:"name"`
}

// Inline is registered as a document. What is inline has a UUID that is not stored.
type Inline struct {
	Room RoomValue `bson:",inline"`
	N    int       `bson:"n"`
}

type RoomValue struct{ value uuid.UUID }

// Supplier is not registered.
type Supplier struct { // want `refuses Supplier, .* give the embedded field a name, or call RegistryBuilder.RegisterDocumentType`
	uuidrep.ID[Supplier] `bson:"_id"`
	Name                 string `bson:"name"`
}

// Prefixed is registered by functions.
type Prefixed struct {
	prefix string
	id     uuid.UUID
}

func (p Prefixed) UUID() (uuid.UUID, bool) { return p.id, true }

// Lit is registered by function literals.
type Lit struct{ ids [2]uuid.UUID }

// Named is registered by functions of package db.
type Named struct{ ids [2]uuid.UUID }

type Order struct {
	Prefixed Prefixed `bson:"prefixed"`
	Lit      Lit      `bson:"lit"`
	Named    Named    `bson:"names"`

	ID        OrderID              `bson:"_id"`
	Item      ItemID               `bson:"item"`
	Page      *PageID              `bson:"page"`
	Listed    []ListedID           `bson:"listed"`
	Nullable  sql.Null[NullableID] `bson:"nullable"`
	Room      RoomID               `bson:"room"`
	Wrapper   Wrapper              `bson:"wrapper"`
	Customer  Customer             `bson:"customer"`
	Inline    *Inline              `bson:"inline"`
	Typed     Typed[Order]         `bson:"typed"`
	Other     Typed[OrderID]       `bson:"other"`     // want `refuses Typed\[OrderID\]`
	Forgotten ForgottenID          `bson:"forgotten"` // want `refuses ForgottenID`
}
