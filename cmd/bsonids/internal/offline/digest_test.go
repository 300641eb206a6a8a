package offline

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
)

// The digest is the same whatever the order of the collections, and another one for any other document, place of
// a document, or name of a collection.
func TestDigest(t *testing.T) {
	of := map[byte]*dump.Collection{'a': {Database: "d", Name: "a"}, 'b': {Database: "d", Name: "b"}, 'c': {Database: "d", Name: "c"}}
	sum := func(docs string, damage func([]byte)) string { // such as a1, the first document in the collection a
		d := digest{}
		for doc := range strings.FieldsSeq(docs) {
			b := dumptest.BSON(t, bson.D{{Key: "_id", Value: int32(doc[1] - '0')}})
			if doc == "a3" {
				damage(b)
			}
			d.add(of[doc[0]], b)
		}
		return d.sum()
	}
	whole := func([]byte) {}
	const docs = "a1 a2 b1 a3 b4"
	want := sum(docs, whole)
	if got := sum("b1 a1 b4 a2 a3", whole); got != want {
		t.Errorf("in another order of the collections: %s, want %s", got, want)
	}
	for name, other := range map[string]string{"none": "", "fewer": "a1 a2 b1 a3", "more": docs + " c1", "order": "a2 a1 b1 a3 b4", "name": "c1 c2 b1 c3 b4",
		"moved": "a1 a2 b1 a3 a4", "repeated": "a1 a1 a2 b1 a3 b4"} {
		if sum(other, whole) == want {
			t.Errorf("%s: the same digest", name)
		}
	}
	for bit := range 8 * len(dumptest.BSON(t, bson.D{{Key: "_id", Value: int32(3)}})) {
		if sum(docs, func(b []byte) { b[bit/8] ^= 1 << (bit % 8) }) == want {
			t.Errorf("bit %d: the same digest", bit)
		}
	}
}
