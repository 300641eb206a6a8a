package servertest

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Two documents of the source have the same _id after the conversion. The copy has one of them, the
// other is pending. When one of them is deleted, the copy is that of the other.
func TestFollowConflict(t *testing.T) {
	f := startFollowed(t, 12)
	f.catchUp(f.s, failure.ExitOK)
	id := f.app.ids[0]
	other := bson.D{{Key: "_id", Value: in(id, uuidrep.Standard)}, {Key: "n", Value: int32(-1)}}
	insert(t, f.app.coll, []any{other})
	for range 2 {
		f.app.insert()
		f.catchUp(f.s, failure.ExitIncomplete).prints(t, "another copy has the same _id")
	}
	if _, err := f.app.coll.DeleteOne(t.Context(), f.app.filter(id)); err != nil {
		t.Fatal(err)
	}
	f.catchUp(f.s, failure.ExitOK)
	want := f.app.want()
	note(want, other)
	equal(t, all(t, f.db.Collection("new")), want)
}

// The connection is lost before or after every kind of command.
func TestFollowLost(t *testing.T) {
	f := startFollowed(t, 20)
	f.catchUp(f.s, failure.ExitOK)
	for range 30 {
		f.app.write()
	}
	var mu sync.Mutex
	lost := make(map[string]int)
	p := startProxy(t, host(t, f.s), func(r request, pass func() []byte) []byte {
		name := r.name()
		mu.Lock()
		lost[name]++
		n := lost[name]
		mu.Unlock()
		switch {
		case slices.Contains([]string{"hello", "isMaster", "ismaster", "buildInfo", "ping"}, name) || n > 2:
			return pass()
		case n == 2:
			pass() // the answer is lost
		}
		return nil
	})
	f.catchUp(p, failure.ExitOK, "--retry-for", "2m")
	f.wantCopy()
}

// SIGTERM ends the command with exit code 0 if the copy has caught up.
func TestFollowSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "Windows has no such signal")
	}
	f := startFollowed(t, 20)
	log := newWatched()
	cmd := startLogged(t, f.s, log, follow(f.dir)...)
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill(); log.close() })
	defer timer.Stop()
	log.until(t, ": following")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	log.close()
	log.until(t, "The same command continues.")
	f.wantCopy()
}

var followKills = flag.Int("follow-kills", 3, "kill a copy that follows its source this many times")

// Two copies that follow their sources, beside a conversion in place, are killed at random moments, from their
// beginning on, while another program writes. Nothing is lost, and the same command continues.
func TestFollowKill(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	other := newApplication(t, db, "d", 30)
	f := &followed{T: t, s: s, db: db, app: newApplication(t, db, "c", 100)}
	want := seed(t, db.Collection("place"), 30, uuidrep.JavaLegacy, uuidrep.Standard)
	f.dir = followPlan(t, s)
	stop, stopOther := f.app.writes(100**followKills), other.writes(30**followKills)
	longest := 200 * time.Millisecond
	for range *followKills {
		if r := runFor(t, s, rand.N(longest), follow(f.dir, "--batch", "10", "--retry-for", "0s")...); r.code != killed {
			t.Fatalf("exit code %d: %s", r.code, r.stdout)
		}
		longest = min(longest+longest/4, 3*time.Second)
	}
	b := f.begin()
	stop()
	stopOther()
	b.interrupt().want(t, failure.ExitOK)
	f.catchUp(s, failure.ExitOK)
	f.wantCopy()
	equal(t, all(t, db.Collection("d_standard")), other.want())
	equal(t, all(t, db.Collection("place")), want)
	t.Logf("killed %d times, %d changes", *followKills, f.app.next)
}
