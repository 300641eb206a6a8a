package record

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A run that was killed after its first write, before it has shown a sign of life, has converted values: the record has
// the size that its undo log had before the write.
func TestKilledEarly(t *testing.T) {
	db := memory.Start(t).Client.Database("d")
	l, err := Begin(t.Context(), db, Request{Run: Run{Kind: Convert, Task: run(1, "a").Task, Conversion: "a"}})
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
	if len(runs) != 1 || runs[0].UndoSize != 100 || !runs[0].Stands() {
		t.Errorf("%+v", runs)
	}
}
