package offline

import (
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// FuzzMetadata looks for constants in any metadata.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"options":{"validator":{"u":{"$ne":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"03"}}}}},"indexes":[]}`))
	f.Add([]byte(`{"options":{"validator":{"u":{"$binary":"AAAAAAAAAAAAAAAAAAAAAA==","$type":"03"}}}}`))
	f.Add([]byte(`{"indexes":[{"key":{"a":"text"},"partialFilterExpression":{"a":{"$regex":"x"}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newRun(&Job{Steps: map[string][]rule.Conversion{"d.c": {conversion(t, "javaLegacy", "standard")}}})
		c := &Collection{Namespace: "d.c", Role: Converted}
		r.constants(c, &dump.Item{Kind: dump.Metadata, Text: text})
		if c.Constants != r.res.Constants {
			t.Errorf("%d constants, %d counted", c.Constants, r.res.Constants)
		}
	})
}
