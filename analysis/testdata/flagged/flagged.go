// Package flagged has a type that the flag names. // want package:`driver: `
package flagged

import "go.mongodb.org/mongo-driver/v2/bson"

type Known [16]byte

type Unknown [16]byte

func document(k Known, u Unknown) bson.D {
	return bson.D{
		{Key: "k", Value: k},
		{Key: "u", Value: u},                      // want `refuses Unknown`
		{Key: "plain", Value: [16]byte{}},         // want `refuses \[16\]byte`
		{Key: "list", Value: []*Unknown{&u}},      // want `refuses Unknown`
		{Key: "map", Value: map[string]Unknown{}}, // want `refuses Unknown`
	}
}
