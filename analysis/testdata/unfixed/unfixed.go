// Package unfixed has mistakes without a safe fix: the result would not compile, or a registry would // want package:`driver: `
// refuse it.
package unfixed

import (
	"go.mongodb.org/mongo-driver/bson/bsontype" // want `version 1 of the driver beside version 2`
	"go.mongodb.org/mongo-driver/v2/bson"
)

type A [16]byte

// The import would be left unused.
func (a A) MarshalBSONValue() (bsontype.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	return 5, append([]byte{16, 0, 0, 0, 4}, a[:]...), nil
}

func (a *A) UnmarshalBSONValue(_ bsontype.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	copy(a[:], data[5:])
	return nil
}

type UUID [16]byte

// A registry refuses the type.
func document(u UUID) any {
	return bson.D{
		{Key: "u", Value: u[:]},                    // want `subtype 0`
		{Key: "b", Value: bson.Binary{Data: u[:]}}, // want `subtype 0`
	}
}
