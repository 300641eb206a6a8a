// Package bsoncore has the names and the forms of some types of driver version 1.
package bsoncore

type (
	Document []byte
	Array    []byte
	Element  []byte
	Value    struct {
		Type byte
		Data []byte
	}
	Other []string
)
