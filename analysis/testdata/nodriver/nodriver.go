// Package nodriver does not use the driver.
package nodriver

import "github.com/google/uuid"

type Key struct {
	U []byte `bson:"u"`
}

func key(u uuid.UUID) Key { return Key{U: u[:]} }
