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

// values has 00112233-4455-6677-8899-aabbccddeeff, the UUID of the document, in each representation, as the document
// gives it.
var values = map[string]bson.Binary{
	"standard":     {Subtype: 4, Data: []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")},
	"pythonLegacy": {Subtype: 3, Data: []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")},
	"csharpLegacy": {Subtype: 3, Data: []byte("\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee\xff")},
	"javaLegacy":   {Subtype: 3, Data: []byte("\x77\x66\x55\x44\x33\x22\x11\x00\xff\xee\xdd\xcc\xbb\xaa\x99\x88")},
	"generic":      {Subtype: 0, Data: []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")},
}

// Binary has the names of the representations.
var Binary = slices.Sorted(maps.Keys(values))

// Value returns the UUID of the document in a representation.
func Value(kind string) bson.Binary {
	v, ok := values[kind]
	if !ok {
		panic("kindstest: no representation has the name " + kind)
	}
	return bson.Binary{Subtype: v.Subtype, Data: slices.Clone(v.Data)}
}

// Stored returns a UUID in a representation: its bytes in the places that those of the document's UUID have.
func Stored(u [16]byte, kind string) bson.Binary {
	v := Value(kind)
	for i, b := range v.Data {
		v.Data[i] = u[b/0x11]
	}
	return v
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
func Conversion[C any](t testing.TB, create func(from kinds.Kind, fields []walk.Pattern) (C, error), from string, fields ...string) C {
	t.Helper()
	var patterns []walk.Pattern
	for _, f := range fields {
		p, err := walk.ParsePattern(f)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	c, err := create(Kind(t, from), patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Marshal returns a document as BSON.
func Marshal(t testing.TB, doc any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Octets returns 16 random bytes.
func Octets(r *rand.Rand) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
