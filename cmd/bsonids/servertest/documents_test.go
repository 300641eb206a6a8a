package servertest

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// Paging returns every document once, whatever the types of _id are, and wherever it starts again.
func TestPages(t *testing.T) {
	_, db := started(t)
	coll := db.Collection("c")
	var docs []any
	for i := range 10 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i * 10)}}, bson.D{{Key: "_id", Value: float64(i) + .5}}, bson.D{{Key: "_id", Value: int64(1)<<40 + int64(i)}},
			bson.D{{Key: "_id", Value: string(rune('a' + i))}}, bson.D{{Key: "_id", Value: bson.D{{Key: "k", Value: int32(i)}}}},
			bson.D{{Key: "_id", Value: bson.Binary{Subtype: byte(3 + i%2), Data: bytes.Repeat([]byte{byte(i)}, 16)}}},
			bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "_id", Value: bson.DateTime(5000 + i)}})
	}
	docs = append(docs, bson.D{{Key: "_id", Value: nil}}, bson.D{{Key: "_id", Value: true}}, bson.D{{Key: "_id", Value: false}})
	insert(t, coll, docs)
	for _, size := range []int64{1, 7, 1000} {
		seen := make(map[string]bool)
		var after bson.RawValue
		for {
			p := &documents.Pages{Collection: coll, Size: size, After: after} // as another process would begin
			page, err := p.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range page {
				k := documents.Key(doc.Lookup("_id"))
				if seen[k] {
					t.Fatalf("size %d: %v twice", size, doc)
				}
				seen[k] = true
			}
			if after = p.After; len(page) == 0 {
				break
			}
		}
		if len(seen) != len(docs) {
			t.Errorf("size %d: %d of %d documents", size, len(seen), len(docs))
		}
	}
}
