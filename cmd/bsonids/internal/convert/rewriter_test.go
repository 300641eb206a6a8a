package convert

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// A Rewriter makes of each of several documents what Rewrite makes of it, in its own bytes.
func TestRewriterAgreesWithRewrite(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for _, tt := range []struct{ from, to string }{{"javaLegacy", "standard"}, {"standard", "csharpLegacy"}, {"javaLegacy", "csharpLegacy"},
		{"text", "standard"}, {"standard", "text"}, {"goStruct", "javaLegacy"}, {"text", "csharpLegacy"}, {"javaLegacy", "text"}} {
		c := conversionOf(t, tt.from, tt.to)
		rewriter, total := NewRewriter(c), Tally{}
		for range 200 {
			doc := marshal(t, append(anyFields(r, 4), anyTextFields(r, 4)...))
			want, n, err := c.Rewrite(doc, total)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Clone(doc)
			out, values, left, err := rewriter.Document(got)
			got = out
			if err != nil || c.From.IsBinary() && len(left) > 0 || !bytes.Equal(got, want) {
				t.Fatalf("%v: got %v, want %v; left %v, %v", doc, bson.Raw(got), want, left, err)
			}
			if values != n {
				t.Errorf("%v: %d values, want %d", doc, values, n)
			}
		}
	}
	if _, _, _, err := NewRewriter(conversion(t, "javaLegacy", "standard")).Document([]byte{5, 0, 0, 0, 1}); !errors.Is(err, walk.ErrCorrupt) {
		t.Error(err)
	}
}
