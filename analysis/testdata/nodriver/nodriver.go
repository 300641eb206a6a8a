// Package nodriver does not use the driver.
package nodriver

import "github.com/google/uuid"

type Key struct {
	U []byte `bson:"u"`
}

func key(u uuid.UUID) Key { return Key{U: u[:]} } // want `the bytes of a UUID in the field U`

type plain struct {
	U []byte `json:"u"`
}

func bytes(u uuid.UUID) plain { return plain{U: u[:]} }
