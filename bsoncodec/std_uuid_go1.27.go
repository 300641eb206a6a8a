//go:build go1.27

package bsoncodec

import (
	"reflect"
	"uuid"
)

// stdUUIDTypes are the UUID types of the standard library, which has one from Go 1.27 on.
var stdUUIDTypes = []reflect.Type{reflect.TypeFor[uuid.UUID]()}
