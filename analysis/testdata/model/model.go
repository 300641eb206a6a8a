// Package model has a type that another package registers.
package model

// ItemID is the id of an item.
//
//bsonids:registered
type ItemID [16]byte // want ItemID:"registered"
