package shell

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The expressions are those of the manual: https://www.mongodb.com/docs/mongodb-shell/reference/data-types/
func TestExpression(t *testing.T) {
	id, _ := bson.ObjectIDFromHex("0123456789abcdef01234567")
	decimal, _ := bson.ParseDecimal128("1.50")
	for _, tt := range []struct {
		value any
		want  string
	}{
		{bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}, `BinData(3, "MDEyMzQ1Njc4OWFiY2RlZg==")`},
		{bson.A{int32(1), "a", nil, true}, `[1, "a", null, true]`},
		{bson.D{{Key: "$in", Value: bson.A{}}, {Key: "a.b", Value: 1.5}, {Key: "", Value: bson.D{}}}, `{$in: [], "a.b": 1.5, "": {}}`},
		{bson.D{{Key: "__proto__", Value: int32(1)}}, `{["__proto__"]: 1}`},
		{"q\"\\\n\u2028\u202eé", `"q\"\\\u000a\u2028\u202eé"`},
		{id, `ObjectId("0123456789abcdef01234567")`},
		{bson.DateTime(0), `ISODate("1970-01-01T00:00:00.000Z")`},
		{bson.DateTime(1 << 60), `new Date(1152921504606846976)`},
		{bson.Timestamp{T: 1, I: 2}, `Timestamp(1, 2)`},
		{int64(1) << 60, `NumberLong("1152921504606846976")`},
		{decimal, `NumberDecimal("1.50")`},
		{bson.Regex{Pattern: "^a/b", Options: "i"}, `RegExp("^a/b", "i")`},
		{bson.JavaScript("f()"), `Code("f()")`},
		{bson.MinKey{}, `MinKey()`},
	} {
		if got := Expression(bson.D{{Key: "v", Value: tt.value}}); got != "{v: "+tt.want+"}" {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
