package servertest

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var followKills = flag.Int("follow-kills", 3, "kill a copy that follows its source this many times")

// Two copies that follow their sources, beside a conversion in place, are killed at random moments, from their
// beginning on, while another program writes. Nothing is lost, and the same command continues.
func TestFollowKill(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	app, other := newApplication(t, db, "c", 100), newApplication(t, db, "d", 30)
	want := seed(t, db.Collection("place"), 30, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := followPlan(t, s)
	stop, stopOther := app.writes(100**followKills), other.writes(30**followKills)
	longest := 200 * time.Millisecond
	for range *followKills {
		cmd, out := start(t, s, follow(dir, "--batch", "10", "--retry-for", "0s")...)
		timer := time.AfterFunc(rand.N(longest), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		longest += longest / 4
		longest = min(longest, 3*time.Second)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	b := inBackground(t, s, follow(dir)...)
	b.until(following)
	stop()
	stopOther()
	b.interrupt().want(t, failure.ExitOK)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("new")), app.want())
	equal(t, all(t, db.Collection("d_standard")), other.want())
	equal(t, all(t, db.Collection("place")), want)
	t.Logf("killed %d times, %d changes", *followKills, app.next)
}
