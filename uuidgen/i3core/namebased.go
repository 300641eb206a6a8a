package i3core

import (
	"crypto/md5"
	"fmt"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/namehash"
)

const formatNameBased = "name-based"

// NameBased is the content of a name-based UUID, version 3: an MD5 hash, without the bits of
// version and variant. It is a plain value, safe to copy. The same namespace and name give the same
// UUID everywhere. Whoever can guess the name can compute the UUID.
//
// It is "Name-based UUID Format" of the document, and RFC 4122, section 4.3.
type NameBased struct {
	// Hash is in the order of the text, not of memory. Its bits 48–51 and 64–65 make room for
	// version and variant: they are ignored, and decode as zero.
	Hash [16]byte
}

// NewNameBased returns the name-based UUID of a name in a namespace: the hash of the namespace's
// bytes, in the order of the text, and the name's. The namespaces of RFC 4122 are
// [uuid.NameSpaceDNS], [uuid.NameSpaceURL], [uuid.NameSpaceOID] and [uuid.NameSpaceX500]. If MD5 is
// not available, as in a program that runs with GODEBUG=fips140=only, the error is [ErrHash].
func NewNameBased(namespace uuid.UUID, name []byte) (NameBased, error) {
	sum, err := namehash.Sum(md5.New, namespace, name)
	if err != nil {
		return NameBased{}, fmt.Errorf("i3core: %w: MD5: %w", ErrHash, err)
	}
	return NameBased{Hash: clearHash(sum)}, nil
}

func clearHash(h [16]byte) [16]byte {
	h[6] &= 0x0F
	h[8] &= 0x3F
	return h
}

// Matches reports whether f is of that name in that namespace. The error is that of [NewNameBased].
func (f NameBased) Matches(namespace uuid.UUID, name []byte) (bool, error) {
	g, err := NewNameBased(namespace, name)
	return err == nil && clearHash(f.Hash) == g.Hash, err
}

// UUID puts version and variant into the hash. The error is always nil; the other formats have one.
func (f NameBased) UUID() (uuid.UUID, error) {
	u := clearHash(f.Hash)
	u[6] |= versionName << 4
	u[8] |= variant << 6
	return u, nil
}

// DecodeNameBased returns the hash in u. NULL is [ErrNull], another version or variant a
// [*uuidgen.FieldError].
func DecodeNameBased(u uuid.UUID) (NameBased, error) {
	if _, err := check(u, formatNameBased, versionName); err != nil {
		return NameBased{}, err
	}
	return NameBased{Hash: clearHash(u)}, nil
}
