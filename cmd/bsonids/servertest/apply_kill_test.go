package servertest

import (
	"flag"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

var planKills = flag.Int("plan-kills", 0, "kill bsonids apply and undo at least this many times")

// A plan whose application, or whose undo, is killed at random moments and started again has the
// same result as one that is not.
func TestKillPlan(t *testing.T) {
	kills := 0
	for round := 0; round == 0 || kills < *planKills; round++ {
		s, db := started(t)
		want := shop(t, db, some(t, s, 40))
		before := make(map[string]map[string]bson.Raw)
		for name := range want {
			if name != "customers_standard" {
				before[name] = all(t, db.Collection(name))
			}
		}
		file := planned(t, s)
		dir := filepath.Dir(file)
		edit(t, file, mixed...)
		flags := []string{dir, "--write", "--batch", "5", "--batch-timeout", "1s"}
		applied := untilDone(t, s, append([]string{"apply", "--workers", "2"}, flags...)...)
		whole(t, db, want)
		command(t, s, "verify", dir).want(t, failure.ExitOK)
		undone := untilDone(t, s, append([]string{"undo"}, flags...)...)
		whole(t, db, before)
		kills += applied + undone
		t.Logf("round %d: killed %d times while it converted, and %d times while it restored", round, applied, undone)
		if t.Failed() {
			return
		}
	}
	t.Logf("killed %d times", kills)
}
