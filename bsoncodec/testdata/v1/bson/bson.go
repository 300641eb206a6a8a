// Package bson has the names and the forms of some types of driver version 1.
package bson

type (
	Raw        []byte
	RawElement []byte
	RawValue   struct {
		Type  byte
		Value []byte
	}
	Other []string
)
