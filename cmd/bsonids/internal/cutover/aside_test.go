package cutover

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// Each document is in the file of its collection once, with its types, and no command writes to the file of another.
func TestAsides(t *testing.T) {
	dir := t.TempDir()
	docs := []bson.Raw{kindstest.Marshal(t, bson.D{{Key: "_id", Value: kindstest.Value("standard")}, {Key: "n", Value: int64(1)}}), kindstest.Marshal(t, bson.D{{Key: "_id", Value: "ü\n"}})}
	for _, want := range [][]string{{"a.written.jsonl", "a_b"}, {"a.written.2.jsonl", "a_b"}} {
		a := Asides{Dir: dir}
		for _, doc := range slices.Concat(docs, docs) {
			for _, name := range []string{"a", "A/b"} {
				if err := a.Keep(name, doc); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		for i, path := range a.Paths {
			if !strings.HasPrefix(filepath.Base(path), want[i]) || filepath.Dir(path) != dir {
				t.Error(path)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []bson.Raw
			for line := range strings.Lines(string(b)) {
				var doc bson.Raw
				if err := bson.UnmarshalExtJSON([]byte(line), true, &doc); err != nil {
					t.Fatal(err)
				}
				got = append(got, doc)
			}
			if !slices.EqualFunc(got, docs, func(a, b bson.Raw) bool { return string(a) == string(b) }) {
				t.Errorf("%s: %v", path, got)
			}
		}
	}
	if err := (&Asides{Dir: filepath.Join(dir, "none")}).Keep("a", docs[0]); err == nil {
		t.Error("there is no directory")
	}
}
