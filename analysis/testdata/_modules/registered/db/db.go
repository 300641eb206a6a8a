// Package db configures the registry. // want package:`driver: `
package db

import (
	"database/sql"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"

	m "example.com/shop/model"
)

var tItem = reflect.TypeOf(m.ItemID{})

func configure(b *bsoncodec.RegistryBuilder, reg *bson.Registry, codec bson.ValueEncoder) {
	b.RegisterUUIDType(reflect.TypeFor[m.OrderID]()).
		RegisterUUIDType(tItem).
		RegisterNullUUIDType(reflect.TypeFor[sql.Null[m.NullableID]]()).
		RegisterUUIDType(reflect.TypeFor[m.Typed[m.Order]]()).
		RegisterDocumentType(reflect.TypeOf((*m.Wrapper)(nil)).Elem()).
		RegisterDocumentType(reflect.TypeFor[m.Customer]()).
		RegisterDocumentType(reflect.TypeFor[m.Inline]())
	for _, t := range []reflect.Type{reflect.TypeFor[m.ListedID](), reflect.TypeOf(m.RoomID{})} {
		b.RegisterUUIDType(t)
	}
	reg.RegisterTypeEncoder(reflect.TypeOf(new(m.PageID)).Elem(), codec)
	bsoncodec.RegisterUUIDFunc(b, m.Prefixed.UUID, func(uuid.UUID, bool) (m.Prefixed, error) { return m.Prefixed{}, nil })
	bsoncodec.RegisterUUIDFunc(b, func(m.Lit) (uuid.UUID, bool) { return uuid.Nil, true },
		func(uuid.UUID, bool) (m.Lit, error) { return m.Lit{}, nil })
	bsoncodec.RegisterUUIDFunc(b, get, set)
}

func get(m.Named) (uuid.UUID, bool) { return uuid.Nil, true }

func set(uuid.UUID, bool) (m.Named, error) { return m.Named{}, nil }
