package documents

import (
	"fmt"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

var marshal = kindstest.Marshal

// The filters after an _id name every type that sorts after its type, and no other.
func TestAfter(t *testing.T) {
	if f, later := behind(bson.RawValue{}), ofLaterTypes(bson.RawValue{}, false); len(f) != 0 || later != nil {
		t.Errorf("at the beginning: %v, %v", f, later)
	}
	value := func(v any) bson.RawValue { return marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v") }
	types := func(v any, plain bool) string {
		f := ofLaterTypes(value(v), plain)
		if f == nil {
			return ""
		}
		return fmt.Sprint(f[0].Value.(bson.D)[0].Value)
	}
	for _, tt := range []struct {
		id    any
		plain bool
		want  string
	}{
		{bson.NewObjectID(), true, "[bool date timestamp regex]"},
		{bson.NewObjectID(), false, "[bool date timestamp regex dbPointer javascript javascriptWithScope maxKey]"},
		{int64(1), true, "[string object binData objectId bool date timestamp regex]"},
		{"x", true, "[object binData objectId bool date timestamp regex]"},
		{bson.MaxKey{}, false, ""},
	} {
		if got := types(tt.id, tt.plain); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.id, got, tt.want)
		}
	}
	if got := behind(value(math.NaN()))[0].Value.(bson.D)[0]; got.Key != "$gte" || got.Value != math.Inf(-1) {
		t.Errorf("after NaN: %v", got)
	}
}

// A filter exists for every valid _id.
func FuzzAfter(f *testing.F) {
	f.Add(byte(bson.TypeString), []byte{2, 0, 0, 0, 'a', 0})
	f.Add(byte(bson.TypeDecimal128), make([]byte, 16))
	f.Fuzz(func(t *testing.T, typ byte, value []byte) {
		id := bson.RawValue{Type: bson.Type(typ), Value: value}
		if id.Validate() != nil {
			return
		}
		if len(behind(id)) == 0 {
			t.Errorf("%v: everything follows", id)
		}
	})
}
