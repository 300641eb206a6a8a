package servertest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
)

type status struct {
	SchemaVersion int
	Conversions   []struct {
		Collection, Status, From, By, Reason                                      string
		Documents, DocumentsRead, DocumentsChanged, DocumentsSkipped, SecondsLeft int64
		DocumentsPerSecond                                                        float64
		Verified                                                                  *bool
		Stream                                                                    *struct {
			LagSeconds, DocumentsPending int64
			CaughtUp                     bool
		}
	}
}

func statusOf(t *testing.T, s target, args ...string) status {
	t.Helper()
	r := command(t, s, append([]string{"status", "--output", "json"}, args...)...).want(t, failure.ExitOK)
	var out status
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || out.SchemaVersion != 1 {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	return out
}

// status shows the conversions of a plan that wait, run, were killed, are done and were undone, from
// the record and from the directory.
func TestStatus(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	shop(t, db, 20)
	if got := statusOf(t, s, "--db", s.Database()); len(got.Conversions) != 0 {
		t.Errorf("got %+v", got)
	}
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, mixed...)
	for _, c := range statusOf(t, nil, dir).Conversions { // before it is applied
		if c.Status != "not begun" {
			t.Errorf("%+v", c)
		}
	}
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	for _, where := range [][]string{{"--db", s.Database()}, {dir}} {
		got := statusOf(t, s, where...)
		var names []string
		for _, c := range got.Conversions {
			names = append(names, c.Collection)
			if c.Status != "done" || c.Documents != 20 || c.DocumentsRead != 20 || c.DocumentsChanged != 20 || c.Verified == nil || !*c.Verified {
				t.Errorf("%v: got %+v", where, c)
			}
		}
		if strings.Join(names, " ") != "customers invoices orders sessions" {
			t.Errorf("%v: got %v", where, names)
		}
		command(t, s, append([]string{"status"}, where...)...).want(t, failure.ExitOK)
	}
	// Without a server, the directory has the same conversions.
	t.Setenv("MONGODB_URI", "")
	if got := statusOf(t, nil, dir); len(got.Conversions) != 4 || got.Conversions[3].Status != "done" || got.Conversions[3].DocumentsChanged != 20 {
		t.Errorf("got %+v", got)
	}
	// A run that shows life, and one that does not.
	set := func(collection string, filter, change bson.D) {
		t.Helper()
		filter = append(bson.D{{Key: "collection", Value: collection}, {Key: "kind", Value: record.Convert}}, filter...)
		if _, err := db.Collection(record.Name).UpdateOne(t.Context(), filter, change); err != nil {
			t.Fatal(err)
		}
	}
	unset := bson.E{Key: "$unset", Value: bson.D{{Key: "ended", Value: ""}, {Key: "outcome", Value: ""}}}
	set("orders", nil, bson.D{unset, {Key: "$set", Value: bson.D{{Key: "progress.read", Value: int64(5)}, {Key: "progress.changed", Value: int64(4)}}}, {Key: "$currentDate", Value: bson.D{{Key: "updated", Value: true}}}})
	set("invoices", nil, bson.D{unset, {Key: "$set", Value: bson.D{{Key: "updated", Value: bson.DateTime(1e12)}}}})
	got := statusOf(t, s, "--db", s.Database())
	if c := got.Conversions[2]; c.Status != "running" || c.DocumentsRead != 5 || c.SecondsLeft < 0 || c.DocumentsPerSecond <= 0 {
		t.Errorf("got %+v", c)
	}
	if c := got.Conversions[1]; c.Status != "stopped" || c.Reason != "the run was killed" {
		t.Errorf("got %+v", c)
	}
	if r := command(t, s, "status", "--db", s.Database()).want(t, failure.ExitOK); !strings.Contains(r.stdout, "2 of 4 conversions done") {
		t.Error(r.stdout)
	}
}

// statusCutovers returns the state of the only cutover that has not ended, or "".
func statusCutovers(t *testing.T, s target, args ...string) string {
	t.Helper()
	r := command(t, s, append([]string{"status", "--output", "json"}, args...)...).want(t, failure.ExitOK)
	var out struct {
		Cutovers []struct {
			State           string
			WaitsForRelease bool
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || len(out.Cutovers) > 1 {
		t.Fatal(err, r.stdout)
	}
	if len(out.Cutovers) == 0 {
		return ""
	}
	if c := out.Cutovers[0]; c.WaitsForRelease != (c.State == "switched") {
		t.Errorf("%+v", c)
	}
	return out.Cutovers[0].State
}
