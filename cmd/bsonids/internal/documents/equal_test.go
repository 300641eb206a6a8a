package documents

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func value(tb testing.TB, v any) bson.RawValue {
	tb.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		tb.Fatal(err)
	}
	return bson.Raw(doc).Lookup("v")
}

// Values are equal if MongoDB compares them as equal: numbers of all types, text and symbols, and documents with equal fields in
// the same order. Others are not.
func TestAppendEqual(t *testing.T) {
	decimal := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	bin := func(subtype byte) bson.Binary { return bson.Binary{Subtype: subtype, Data: make([]byte, 16)} }
	equal := [][]any{
		{int32(1), int64(1), 1.0, decimal("1"), decimal("1.000"), decimal("10E-1")},
		{int32(0), 0.0, math.Copysign(0, -1), decimal("-0"), decimal("0E+6000")},
		{0.5, decimal("0.5"), decimal("5E-1")},
		{0.1}, {decimal("0.1")}, // the double is not a tenth
		{int64(1 << 53), float64(1 << 53)}, {int64(1<<53 + 1)}, {int64(math.MaxInt64)}, {math.Ldexp(1, 63)},
		{math.NaN(), decimal("NaN")}, {math.Inf(1), decimal("Infinity")}, {math.Inf(-1), decimal("-Infinity")}, {decimal("1E+6000")},
		{"a", bson.Symbol("a")}, {"A"}, {""}, {"1"}, {"a\x00"},
		{bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: "x"}}, bson.D{{Key: "a", Value: 1.0}, {Key: "b", Value: bson.Symbol("x")}}},
		{bson.D{{Key: "b", Value: "x"}, {Key: "a", Value: 1}}}, {bson.D{{Key: "a", Value: 1}}}, {bson.D{}},
		{bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}}}, {Key: "c", Value: 2}}}, {bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}, {Key: "c", Value: 2}}}}},
		{bson.A{int32(1)}, bson.A{1.0}}, {bson.A{}}, {bson.A{bson.A{}}}, {bson.D{{Key: "0", Value: int32(1)}}},
		{nil}, {bson.Undefined{}}, {bson.MinKey{}}, {bson.MaxKey{}}, {false}, {true},
		{bin(0)}, {bin(3)}, {bin(4)}, {bson.Binary{Subtype: 4, Data: make([]byte, 15)}},
		{bson.DateTime(1)}, {bson.Timestamp{T: 0, I: 1}}, {bson.ObjectID{}},
	}
	seen := make(map[string]int)
	for n, values := range equal {
		for _, v := range values {
			key := string(AppendEqual(nil, value(t, v)))
			if was, ok := seen[key]; ok && was != n {
				t.Errorf("%v is equal to %v", v, equal[was])
			}
			seen[key] = n
		}
	}
	if len(seen) != len(equal) {
		t.Errorf("%d different keys, want %d", len(seen), len(equal))
	}
}
