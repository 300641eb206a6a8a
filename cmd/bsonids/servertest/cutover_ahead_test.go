package servertest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// A cutover that is killed while it compares the documents has fenced nothing. The same command goes on,
// or gives it up. If the old collection is gone, the copy keeps its documents.
func TestCutoverKilledBeforeFence(t *testing.T) {
	for _, then := range []string{"continued", "rolled back", "dropped", "another index"} {
		t.Run(then, func(t *testing.T) {
			c := startCut(t, 40, "a", "b")
			c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
			settings := c.settingsOf("a")
			killed, out := c.killed(t, func(r request) bool {
				name, _ := r.command.Lookup("find").StringValueOK()
				_, err := r.command.LookupErr("filter", "_id", "$in")
				return name == "b_new" && err == nil
			}, false, c.line("cutover", "--write")...)
			if state := statusCutovers(t, c.s, "--db", c.db.Name()); !killed || state != "comparing" {
				t.Fatalf("killed in the state %q: %s", state, out)
			}
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			c.put("a", cutDoc(800, 1)) // a collection that was compared
			command(t, c.s, "apply", c.planFrom("csharpLegacy", "a", "a_again", "javaLegacy"), "--write").want(t, failure.ExitUsage).says(t, "is compared by a cutover of a, b")
			want := converted(t, c.docs("a"))
			switch then {
			case "continued":
				if r := c.cutover(c.s, failure.ExitOK, "--write"); r.State != "switched" {
					t.Errorf("%+v", r)
				}
				equal(t, c.docs("a"), want)
				return
			case "rolled back":
				if r := c.cutover(c.s, failure.ExitOK, "--roll-back", "--write"); r.State != "rolled back" || r.RefusedMilliseconds != 0 {
					t.Errorf("%+v", r)
				}
			case "dropped":
				drop(t, c.db.Collection("b"))
				c.put("b", cutDoc(1, 1)) // a service creates it again
				c.run(failure.ExitFailed, "cutover", "--write").says(t, "was rolled back")
				if n := len(c.docs("b_new")); n != 40 {
					t.Errorf("the copy has %d documents", n)
				}
				return
			case "another index":
				_, err := c.db.Collection("a").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}})
				c.check(err)
				c.run(failure.ExitUsage, "cutover", "--write").says(t, "has indexes that a_new does not have: n_1", "was rolled back")
			}
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			if state := statusCutovers(t, c.s, "--db", c.db.Name()); state != "" {
				t.Errorf("the state is %q", state)
			}
		})
	}
}

// A cutover that is killed while it asks with a collection of its own whether the server keeps UUIDs. The next
// one leaves no other collections than the old and the new one.
func TestCutoverProbeKilled(t *testing.T) {
	for _, tt := range []struct {
		command string
		after   bool
	}{{"create", true}, {"renameCollection", true}, {"drop", false}} {
		t.Run(tt.command, func(t *testing.T) {
			c := startCut(t, 5, "a")
			killed, _ := c.killed(t, func(r request) bool {
				name, ok := r.command.Lookup(tt.command).StringValueOK()
				return ok && strings.Contains(name, "bsonids.probe.")
			}, tt.after, c.line("cutover", "--write")...)
			if !killed {
				t.Skip("this server reports no UUIDs of collections, or keeps them: nothing is asked")
			}
			if got := c.collections(); !strings.Contains(got, "bsonids.probe.") {
				t.Fatalf("it was killed at another moment: %s", got)
			}
			c.cutover(c.s, failure.ExitOK, "--write")
			if got := c.collections(); got != "a a_before_cutover" {
				t.Error(got)
			}
		})
	}
}
