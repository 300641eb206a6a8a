package decide

import (
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/uuidrep"
)

// The benchmark compares the pass with the scan. The documents are in memory and have 12 values
// each, three of them distinct UUIDs. With known ids, three more values are UUIDs of subtype 4, which
// are compared with the others in every order.
func BenchmarkDocument(b *testing.B) {
	r := rand.New(rand.NewPCG(30, 1))
	docs, known := make([][]byte, 200_000), make([][]byte, 200_000)
	for i := range docs {
		id := func() bson.Binary { return legacyValue(uuidrep.JavaLegacy.Permute(v4(r))) }
		docs[i] = document(b, bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: id()}, {Key: "name", Value: "Ada Lovelace"}, {Key: "n", Value: int32(i)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 3.5}}, bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 4.5}}}},
			{Key: "city", Value: "London"}, {Key: "paid", Value: true}, {Key: "note", Value: "a text of some length"}})
		var d bson.D
		if err := bson.Unmarshal(docs[i], &d); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"x", "y", "z"} {
			u := v4(r)
			d = append(d, bson.E{Key: name, Value: bson.Binary{Subtype: 4, Data: u[:]}})
		}
		known[i] = document(b, d)
	}
	pass := func() scan.Adder {
		return NewPass(Question{Order: uuidrep.JavaLegacy, Name: "javaLegacy", Subtype: 3}, now)
	}
	collect := func() scan.Adder { return scan.NewCollector("d.c") }
	for _, tt := range []struct {
		name  string
		adder func() scan.Adder
		docs  [][]byte
	}{{"pass", pass, docs}, {"pass with known ids", pass, known}, {"scan", collect, docs}, {"scan with known ids", collect, known}} {
		b.Run(tt.name, func(b *testing.B) {
			a, docs := tt.adder(), tt.docs
			for i := range b.N {
				if err := a.Add(docs[i%len(docs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
