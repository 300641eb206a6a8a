package rule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/uuidrep"
)

// BenchmarkRewriter converts documents of 14 values, four of them UUIDs, whose fields are decided by
// evidence.
func BenchmarkRewriter(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	c := conversion(b, "javaLegacy")
	id := func() bson.Binary {
		v := make([]byte, 16)
		for i := range v {
			v[i] = byte(r.UintN(256))
		}
		v[6], v[8] = v[6]&0x0f|0x40, v[8]&0x3f|0x80
		slices.Reverse(v[:8])
		slices.Reverse(v[8:])
		return bson.Binary{Subtype: 3, Data: v}
	}
	survey := scan.New(b.TempDir(), time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), false)
	p, err := survey.Collection("d", "c")
	if err != nil {
		b.Fatal(err)
	}
	docs := make([][]byte, 1000)
	for i := range docs {
		docs[i] = marshal(b, bson.D{{Key: "_id", Value: id()}, {Key: "customer", Value: id()}, {Key: "name", Value: "Ada Lovelace"}, {Key: "n", Value: int32(i)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 3.5}}, bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 4.5}}}},
			{Key: "city", Value: "London"}, {Key: "paid", Value: true}, {Key: "note", Value: "a text of some length"}})
		if err := p.Add(docs[i]); err != nil {
			b.Fatal(err)
		}
	}
	found, err := survey.Decide()
	if err != nil {
		b.Fatal(err)
	}
	d := found[0].Decisions[c[0].From.Name]
	c[0].Judge = d.Judge(uuidrep.JavaLegacy)
	rewriter := NewRewriter(c)
	doc := slices.Clone(docs[0])
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for i := range b.N {
		doc = append(doc[:0], docs[i%len(docs)]...)
		if _, _, left, err := rewriter.Document(doc); err != nil || len(left) > 0 {
			b.Fatal(left, err)
		}
	}
}
