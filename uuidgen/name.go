package uuidgen

import (
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/namehash"
)

// NewV5 returns the name-based UUID of version 5: a SHA-1 hash of the 16 bytes of the namespace and
// of the name. The same namespace and name give the same UUID everywhere, so that an upsert by such
// an _id can be repeated. The namespaces of RFC 9562 are [uuid.NameSpaceDNS], [uuid.NameSpaceURL],
// [uuid.NameSpaceOID] and [uuid.NameSpaceX500]; an application may use any UUID of its own. Whoever
// can guess the name can compute the UUID.
//
// If SHA-1 is not available, the error is [ErrHash].
//
// It implements RFC 9562, section 5.5.
func NewV5[Name ~string | ~[]byte](namespace uuid.UUID, name Name) (uuid.UUID, error) {
	return newNameBased(5, sha1.New, "SHA-1", namespace, []byte(name))
}

// NewV8SHA256 returns a name-based UUID of version 8: as [NewV5], but with the first 128 bits of a
// SHA-256 hash. Version 8 is free for any use, so that only an application knows which of its UUIDs
// are such hashes.
//
// If SHA-256 is not available, the error is [ErrHash].
//
// It implements RFC 9562, section 6.5 and appendix B.2.
func NewV8SHA256[Name ~string | ~[]byte](namespace uuid.UUID, name Name) (uuid.UUID, error) {
	return newNameBased(8, sha256.New, "SHA-256", namespace, []byte(name))
}

func newNameBased(version byte, h func() hash.Hash, hashName string, namespace uuid.UUID, name []byte) (uuid.UUID, error) {
	u, err := namehash.Sum(h, namespace, name)
	if err != nil {
		return uuid.Nil, fmt.Errorf("uuidgen: %w: %s: %w", ErrHash, hashName, err)
	}
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	return u, nil
}
