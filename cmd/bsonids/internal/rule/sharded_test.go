package rule

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// The query of an update that changes a shard key has each of its fields by equality, as they were read, and no condition of a
// field in it: extractFullEqualityMatches in src/mongo/db/ops/path_support.cpp of MongoDB. A field that is absent is null. Other
// updates have nothing of the key.
func TestSharded(t *testing.T) {
	java, fresh := kindstest.Value("javaLegacy"), kindstest.Value("standard")
	doc := kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "a", Value: java}, {Key: "b", Value: bson.D{{Key: "c", Value: java}, {Key: "n", Value: "x"}}}, {Key: "ab", Value: java}})
	conversion := kindstest.Conversion(t, NewConversion, "javaLegacy")
	for name, tt := range map[string]struct {
		key   []string
		query []string // the fields of the query
		left  int
	}{
		"not sharded":       {nil, []string{"_id", "a", "b.c", "ab"}, 0},
		"another field":     {[]string{"n"}, []string{"_id", "a", "b.c", "ab"}, 0},
		"one":               {[]string{"a"}, []string{"_id", "a", "b.c", "ab"}, 0},
		"with others":       {[]string{"none", "a"}, []string{"_id", "none", "a", "b.c", "ab"}, 0},
		"in a document":     {[]string{"b.n", "b.c"}, []string{"_id", "b.n", "b.c", "a", "ab"}, 0},
		"a whole document":  {[]string{"b"}, []string{"_id", "b", "a", "ab"}, 0},
		"less than a value": {[]string{"a.x"}, []string{"_id", "b.c", "ab"}, 1},
	} {
		p, err := conversion.Edits(doc)
		if err != nil {
			t.Fatal(err)
		}
		p.Sharded(doc, tt.key)
		filter := p.Model(bson.RawValue{}).Filter.(bson.Raw)
		if err := filter.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, e := range elements(t, filter) {
			got = append(got, e.Key())
			if !slices.Contains(tt.key, e.Key()) || len(p.Key) == 0 {
				continue
			}
			want := doc.Lookup(strings.Split(e.Key(), ".")...)
			if want.Type == 0 {
				want.Type = bson.TypeNull
			}
			if eq := e.Value().Document().Lookup("$eq"); !eq.Equal(want) {
				t.Errorf("%s: %s: %s", name, e.Key(), eq)
			}
		}
		if !slices.Equal(got, tt.query) || len(p.Skipped) != tt.left {
			t.Errorf("%s: got %q and %v, want %q", name, got, p.Skipped, tt.query)
		}
		if n := len(filter) + len(p.Model(bson.RawValue{}).Update.(bson.Raw)); p.Size() < n {
			t.Errorf("%s: the size is %d, and said to be %d", name, n, p.Size())
		}
		rest, left := p.WithoutKey("why")
		if len(rest.Changes)+len(left) != len(p.Changes) || len(rest.Key) > 0 || (len(left) > 0) != (len(p.Key) > 0) {
			t.Errorf("%s: %+v, %+v", name, rest, left)
		}
		for _, ch := range rest.Changes {
			if ch.New != ValueOf(bson.TypeBinary, append([]byte{16, 0, 0, 0, 4}, fresh.Data...)) {
				t.Errorf("%s: %+v", name, ch)
			}
		}
	}
}

func elements(t *testing.T, doc bson.Raw) []bson.RawElement {
	t.Helper()
	all, err := doc.Elements()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
