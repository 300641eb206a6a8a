// Package db configures the registry. // want package:`driver: `
package db

import (
	"database/sql"
	"reflect"

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
		RegisterDocumentType(reflect.TypeOf((*m.Wrapper)(nil)).Elem())
	for _, t := range []reflect.Type{reflect.TypeFor[m.ListedID](), reflect.TypeOf(m.RoomID{})} {
		b.RegisterUUIDType(t)
	}
	reg.RegisterTypeEncoder(reflect.TypeOf(new(m.PageID)).Elem(), codec)
}
