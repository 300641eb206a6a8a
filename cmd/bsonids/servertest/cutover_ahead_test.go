package servertest

import (
	"errors"
	"os/exec"
	"sync"
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
			process := make(chan *exec.Cmd, 1)
			var once sync.Once
			p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
				name, _ := r.command.Index(0).Value().StringValueOK()
				if _, err := r.command.LookupErr("filter", "_id", "$in"); r.name() == "find" && name == "b_new" && err == nil {
					once.Do(func() { _ = (<-process).Process.Kill() })
					return nil
				}
				return pass()
			})
			cmd, out := start(t, p, c.line("cutover", "--write")...)
			process <- cmd
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
				t.Fatalf("%v: %s", err, out)
			}
			if state := statusCutovers(t, c.s, "--db", c.db.Name()); state != "comparing" {
				t.Fatalf("killed in the state %q", state)
			}
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			insert(t, c.db.Collection("a"), []any{cutDoc(800, 1)}) // a collection that was compared
			command(t, c.s, "apply", c.planFrom("csharpLegacy", "a", "a_again", "javaLegacy"), "--write").want(t, failure.ExitUsage).says(t, "is compared by a cutover of a, b")
			want := converted(t, all(t, c.db.Collection("a")))
			switch then {
			case "continued":
				if r := c.cutover(c.s, failure.ExitOK, "--write"); r.State != "switched" {
					t.Errorf("%+v", r)
				}
				equal(t, all(t, c.db.Collection("a")), want)
				return
			case "rolled back":
				if r := c.cutover(c.s, failure.ExitOK, "--roll-back", "--write"); r.State != "rolled back" || r.RefusedMilliseconds != 0 {
					t.Errorf("%+v", r)
				}
			case "dropped":
				drop(t, c.db.Collection("b"))
				insert(t, c.db.Collection("b"), []any{cutDoc(1, 1)}) // a service creates it again
				command(t, c.s, c.line("cutover", "--write")...).want(t, failure.ExitFailed).says(t, "was rolled back")
				if n := len(all(t, c.db.Collection("b_new"))); n != 40 {
					t.Errorf("the copy has %d documents", n)
				}
				return
			case "another index":
				if _, err := c.db.Collection("a").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}); err != nil {
					t.Fatal(err)
				}
				command(t, c.s, c.line("cutover", "--write")...).want(t, failure.ExitUsage).says(t, "has indexes that a_new does not have: n_1", "was rolled back")
			}
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			if state := statusCutovers(t, c.s, "--db", c.db.Name()); state != "" {
				t.Errorf("the state is %q", state)
			}
		})
	}
}
