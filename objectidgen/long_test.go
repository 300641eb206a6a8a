package objectidgen

import (
	"os"
	"testing"
)

// longVariable makes the tests run that take many seconds, and others at their full size.
const longVariable = "BSONIDS_LONG_TESTS"

func long(t testing.TB) bool {
	t.Helper()
	return os.Getenv(longVariable) != "" && !testing.Short()
}
