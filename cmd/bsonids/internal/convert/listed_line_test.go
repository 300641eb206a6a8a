package convert

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// A line of a skip list has the text of a UUID in a binary value, and malformed values, with their subtypes and their bytes. Binary
// values that no conversion lists are no line of one.
func TestListedLine(t *testing.T) {
	const hyphens = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6" // of RFC 9562, section 4
	id := bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}
	for _, tt := range []struct {
		v  bson.Binary
		ok bool
	}{
		{bson.Binary{Data: []byte(hyphens)}, true},
		{bson.Binary{Subtype: 2, Data: []byte(hyphens)}, true},
		{bson.Binary{Subtype: 3, Data: []byte(strings.ReplaceAll(hyphens, "-", ""))}, true},
		{bson.Binary{Subtype: 4, Data: []byte(strings.ToUpper(hyphens))}, true},
		{bson.Binary{Subtype: 3, Data: make([]byte, 15)}, true},
		{bson.Binary{Subtype: 4}, true},
		{bson.Binary{Subtype: 3, Data: make([]byte, 16)}, true},
		{bson.Binary{Data: make([]byte, 17)}, false},
		{bson.Binary{Subtype: 2, Data: make([]byte, 16)}, false},
		{bson.Binary{Subtype: 5, Data: []byte(hyphens)}, false},
	} {
		typ, b, err := bson.MarshalValue(tt.v)
		if err != nil {
			t.Fatal(err)
		}
		left := rule.Left{Path: "a.0", Value: rule.ValueOf(typ, b), Reason: "a reason"}
		line, err := skipLine("db.c", id, left)
		if err != nil {
			t.Fatal(err)
		}
		var got *listedValue
		err = listedLine(line, "db.c", func(_ bson.RawValue, v *listedValue) { got = v })
		if tt.ok != (err == nil) || tt.ok && *got != (listedValue{left.Path, left.Value}) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}
