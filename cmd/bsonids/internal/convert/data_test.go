package convert

import (
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
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

func conversion(t testing.TB, from, to string, fields ...string) rule.Conversion {
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
	c, err := rule.NewConversion(kind(from), kind(to), patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func identity() Identity {
	return Identity{Database: "d", Collection: "c", From: "javaLegacy", To: "standard"}
}

func plans(t testing.TB, c rule.Conversion, ids ...any) []Planned {
	t.Helper()
	var out []Planned
	for _, id := range ids {
		p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.D{{Key: "ü\"", Value: value(t, c.From.Name)}}}}))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Planned{Plan: p})
	}
	return out
}

func readAll(t testing.TB, path string) []Entry {
	t.Helper()
	u, err := ReadUndoLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var out []Entry
	for {
		e, err := u.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func binaryOf(r *rand.Rand) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
