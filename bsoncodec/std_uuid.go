//go:build !go1.27

package bsoncodec

import "reflect"

// stdUUIDTypes are the UUID types of the standard library, which has none before Go 1.27.
var stdUUIDTypes []reflect.Type
