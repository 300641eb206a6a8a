package servertest

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// All copies of a plan follow their collections at the same time, however few are converted at once. A
// collection that is converted in place is converted before, and its guard raised. The command ends when all
// have caught up.
func TestFollowSeveral(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	apps := make(map[string]*application)
	for _, name := range []string{"a", "b", "c"} {
		apps[name] = newApplication(t, db, name, 20)
	}
	want := seed(t, db.Collection("place"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := filepath.Dir(planned(t, s))
	check := func() {
		t.Helper()
		for name, app := range apps {
			equal(t, all(t, db.Collection(name+"_standard")), app.want())
		}
		equal(t, all(t, db.Collection("place")), want)
	}
	args := append(follow(dir, "--collections-at-once", "1", "--output", "json"), gentle...)
	b := inBackground(t, s, args...)
	b.until(following) // which says that all have caught up
	for range 20 {
		for _, app := range apps {
			app.write()
		}
	}
	for name, app := range apps {
		b.untilEqual(db.Collection(name+"_standard"), app.want())
	}
	var got struct {
		Finished bool
		Steps    []struct {
			Collection, Status string
			Stream             *struct{ CaughtUp bool }
		}
	}
	r := b.interrupt().want(t, failure.ExitOK)
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || !got.Finished || len(got.Steps) != 4 {
		t.Fatal(err, r.stdout)
	}
	for i, st := range got.Steps {
		if st.Status != "done" || (st.Collection == "place") != (i == 0) || (st.Stream == nil) != (i == 0) || st.Stream != nil && !st.Stream.CaughtUp {
			t.Errorf("%d: %+v", i, st)
		}
	}
	check()
	for range 20 {
		for _, app := range apps {
			app.write()
		}
	}
	command(t, s, append(args, "--until-caught-up")...).want(t, failure.ExitOK)
	check()
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}

// An interrupt before all copies have caught up ends with 130, and the same command continues.
func TestFollowInterrupted(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	first, second := newApplication(t, db, "a", 20), newApplication(t, db, "b", 20)
	dir := filepath.Dir(planned(t, s))
	args := follow(dir, "--collections-at-once", "1")
	held, release := make(chan struct{}), make(chan struct{})
	p := justBefore(t, s, asks("insert", "b_standard"), func() { close(held); <-release })
	b := inBackground(t, p, args...)
	<-held
	b.cancel()
	close(release)
	if r := b.wait().want(t, failure.ExitInterrupted); !strings.Contains(r.stderr, "to continue") {
		t.Error(r.stderr)
	}
	command(t, s, append(args, "--until-caught-up")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("a_standard")), first.want())
	equal(t, all(t, db.Collection("b_standard")), second.want())
}

// A service adds a field, which is copied as it is. When it is decided, all documents are compared again, and
// what was deleted meanwhile is deleted in the copy.
func TestFollowEdited(t *testing.T) {
	f := startFollowed(t, 30)
	f.catchUp(f.s, failure.ExitOK)
	for i, id := range f.app.ids {
		set(t, f.app.coll, in(id, uuidrep.JavaLegacy), "session", in(cutID(i), uuidrep.JavaLegacy))
	}
	wantCopy := func(r uuidrep.Representation) {
		t.Helper()
		want := make(map[string]bson.Raw)
		for i, id := range f.app.ids {
			note(want, append(f.app.doc(id, uuidrep.Standard), bson.E{Key: "session", Value: in(cutID(i), r)}))
		}
		equal(t, all(t, f.db.Collection("new")), want)
	}
	f.catchUp(f.s, failure.ExitOK)
	wantCopy(uuidrep.JavaLegacy)
	last := len(f.app.ids) - 1
	did(t)(f.app.coll.DeleteOne(t.Context(), f.app.filter(f.app.ids[last])))
	f.app.ids = f.app.ids[:last]
	command(t, f.s, "plan", f.dir, "--db", f.s.Database()).want(t, failure.ExitOK)
	setDecision(t, filepath.Join(f.dir, "plan.yaml"), "session", "convert from javaLegacy")
	f.catchUp(f.s, failure.ExitOK)
	wantCopy(uuidrep.Standard)
}

// A copy that follows has the values, the counts and the list of a copy that does not, also of odd documents.
func TestFollowAwkward(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	insert(t, db.Collection("c"), awkward(t, db))
	var steps [2][]report.AppliedStep
	var lists [2][]string
	var docs [2]map[string]bson.Raw
	for i, more := range [][]string{nil, {"--follow", "--until-caught-up"}} {
		into := fmt.Sprint("new", i)
		dir := prepared(t, s, "standard", copiedInto("c", into), func(p *plan.Plan) {
			eachField(p, func(f *plan.Field) {
				if f.Path == "a" && f.Stored == kinds.Subtype3 { // some of its values are in another order
					f.Decision, f.Trust = plan.Convert("csharpLegacy"), true
				} else if f.Decision == plan.Unknown {
					f.Decision = plan.Leave
				}
			})
		})
		command(t, s, append([]string{"apply", dir}, more...)...).want(t, failure.ExitOK)
		steps[i] = appliedSteps(t, s, failure.ExitIncomplete, applying(dir, more...)...)
		steps[i][0].Stream = nil
		lists[i], docs[i] = lines(t, skipList(t, dir)), all(t, db.Collection(into))
		drop(t, db.Collection(into)) // the next plan does not have it
	}
	equal(t, docs[1], docs[0])
	if fmt.Sprint(steps[0]) != fmt.Sprint(steps[1]) || len(steps[0]) != 1 || !slices.Equal(lists[0], lists[1]) || len(lists[0]) < 3 {
		t.Errorf("%v\n%v", steps, lists)
	}
}

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
	did(t)(f.app.coll.DeleteOne(t.Context(), f.app.filter(id)))
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
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	check(t, cmd.Wait())
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
