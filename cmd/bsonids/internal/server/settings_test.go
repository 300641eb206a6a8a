package server

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// What a cutover refuses is told by the options of a collection, as listCollections has them.
func TestUnexchangeable(t *testing.T) {
	for _, tt := range []struct {
		kind    string
		options bson.D
		want    string // a part of it
	}{
		{"collection", bson.D{}, ""},
		{"collection", bson.D{{Key: "capped", Value: false}}, ""},
		{"collection", bson.D{{Key: "capped", Value: true}, {Key: "size", Value: 4096}}, "capped"},
		{"collection", bson.D{{Key: "encryptedFields", Value: bson.D{}}}, "encrypted"},
		{"collection", bson.D{{Key: "validator", Value: bson.D{}}, {Key: "validationLevel", Value: "constraint"}}, "constraint"},
		{"timeseries", bson.D{}, "timeseries"},
	} {
		raw, err := bson.Marshal(tt.options)
		if err != nil {
			t.Fatal(err)
		}
		got := Unexchangeable(&mongo.CollectionSpecification{Name: "c", Type: tt.kind, Options: raw})
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %v: got %q", tt.kind, tt.options, got)
		}
	}
}
