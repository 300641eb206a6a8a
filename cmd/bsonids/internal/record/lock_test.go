package record

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A run that was killed after its first write, before it has shown a sign of life, has made values that no other
// conversion may take for those of another order.
func TestKilledEarly(t *testing.T) {
	for _, from := range []string{"standard", "javaLegacy"} {
		db := memory.Start(t).Client.Database("d")
		l, err := Begin(t.Context(), db, Request{Run: Run{Kind: Convert, Task: run(1, "a", order(from, "csharpLegacy")).Task, Conversion: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		l.stop()
		l.live.Wait()
		if err := l.Check(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		runs, err := find[*Run](t.Context(), l.coll, bson.D{{Key: "kind", Value: Convert}})
		if err != nil {
			t.Fatal(err)
		}
		if err := conflict(runs, run(2, "b", order("pythonLegacy", "standard"))); !errors.Is(err, ErrTwice) {
			t.Errorf("from %s: %v", from, err)
		}
	}
}
