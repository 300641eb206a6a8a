package i3core

import (
	"crypto/md5"
	"fmt"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/namehash"
	"github.com/bsonids/bsonids/uuidgen"
)

const formatNameBased = "name-based"

// NameBased is the content of a name-based UUID, version 3, which [NewNameBased] makes: an MD5 hash,
// without the bits of version and variant. It is a plain value, safe to copy. The same namespace and name give the same
// UUID everywhere. Whoever can guess the name can compute the UUID.
//
// It is "Name-based UUID Format" of the document, and RFC 4122, section 4.3.
type NameBased struct {
	// Hash is in the order of the text, not of memory. Its bits 48–51 and 64–65, which make
	// room for version and variant, are zero.
	Hash [16]byte
}

// NewNameBased returns the name-based UUID of a name in a namespace: the MD5 hash of
// the 16 bytes of the namespace, in the order of its text, followed by the name. The namespaces of RFC 4122 are
// [uuid.NameSpaceDNS], [uuid.NameSpaceURL], [uuid.NameSpaceOID] and [uuid.NameSpaceX500]. If MD5 is
// not available, as in a program that runs with GODEBUG=fips140=only, the error is [uuidgen.ErrHash].
func NewNameBased(namespace uuid.UUID, name []byte) (uuid.UUID, error) {
	sum, err := namehash.Sum(md5.New, namespace, name)
	if err != nil {
		return uuid.Nil, fmt.Errorf("i3core: %w: MD5: %w", uuidgen.ErrHash, err)
	}
	u := clearHash(sum)
	u[6] |= versionName << 4
	u[8] |= variant << 6
	return u, nil
}

func clearHash(h [16]byte) [16]byte {
	h[6] &= 0x0F
	h[8] &= 0x3F
	return h
}

// DecodeNameBased returns the hash in u. NULL is [ErrNull], another version or variant a
// [*uuidgen.FieldError].
func DecodeNameBased(u uuid.UUID) (NameBased, error) {
	if _, err := check(u, formatNameBased, versionName); err != nil {
		return NameBased{}, err
	}
	return NameBased{Hash: clearHash(u)}, nil
}
