// Package model has types that package db registers, which it does not import.
package model

import (
	"database/sql"

	"github.com/google/uuid"
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
	Typed     Typed[Order]         `bson:"typed"`
	Other     Typed[OrderID]       `bson:"other"`     // want `refuses Typed\[OrderID\]`
	Forgotten ForgottenID          `bson:"forgotten"` // want `refuses ForgottenID`
}
