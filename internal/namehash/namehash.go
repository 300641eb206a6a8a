// Package namehash computes the hashes of name-based UUIDs.
package namehash

import (
	"errors"
	"fmt"
	"hash"
)

// Err is the error for a hash function that is not available. Each package exports it as ErrHash and wraps it behind its
// own name. [errors.Is] thus matches across packages.
var Err = errors.New("the hash function is not available")

// Sum returns the first 16 bytes of the hash of namespace and name. The hash functions of the
// standard library panic if the program runs in a mode that does not allow them, such as MD5 and
// SHA-1 with GODEBUG=fips140=only. Sum returns that as an error. Nothing else in a hash function
// panics.
func Sum(newHash func() hash.Hash, namespace [16]byte, name []byte) (sum [16]byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			sum, err = [16]byte{}, fmt.Errorf("%v", r)
		}
	}()
	h := newHash()
	// Writing to a hash returns no error, see hash.Hash, except for functions that are not allowed.
	if _, err := h.Write(namespace[:]); err != nil {
		return sum, err
	}
	if _, err := h.Write(name); err != nil {
		return sum, err
	}
	return [16]byte(h.Sum(nil)), nil
}
