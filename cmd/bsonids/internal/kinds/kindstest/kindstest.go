// Package kindstest has UUIDs and conversions for tests. The bytes of the UUIDs are from the UUID document
// of the driver specifications, and not from package kinds.
package kindstest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// permuted has, for each representation, the positions of the bytes of a UUID, as the document gives them.
var permuted = map[string]struct {
	subtype byte
	octets  [16]int
}{
	"standard":     {4, [16]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
	"pythonLegacy": {3, [16]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
	"csharpLegacy": {3, [16]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}},
	"javaLegacy":   {3, [16]int{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}},
	"generic":      {0, [16]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
}

// Binary has the names of the representations.
var Binary = slices.Sorted(maps.Keys(permuted))

// Stored returns a UUID in a representation.
func Stored(u [16]byte, kind string) bson.Binary {
	p, ok := permuted[kind]
	if !ok {
		panic("kindstest: no representation has the name " + kind)
	}
	b := make([]byte, 16)
	for i, from := range p.octets {
		b[i] = u[from]
	}
	return bson.Binary{Subtype: p.subtype, Data: b}
}

// Value returns 00112233-4455-6677-8899-aabbccddeeff, the UUID of the document, in a representation.
func Value(kind string) bson.Binary {
	var u [16]byte
	for i := range u {
		u[i] = byte(0x11 * i)
	}
	return Stored(u, kind)
}

// Kind returns the kind with the name.
func Kind(t testing.TB, name string) kinds.Kind {
	t.Helper()
	k, err := kinds.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Conversion returns the conversion of the fields that create makes, which is rule.NewConversion. Tests of
// package rule use it, too.
func Conversion[C any](t testing.TB, create func(from, to kinds.Kind, fields []walk.Pattern) (C, error), from, to string, fields ...string) C {
	t.Helper()
	var patterns []walk.Pattern
	for _, f := range fields {
		p, err := walk.ParsePattern(f)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	c, err := create(Kind(t, from), Kind(t, to), patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Octets returns 16 random bytes.
func Octets(r *rand.Rand) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
