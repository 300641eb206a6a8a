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

type Order struct {
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
