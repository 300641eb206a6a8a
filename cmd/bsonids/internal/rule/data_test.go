package rule

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

func marshal(t testing.TB, v any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func conversion(t testing.TB, from, to string, fields ...string) Conversion {
	t.Helper()
	return kindstest.Conversion(t, NewConversion, from, to, fields...)
}
