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
	for name, r := range map[string]*Run{
		"to another subtype": run(1, "a", order("standard", "csharpLegacy")),
		"of one subtype":     run(1, "a"),
		"a copy":             run(1, "a", copied),
	} {
		db := memory.Start(t).Client.Database("d")
		l, err := Begin(t.Context(), db, Request{Run: Run{Kind: Convert, Task: r.Task, Conversion: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		l.stop()
		l.live.Wait()
		var size int64 = 100
		if r.Into != "" {
			size, err = 0, l.SetIntoUUID(t.Context(), collectionUUID("1"))
		}
		if err := errors.Join(err, l.Check(t.Context(), size)); err != nil {
			t.Fatal(err)
		}
		runs, err := find[*Run](t.Context(), l.coll, bson.D{{Key: "kind", Value: Convert}})
		if err != nil {
			t.Fatal(err)
		}
		if err := conflict(runs, run(2, "b", order("pythonLegacy", "standard"))); !errors.Is(err, ErrTwice) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
