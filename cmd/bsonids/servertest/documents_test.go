package servertest

import (
	"bytes"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// Paging returns every document once, whatever the types of _id are, and wherever it starts again.
func TestPages(t *testing.T) {
	coll := collection(t)
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

// A page of large documents ends before it exceeds its memory, and the next page continues there.
func TestPagesOfLargeDocuments(t *testing.T) {
	coll := collection(t)
	for i := range 5 {
		insert(t, coll, []any{bson.D{{Key: "_id", Value: i}, {Key: "x", Value: make([]byte, 1000)}}})
	}
	p := &documents.Pages{Collection: coll, Size: 1000, Bytes: 3500}
	var got []int
	for {
		docs, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(docs) == 0 {
			break
		}
		got = append(got, len(docs))
	}
	if !slices.Equal(got, []int{4, 1}) {
		t.Errorf("pages of %v documents", got)
	}
}
