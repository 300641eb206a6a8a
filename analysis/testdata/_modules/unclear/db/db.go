// Package db registers a type that its text does not show. // want package:`driver: `
package db

import (
	"reflect"

	"github.com/bsonids/bsonids/bsoncodec"
)

func register[T any](b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(reflect.TypeFor[T]()) }
