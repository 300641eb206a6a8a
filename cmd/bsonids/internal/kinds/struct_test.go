package kinds

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

type (
	embeds struct{ uuid.UUID }
	has    struct{ UUID uuid.UUID }
)

// The documents are those that the driver writes without a codec.
func TestParseStruct(t *testing.T) {
	u := uuid.MustParse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
	parse := func(v any) (Spelled, string, bool) {
		doc, err := bson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return ParseStruct(doc)
	}
	for _, v := range []any{embeds{u}, has{u}, uuid.NullUUID{UUID: u, Valid: true}, bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: u[:]}}}} {
		if s, reason, ok := parse(v); !ok || reason != "" || s != (Spelled{UUID: u, Certain: true}) {
			t.Errorf("%+v: %+v, %s", v, s, reason)
		}
	}
	if s, _, ok := parse(uuid.NullUUID{}); !ok || s != (Spelled{Certain: true, Null: true}) {
		t.Errorf("%+v", s)
	}
	id := bson.E{Key: "uuid", Value: u}
	for want, docs := range map[string][]bson.D{
		"other than":     {{id, {Key: "x", Value: 1}}, {id, {Key: "Valid", Value: true}}, {id, id}, {{Key: "UUID", Value: u}}, {id, {Key: "valid", Value: true}, {Key: "valid", Value: true}}},
		"no field uuid":  {{}, {{Key: "valid", Value: true}}},
		"not true":       {{id, {Key: "valid", Value: 1}}, {id, {Key: "valid", Value: nil}}},
		"16 bytes":       {{{Key: "uuid", Value: u.String()}}, {{Key: "uuid", Value: nil}}, {{Key: "uuid", Value: bson.Binary{Data: u[1:]}}}, {{Key: "uuid", Value: bson.Binary{Subtype: 3, Data: u[:]}}}},
		"valid is false": {{id, {Key: "valid", Value: false}}},
	} {
		for _, d := range docs {
			if s, reason, ok := parse(d); ok || s != (Spelled{}) || !strings.Contains(reason, want) {
				t.Errorf("%v: %+v, %q", d, s, reason)
			}
		}
	}
	// Only a document with the key is one of a Go struct, or nearly one.
	for _, d := range []bson.D{{}, {{Key: "valid", Value: true}}, {{Key: "UUID", Value: u}}, {{Key: "x", Value: bson.D{id}}}, {{Key: "x", Value: "uuid"}}} {
		raw, err := bson.Marshal(d)
		if l := (walk.Leaf{Type: bson.TypeEmbeddedDocument, Value: raw}); err != nil || Struct.Applies(l) {
			t.Errorf("%v applies, %v", d, err)
		}
	}
	doc, err := bson.Marshal(uuid.NullUUID{UUID: u, Valid: true})
	if err != nil {
		t.Fatal(err)
	}
	if !Struct.Applies(walk.Leaf{Type: bson.TypeEmbeddedDocument, Value: doc}) {
		t.Error("a document of a Go struct does not apply")
	}
	for n := range doc {
		if _, _, ok := ParseStruct(doc[:n]); ok {
			t.Errorf("the first %d bytes are a UUID", n)
		}
	}
}
