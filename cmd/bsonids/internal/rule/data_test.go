package rule

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// stored has the bytes of 00112233-4455-6677-8899-aabbccddeeff that the UUID document of the driver
// specifications gives.
var stored = map[string]struct {
	subtype byte
	octets  string
}{
	"standard":     {4, "00112233445566778899aabbccddeeff"},
	"pythonLegacy": {3, "00112233445566778899aabbccddeeff"},
	"csharpLegacy": {3, "33221100554477668899aabbccddeeff"},
	"javaLegacy":   {3, "7766554433221100ffeeddccbbaa9988"},
	"generic":      {0, "00112233445566778899aabbccddeeff"},
}

func value(t testing.TB, kind string) bson.Binary {
	t.Helper()
	b, err := hex.DecodeString(stored[kind].octets)
	if err != nil {
		t.Fatal(err)
	}
	return bson.Binary{Subtype: stored[kind].subtype, Data: b}
}

func marshal(t testing.TB, v any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func conversion(t testing.TB, from, to string, fields ...string) Conversion {
	t.Helper()
	kind := func(name string) kinds.Kind {
		k, err := kinds.ParseBinary(name)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	var patterns []walk.Pattern
	for _, f := range fields {
		p, err := walk.ParsePattern(f)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	c, err := NewConversion(kind(from), kind(to), patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func binaryOf(r *rand.Rand) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
