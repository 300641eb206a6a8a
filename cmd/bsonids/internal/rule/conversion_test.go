package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Every kind but the standard one is converted.
func TestNewConversion(t *testing.T) {
	for _, k := range kinds.All() {
		c, err := NewConversion(k, nil)
		if k.Name == "standard" && (!errors.Is(err, ErrStandard) || c != nil) || k.Name != "standard" && (err != nil || c[0].From != k) {
			t.Errorf("%s: %+v, %v", k.Name, c, err)
		}
	}
}

// A conversion reaches the _id by its name, by a name for any, and if it has all fields.
func TestReachesID(t *testing.T) {
	for _, tt := range []struct {
		from   string
		fields []string
		want   bool
	}{
		{"text", nil, true}, {"javaLegacy", nil, true}, {"javaLegacy", []string{"_id"}, true}, {"javaLegacy", []string{"id"}, false},
		{"text", []string{"a"}, false}, {"text", []string{"a", "_id"}, true}, {"text", []string{"_id.a"}, true}, {"text", []string{"*"}, true}, {"text", []string{"a.*"}, false},
	} {
		if got := conversion(t, tt.from, tt.fields...); got.ReachesID() != tt.want {
			t.Errorf("from %s, %q: %v", tt.from, tt.fields, got.ReachesID())
		}
	}
}

// A projection has the fields at the top level, each once, and whole documents are read if a name may stand
// for others or a part of one would be.
func TestProjection(t *testing.T) {
	for fields, want := range map[string]string{
		"": "[]", "b a": "[{a 1} {b 1}]", "a a": "[{a 1}]", "_id": "[{_id 1}]", "a *": "[]", "a.b": "[]", "a b.c": "[]", "$a": "[]", "a $b": "[]",
	} {
		p := conversion(t, "javaLegacy", strings.Fields(fields)...).Projection()
		got := "["
		for i, e := range p {
			got += strings.Repeat(" ", min(i, 1)) + fmt.Sprint("{", e.Key, " ", e.Value, "}")
		}
		if got += "]"; got != want {
			t.Errorf("%q: %s, want %s", fields, got, want)
		}
	}
}

// A new value is one that the conversion may have written, in a field to which it applies.
func TestIsNew(t *testing.T) {
	const text = "00112233-4455-6677-8899-aabbccddeeff"
	u := [16]byte(kindstest.Value("standard").Data)
	doc := marshal(t, bson.D{{Key: "a", Value: kindstest.Value("standard")}, {Key: "b", Value: kindstest.Value("standard")}, {Key: "a", Value: bson.A{text, "none", kindstest.Value("javaLegacy"), bson.Binary{Subtype: 4, Data: u[:15]}, nil}}, {Key: "b", Value: text}})
	c := conversion(t, "javaLegacy", "a")
	var got []string
	err := c.Walk(doc, func(p *walk.Path, l walk.Leaf) error {
		if c.IsNew(p, l) {
			got = append(got, p.Dotted())
		}
		return nil
	})
	if strings.Join(got, " ") != "a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
