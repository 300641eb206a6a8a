package bench

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/autoid"
)

// TestAutoIDPairs tests that both sides of the comparison write the same document.
func TestAutoIDPairs(t *testing.T) {
	id := bson.NewObjectID()
	src := autoid.SourceFunc(func() (any, error) { return id, nil })
	reg := autoIDRegistry()
	for _, p := range autoIDPairs(id) {
		want, err := encodeForInsert(reg, p.with)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encodeForInsert(reg, autoid.Document(src, p.without))
		if err != nil {
			t.Fatal(err)
		}
		switch p.name {
		case "M", "map", "late": // the elements are in another order
			if len(got) != len(want) || bson.Raw(got).Lookup("_id").ObjectID() != id {
				t.Errorf("%s: got %v, want %v", p.name, bson.Raw(got), bson.Raw(want))
			}
		default:
			if !bytes.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", p.name, bson.Raw(got), bson.Raw(want))
			}
		}
	}
}
