package offline

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
)

// The digest is the same whatever the order of the collections, and another one for any other document, place of
// a document, or name of a collection.
func TestDigest(t *testing.T) {
	type document struct {
		of   string
		text []byte
	}
	sum := func(docs []document) string {
		d, of := digest{}, make(map[string]*dump.Collection)
		for _, doc := range docs {
			if of[doc.of] == nil {
				of[doc.of] = &dump.Collection{Database: "d", Name: doc.of}
			}
			d.add(of[doc.of], doc.text)
		}
		return d.sum()
	}
	doc := func(n int32) []byte { return dumptest.BSON(t, bson.D{{Key: "_id", Value: n}}) }
	docs := []document{{"a", doc(1)}, {"a", doc(2)}, {"b", doc(1)}, {"a", doc(3)}, {"b", doc(4)}}
	want := sum(docs)
	if got := sum([]document{docs[2], docs[0], docs[4], docs[1], docs[3]}); got != want {
		t.Errorf("in another order of the collections: %s, want %s", got, want)
	}
	others := map[string][]document{
		"none":     nil,
		"fewer":    docs[:4],
		"more":     append(slices.Clone(docs), document{"c", doc(1)}),
		"order":    {docs[1], docs[0], docs[2], docs[3], docs[4]},
		"name":     {{"c", doc(1)}, {"c", doc(2)}, docs[2], {"c", doc(3)}, docs[4]},
		"moved":    {docs[0], docs[1], docs[2], docs[3], {"a", doc(4)}},
		"repeated": {docs[0], docs[0], docs[1], docs[2], docs[3], docs[4]},
	}
	for bit := range 8 * len(docs[3].text) {
		text := slices.Clone(docs[3].text)
		text[bit/8] ^= 1 << (bit % 8)
		others["bit"] = []document{docs[0], docs[1], docs[2], {"a", text}, docs[4]}
		for name, o := range others {
			if sum(o) == want {
				t.Fatalf("%s: the same digest", name)
			}
		}
	}
}
