package decide

import (
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The benchmark reads documents with four distinct UUIDs each, and decides about their fields.
func BenchmarkSurvey(b *testing.B) {
	r := rand.New(rand.NewPCG(30, 1))
	s := NewSurvey(b.TempDir(), now, Question{Kind: kindstest.Kind(b, "javaLegacy")})
	c, err := s.Collection("d", "c", true)
	if err != nil {
		b.Fatal(err)
	}
	id := func() bson.Binary { return legacyValue(uuidrep.JavaLegacy.Permute(v4(r))) }
	docs := make([][]byte, b.N)
	for i := range docs {
		docs[i] = document(b, bson.D{{Key: "_id", Value: id()}, {Key: "customer", Value: id()}, {Key: "name", Value: "Ada Lovelace"},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 3.5}}, bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 4.5}}}},
			{Key: "city", Value: "London"}, {Key: "paid", Value: true}, {Key: "note", Value: "a text of some length"}})
	}
	b.SetBytes(int64(len(docs[0])))
	b.ResetTimer()
	for _, doc := range docs {
		if err := c.Add(doc); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Decide(); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
