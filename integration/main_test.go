package integration

import (
	"testing"

	"github.com/bsonids/bsonids/integration/mongotest"
)

func TestMain(m *testing.M) { mongotest.Main(m) }
