package rule

import (
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

var marshal = kindstest.Marshal

func conversion(t testing.TB, from string, fields ...string) Conversion {
	t.Helper()
	return kindstest.Conversion(t, NewConversion, from, fields...)
}
