// Package model has ids that another package of the module registers, or does not.
package model

import "github.com/google/uuid"

// Known is registered by package unregistered.
type Known [16]byte

// RoomID is a struct around a UUID that is not exported.
type RoomID struct{ value uuid.UUID }

func NewRoomID() RoomID          { return RoomID{uuid.New()} }
func (id RoomID) String() string { return id.value.String() }
func (id RoomID) IsZero() bool   { return id.value == uuid.Nil }

// SeatID is as RoomID, and registered by package private.
type SeatID struct{ value uuid.UUID }
