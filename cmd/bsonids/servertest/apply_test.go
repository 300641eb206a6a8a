package servertest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
)

// edit replaces text in a file.
func edit(t testing.TB, path string, pairs ...string) {
	t.Helper()
	b := text(t, path)
	text := string(b)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q:\n%s", path, pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	put(t, path, text)
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

// A shop is planned, reviewed, converted, proven and restored.
func TestApply(t *testing.T) {
	s, db := started(t)
	want := shop(t, db, 30)
	before := make(map[string]map[string]bson.Raw)
	for _, name := range []string{"customers", "orders", "invoices", "sessions", "files", "countries"} {
		before[name] = all(t, db.Collection(name))
	}
	file := planned(t, s)
	dir := filepath.Dir(file)
	args := []string{"apply", dir, "--batch", "10"}

	command(t, s, append(args, "--write")...).want(t, failure.ExitUsage).says(t, `"files": the decision about "md5" (subtype 3) is unknown`)
	edit(t, file, mixed...)
	command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK)
	r := command(t, s, args...).want(t, failure.ExitOK).prints(t, "dry run")
	whole(t, db, before)
	if st, err := plan.ReadState(dir); !errors.Is(err, plan.ErrNoState) {
		t.Errorf("a dry run began: %+v, %v", st, err)
	}
	r = command(t, s, append(args, "--write")...).want(t, failure.ExitOK)
	whole(t, db, want)
	// The same command again changes nothing.
	if r = command(t, s, append(args, "--write")...).want(t, failure.ExitOK); strings.Count(r.stdout, "done") != 5 {
		t.Error(r.stdout)
	}
	whole(t, db, want)
	for _, output := range []string{"table", "json"} {
		command(t, s, "verify", dir, "--output", output).want(t, failure.ExitOK)
	}

	undo := []string{"undo", dir, "--batch", "10"}
	command(t, s, append(undo, "--output", "json")...).want(t, failure.ExitOK)
	whole(t, db, want)
	r = command(t, s, append(undo, "--write")...).want(t, failure.ExitOK).prints(t, "drop customers_standard")
	whole(t, db, before)
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	// The plan can be applied again, into a new copy, with new files.
	r = command(t, s, append(args, "--write")...).want(t, failure.ExitUsage).says(t, `"customers_standard" has documents already`)
	whole(t, db, before)
	edit(t, file, `into: "customers_standard"`, `into: "other"`)
	command(t, s, append(args, "--write", "--output", "json")...).want(t, failure.ExitOK)
	want["other"] = want["customers_standard"]
	whole(t, db, want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK)
	whole(t, db, before)
	// And so can a new one.
	file = planned(t, s)
	dir = filepath.Dir(file)
	edit(t, file, mixed...)
	command(t, s, "apply", dir, "--batch", "10", "--write", "--output", "json").want(t, failure.ExitOK)
	want["customers_standard_2"] = want["customers_standard"]
	whole(t, db, want)
}
