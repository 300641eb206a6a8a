package mirror

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

var marshal = kindstest.Marshal

// The filter and the document together fit into one update, for a document of any size.
func TestReplacedFits(t *testing.T) {
	for _, size := range []int{10, 7 << 20, 15 << 20} {
		d := bson.D{{Key: "_id", Value: 1}}
		for i := range 5 {
			d = append(d, bson.E{Key: string(rune('a' + i)), Value: make([]byte, size/5)})
		}
		doc := marshal(t, d)
		filter := replaced(doc, bulk.MaxUpdate-len(doc))
		if n := len(marshal(t, filter)) + len(doc); n > bulk.MaxUpdate {
			t.Errorf("%d octets for a document of %d", n, len(doc))
		}
		if size < 8<<20 && len(filter) != len(d) {
			t.Errorf("a document of %d octets is looked for by %d of its %d values", len(doc), len(filter), len(d))
		}
	}
}

// A server sets the empty timestamps at the top level of a document, except the one in _id, and no others.
// https://www.mongodb.com/docs/manual/reference/bson-types/#timestamps
func TestFilledIn(t *testing.T) {
	none, set := bson.Timestamp{}, bson.Timestamp{T: 1_700_000_000, I: 3}
	doc := func(id, a, inner, b any) bson.Raw {
		return marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: a}, {Key: "n", Value: int64(0)}, {Key: "d", Value: bson.D{{Key: "t", Value: inner}}}, {Key: "b", Value: b}})
	}
	want := doc(none, none, none, none)
	for name, tt := range map[string]struct {
		got  bson.Raw
		fits bool
	}{
		"nothing":        {want, true},
		"all":            {doc(none, set, none, set), true},
		"one":            {doc(none, none, none, set), true},
		"in a document":  {doc(none, set, set, set), false},
		"in _id":         {doc(set, set, none, set), false},
		"something else": {doc(none, set, none, int64(5)), false},
		"longer":         {doc(none, set, none, "a longer value"), false},
	} {
		if fits := bytes.Equal(tt.got, filledIn(want, tt.got)); fits != tt.fits {
			t.Errorf("%s: %v", name, fits)
		}
	}
	for name, tt := range map[string]struct {
		doc   bson.Raw
		times int
	}{
		"two":        {want, 2},
		"one":        {doc(none, set, none, none), 1},
		"only in it": {doc(none, set, none, set), 0},
		"zeros":      {marshal(t, bson.D{{Key: "_id", Value: int64(0)}, {Key: "x", Value: make([]byte, 40)}, {Key: "", Value: 0.0}}), 0},
	} {
		if n := len(empty(tt.doc)); n != tt.times {
			t.Errorf("%s: %d", name, n)
		}
	}
	if plain, exact := apart([]wanted{{doc: want}, {doc: doc(none, set, none, set)}}); len(plain) != 1 || len(exact) != 1 {
		t.Errorf("%d, %d", len(plain), len(exact))
	}
}
