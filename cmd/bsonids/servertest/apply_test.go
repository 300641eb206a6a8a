package servertest

import (
	"errors"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// edit replaces text in a file.
func edit(t testing.TB, path string, pairs ...string) {
	t.Helper()
	is := text(t, path)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(is, pairs[i]) {
			t.Fatalf("%s has no %q:\n%s", path, pairs[i], is)
		}
		is = strings.ReplaceAll(is, pairs[i], pairs[i+1])
	}
	put(t, path, is)
}

// left is the decision to leave the checksums of the shop.
var left = []string{"decision: unknown", "decision: leave"}

// mixed edits the plan of the shop like left, and so that only customers is copied: the other collections are changed
// in place, and a person accepts that the references to customers are half converted until the cutover.
var mixed = append([]string{"    into: \"orders_standard\"\n", "", "    into: \"invoices_standard\"\n", "",
	"    fields: [\"_id\", \"customer\"]\n", "    fields: [\"_id\", \"customer\"]\n    accepted: TRUE\n"}, left...)

// whole compares all collections of the database with want.
func whole(t testing.TB, db *mongo.Database, want map[string]map[string]bson.Raw) {
	t.Helper()
	for name, docs := range want {
		if t.Failed() {
			return
		}
		equal(t, all(t, db.Collection(name)), docs)
		if t.Failed() {
			t.Errorf("in the collection %s", name)
		}
	}
}

// mixedShop is a shop with its plan, which was edited like mixed.
type mixedShop struct {
	s            *mongotest.Server
	db           *mongo.Database
	file, dir    string                         // of the plan
	before, want map[string]map[string]bson.Raw // the collections before and after the conversion
}

func newMixedShop(t testing.TB, s *mongotest.Server, n int) mixedShop {
	t.Helper()
	m := mixedShop{s: s, db: connect(t, s), before: make(map[string]map[string]bson.Raw)}
	m.want = shop(t, m.db, n)
	for name := range m.want {
		if name != "customers_standard" {
			m.before[name] = all(t, m.db.Collection(name))
		}
	}
	m.file = planned(t, s)
	m.dir = filepath.Dir(m.file)
	edit(t, m.file, mixed...)
	return m
}

// A shop is planned, reviewed, converted, proven and restored.
func TestApply(t *testing.T) {
	s := mongotest.Start(t)
	m := newMixedShop(t, s, 30)
	command(t, s, "apply", filepath.Dir(planned(t, s)), "--write").want(t, failure.ExitUsage).says(t, `"files": the decision about "md5" (subtype 3) is unknown`)
	apply, undo := []string{"apply", m.dir, "--batch", "10"}, []string{"undo", m.dir, "--batch", "10"}
	command(t, s, append(apply, "--output", "json")...).want(t, failure.ExitOK)
	command(t, s, apply...).want(t, failure.ExitOK).prints(t, "dry run")
	whole(t, m.db, m.before)
	if st, err := plan.ReadState(m.dir); !errors.Is(err, plan.ErrNoState) {
		t.Errorf("a dry run began: %+v, %v", st, err)
	}
	command(t, s, append(apply, "--write")...).want(t, failure.ExitOK)
	whole(t, m.db, m.want)
	// The same command again changes nothing.
	if r := command(t, s, append(apply, "--write")...).want(t, failure.ExitOK); strings.Count(r.stdout, "done") != 4 {
		t.Error(r.stdout)
	}
	whole(t, m.db, m.want)
	for _, output := range []string{"table", "json"} {
		command(t, s, "verify", m.dir, "--output", output).want(t, failure.ExitOK)
	}

	command(t, s, append(undo, "--output", "json")...).want(t, failure.ExitOK)
	whole(t, m.db, m.want)
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK).prints(t, "drop customers_standard")
	whole(t, m.db, m.before)
	command(t, s, "verify", m.dir).want(t, failure.ExitIncomplete)
	// The plan can be applied again, into a new copy, with new files.
	command(t, s, append(apply, "--write")...).want(t, failure.ExitUsage).says(t, `"customers_standard" has documents already`)
	whole(t, m.db, m.before)
	edit(t, m.file, `into: "customers_standard"`, `into: "other"`)
	command(t, s, append(apply, "--write", "--output", "json")...).want(t, failure.ExitOK)
	m.want["other"] = m.want["customers_standard"]
	whole(t, m.db, m.want)
	command(t, s, "verify", m.dir).want(t, failure.ExitOK)
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK)
	whole(t, m.db, m.before)
	// And so can a new one.
	file := planned(t, s)
	edit(t, file, mixed...)
	command(t, s, "apply", filepath.Dir(file), "--batch", "10", "--write", "--output", "json").want(t, failure.ExitOK)
	m.want["customers_standard_2"] = m.want["customers_standard"]
	whole(t, m.db, m.want)
}

var planKills = flag.Int("plan-kills", 0, "kill bsonids apply and undo at least this many times")

// A plan whose application, or whose undo, is killed at random moments and started again has the
// same result as one that is not.
func TestKillPlan(t *testing.T) {
	kills := 0
	for round := 0; round == 0 || kills < *planKills && !t.Failed(); round++ {
		s := mongotest.Start(t)
		m := newMixedShop(t, s, some(t, s, 40))
		flags := []string{m.dir, "--write", "--batch", "5", "--batch-timeout", "1s"}
		applied := untilDone(t, s, append([]string{"apply", "--workers", "2"}, flags...)...)
		whole(t, m.db, m.want)
		command(t, s, "verify", m.dir).want(t, failure.ExitOK)
		undone := untilDone(t, s, append([]string{"undo"}, flags...)...)
		whole(t, m.db, m.before)
		kills += applied + undone
		t.Logf("round %d: killed %d times while it converted, and %d times while it restored", round, applied, undone)
	}
}
