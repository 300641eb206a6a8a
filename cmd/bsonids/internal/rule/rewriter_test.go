package rule

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// A Rewriter makes of each of several documents what Rewrite makes of it, in its own bytes.
func TestRewriterAgreesWithRewrite(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for _, from := range []string{"javaLegacy", "csharpLegacy", "generic", "text", "goStruct", "binaryText"} {
		c := conversion(t, from)
		rewriter := NewRewriter(c)
		for range 200 {
			doc := marshal(t, append(anyFields(r, 4), anyTextFields(r, 4)...))
			want, n, _, err := c.Rewrite(doc)
			if err != nil {
				t.Fatal(err)
			}
			own := slices.Clone(doc)
			got, values, left, err := rewriter.Document(own)
			if err != nil || c[0].From.IsBinary() && len(left) > 0 || !bytes.Equal(got, want) {
				t.Fatalf("%v: got %v, want %v; left %v, %v", doc, bson.Raw(got), want, left, err)
			}
			if c[0].From.IsBinary() && &got[0] != &own[0] {
				t.Errorf("%v: not converted in its own bytes", doc)
			}
			if values != n {
				t.Errorf("%v: %d values, want %d", doc, values, n)
			}
		}
	}
	if _, _, _, err := NewRewriter(conversion(t, "javaLegacy")).Document([]byte{5, 0, 0, 0, 1}); !errors.Is(err, walk.ErrCorrupt) {
		t.Error(err)
	}
}

// What a conversion wants does not depend on its judge. Values that are not UUIDs, or that another field has, are not
// wanted.
func TestWants(t *testing.T) {
	java, same := kindstest.Value("javaLegacy"), bson.Binary{Subtype: 3, Data: make([]byte, 16)}
	doc := marshal(t, bson.D{{Key: "_id", Value: java}, {Key: "a", Value: bson.A{java, same, "x", kindstest.Value("standard")}}, {Key: "b", Value: java}, {Key: "t", Value: bson.A{"none", "9f2c8a52-6d1e-4b60-9a57-0f6a1d2e3c4b"}}})
	nothing := (&decide.Decision{From: "javaLegacy", Subtype: 3}).Judge(kindstest.Kind(t, "javaLegacy").Order)
	for _, tt := range []struct {
		c    Conversion
		want string
	}{
		{conversion(t, "javaLegacy"), "_id a.0 a.1 b"},
		{conversion(t, "javaLegacy", "a"), "a.0 a.1"},
		{conversion(t, "text", "t"), "t.1"},
	} {
		tt.c[0].Judge = nothing
		var got []string
		err := tt.c.Wants(doc, func(p *walk.Path, l Left) {
			if l.Path != p.Dotted() || l.Reason != "" || tt.c[0].From.IsBinary() && l.Path != "a.1" && l.Value.Octets != [16]byte(java.Data) || !tt.c[0].From.IsBinary() && l.Value.Other == "" {
				t.Errorf("%+v", l)
			}
			got = append(got, l.Path)
		})
		if strings.Join(got, " ") != tt.want || err != nil {
			t.Errorf("%q, want %q, %v", got, tt.want, err)
		}
		if p, err := tt.c.Edits(doc); err != nil || len(p.Changes)+len(p.InID) > 0 { // but the judge leaves all
			t.Errorf("%+v, %v", p, err)
		}
	}
	c := conversion(t, "javaLegacy")
	if err := c.Wants(doc[:len(doc)-4], func(*walk.Path, Left) {}); !errors.Is(err, walk.ErrCorrupt) {
		t.Error(err)
	}
	if err := c.each(doc, new(Ruling), func(*Ruling) error { return io.EOF }); err != io.EOF {
		t.Error(err)
	}
}
