// Package model has a type that package db may register.
package model

type OrderID [16]byte

type Order struct {
	ID OrderID `bson:"_id"`
}
