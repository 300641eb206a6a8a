package autoid_test

import (
	"bytes"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestZeroIDWithPlans checks that a zero value of an _id counts as missing also if a plan encodes the document, and its
// encoded form does not show that it is zero.
func TestZeroIDWithPlans(t *testing.T) {
	build := func(plans bool) *bson.Registry {
		b := bsoncodec.NewRegistryBuilder(uuidrep.Standard)
		if !plans {
			b.WithoutPlans()
		}
		reg, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		autoid.Register(reg)
		return reg
	}
	src := autoid.SourceFunc(func() (any, error) { return "drawn", nil })
	others := bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}}
	d := append(bson.D{{Key: "_id", Value: time.Time{}}}, others...)
	m := bson.M{"_id": time.Time{}, "a": 1, "b": 2, "c": 3}
	for _, doc := range []any{d, &d, m, &m, map[string]time.Time{"_id": {}, "a": {}}} {
		for _, plans := range []bool{false, true} {
			var buf bytes.Buffer
			enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
			enc.SetRegistry(build(plans))
			if err := enc.Encode(autoid.Document(src, doc, autoid.ZeroIDAsMissing(), autoid.AllowMisfitIDs())); err != nil {
				t.Fatal(err)
			}
			if id, ok := bson.Raw(buf.Bytes()).Lookup("_id").StringValueOK(); !ok || id != "drawn" {
				t.Errorf("%T, plans %v: the zero _id was kept: %v", doc, plans, bson.Raw(buf.Bytes()))
			}
		}
	}
}
