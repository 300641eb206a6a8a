package i3core

import (
	"crypto/md5"

	"github.com/google/uuid"
)

const formatNameBased = "name-based"

// NameBased is what is in a name-based UUID, version 3: an MD5 hash, less the bits of version and variant. It is a
// plain value, safe to copy. The same namespace and name give the same UUID everywhere; MD5 does not keep a name that
// can be guessed secret.
//
// It is "Name-based UUID Format" of the document, and RFC 4122, section 4.3.
type NameBased struct {
	// Hash is in the order of the text, not of memory. Its bits 48–51 and 64–65 make room for version and variant:
	// they are ignored, and decode as zero.
	Hash [16]byte
}

// NewNameBased returns the name-based UUID of a name in a namespace: the hash of the namespace's octets, in the order
// of the text, and the name's. The namespaces of RFC 4122 are [uuid.NameSpaceDNS], [uuid.NameSpaceURL],
// [uuid.NameSpaceOID] and [uuid.NameSpaceX500].
func NewNameBased(namespace uuid.UUID, name []byte) NameBased {
	h := md5.New()
	h.Write(namespace[:])
	h.Write(name)
	return NameBased{Hash: clearHash([16]byte(h.Sum(nil)))}
}

func clearHash(h [16]byte) [16]byte {
	h[6] &= 0x0F
	h[8] &= 0x3F
	return h
}

// Matches reports whether f is of that name in that namespace.
func (f NameBased) Matches(namespace uuid.UUID, name []byte) bool {
	return clearHash(f.Hash) == NewNameBased(namespace, name).Hash
}

// UUID puts version and variant into the hash. The error is always nil; it is there as in
// the other formats.
func (f NameBased) UUID() (uuid.UUID, error) {
	u := clearHash(f.Hash)
	u[6] |= versionName << 4
	u[8] |= variant << 6
	return u, nil
}

// DecodeNameBased returns the hash in u. NULL is [ErrNull], another version or variant a [*FieldError].
func DecodeNameBased(u uuid.UUID) (NameBased, error) {
	if _, err := check(u, formatNameBased, versionName); err != nil {
		return NameBased{}, err
	}
	return NameBased{Hash: clearHash(u)}, nil
}

// ParseNameBased returns the hash in a text. The errors are [ErrText] and those of [DecodeNameBased].
func ParseNameBased(text string) (NameBased, error) {
	u, err := parse(text)
	if err != nil {
		return NameBased{}, err
	}
	return DecodeNameBased(u)
}
