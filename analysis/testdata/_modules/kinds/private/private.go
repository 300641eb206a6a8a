// Package private has structs around UUIDs that are not exported. // want package:`driver: `
package private

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"

	"example.com/shop/model"
)

// CustomerID is a prefix and a UUID.
type CustomerID struct {
	prefix string
	id     uuid.UUID
}

// Ref holds a UUID behind a pointer.
type Ref struct{ to *target }

type target struct{ ids []uuid.UUID }

// Tagged shows that it is meant to be stored.
type Tagged struct { // want `refuses Tagged, a struct around a UUID that is not exported, which the driver stores as an empty document`
	value uuid.UUID `bson:"value"`
}

type base struct{ Owner uuid.UUID }

// Inline loses the UUID of an embedded struct.
type Inline struct { // want `refuses Inline, a struct with the inline field base, which the driver leaves out with its UUID`
	base `bson:",inline"`
	Name string `bson:"name"`
}

type Booking struct {
	Room     model.RoomID    `bson:"room"`     // want `refuses example.com/shop/model.RoomID, a struct around a UUID that is not exported, which the driver stores as an empty document: call RegistryBuilder.RegisterUUIDType`
	Rooms    []*model.RoomID `bson:"rooms"`    // want `refuses example.com/shop/model.RoomID`
	Customer CustomerID      `bson:"customer"` // want `refuses CustomerID, .*: call RegisterUUIDFunc of bsoncodec`
	Refs     map[string]Ref  `bson:"refs"`     // want `refuses Ref`
	Seat     model.SeatID    `bson:"seat"`
	Skip     model.RoomID    `bson:"-"`
	tenant   uuid.UUID
}

func configure(b *bsoncodec.RegistryBuilder) {
	bsoncodec.RegisterUUIDFunc(b, func(model.SeatID) (uuid.UUID, bool) { return uuid.Nil, true },
		func(uuid.UUID, bool) (model.SeatID, error) { return model.SeatID{}, nil })
}

func find(ctx context.Context, rooms *mongo.Collection, room model.RoomID, seat model.SeatID) {
	rooms.FindOne(ctx, bson.M{"_id": room})                                // want `refuses example.com/shop/model.RoomID`
	rooms.FindOne(ctx, bson.D{{Key: "_id", Value: room}})                  // want `refuses example.com/shop/model.RoomID`
	rooms.FindOne(ctx, room)                                               // want `refuses example.com/shop/model.RoomID`
	rooms.FindOne(ctx, bson.M{"_id": bson.M{"$in": []model.RoomID{room}}}) // want `refuses example.com/shop/model.RoomID`
	rooms.FindOne(ctx, bson.M{"seat": seat})
}

// A session is not stored.
type session struct {
	mu sync.Mutex
	id uuid.UUID
}

var sessions = map[model.RoomID]*session{}

// Current must not be copied.
type Current struct{ id atomic.Pointer[uuid.UUID] }

// Stats are stored, and hold no UUID.
type Stats struct{ sum, n int }

// Sum is stored as bytes.
type Sum [16]byte

type Hash struct{ sum Sum }

type Room struct {
	Current *Current `bson:"current"` // want `refuses Current`
	Stats   Stats    `bson:"stats"`
	Hash    Hash     `bson:"hash"`
	Bag     Bag      `bson:"bag"`
}

// Bag has one stored field, so that the other is left out on purpose.
type Bag struct {
	Name   string
	tenant uuid.UUID
}

func more(b *bsoncodec.RegistryBuilder) { b.RegisterBytesType(reflect.TypeFor[Sum]()) }
