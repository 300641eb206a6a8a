package walk

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Documents are visited before their values, which are left out if the visitor says so.
func TestDocuments(t *testing.T) {
	doc := marshal(t, bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.D{{Key: "x", Value: 1}}}, {Key: "c", Value: 1}}},
		{Key: "l", Value: bson.A{bson.D{{Key: "y", Value: 1}}, 1, bson.A{bson.D{}}}}, {Key: "z", Value: 1}})
	for skipped, want := range map[string][]string{
		"":    {"a{", "a.b{", "a.b.x", "a.c", "l.0{", "l.0.y", "l.1", "l.2.0{", "z"},
		"a":   {"a{", "l.0{", "l.0.y", "l.1", "l.2.0{", "z"},
		"a.b": {"a{", "a.b{", "a.c", "l.0{", "l.0.y", "l.1", "l.2.0{", "z"},
		"l.0": {"a{", "a.b{", "a.b.x", "a.c", "l.0{", "l.1", "l.2.0{", "z"},
	} {
		var got []string
		err := Documents(doc, func(p *Path, l Leaf) (bool, error) {
			if v := bson.Raw(doc[l.Offset : l.Offset+len(l.Value)]); v.Validate() != nil || l.Type != bson.TypeEmbeddedDocument {
				t.Errorf("%s is %v", p.Dotted(), l)
			}
			got = append(got, p.Dotted()+"{")
			return p.Dotted() == skipped, nil
		}, func(p *Path, _ Leaf) error {
			got = append(got, p.Dotted())
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("without %q: %q, %v", skipped, got, err)
		}
	}
}
