package servertest

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// A command asks each collection once whether it is a record under another name, however many collections it converts.
func TestOtherRecordsAreAskedForOnce(t *testing.T) {
	s, db := started(t)
	want := make(map[string]int)
	for i := range 4 {
		name := fmt.Sprintf("c%d", i)
		seed(t, db.Collection(name), 5, uuidrep.JavaLegacy)
		want[name] = 1
	}
	dir := prepared(t, s)
	var mu sync.Mutex
	asked := make(map[string]int)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if id, err := r.command.LookupErr("filter", "_id"); err == nil && id.Type == bson.TypeString && id.StringValue() == "bsonids record" {
			mu.Lock()
			asked[r.on()]++
			mu.Unlock()
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write").want(t, failure.ExitOK)
	mu.Lock()
	defer mu.Unlock()
	if !maps.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}
