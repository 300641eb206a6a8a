package servertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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
	held, release := make(chan struct{}, 1), make(chan struct{})
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if into, _ := r.command.Lookup("insert").StringValueOK(); into == "b_standard" {
			select {
			case held <- struct{}{}:
			default:
			}
			<-release
		}
		return pass()
	})
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
	if _, err := f.app.coll.DeleteOne(t.Context(), f.app.filter(f.app.ids[last])); err != nil {
		t.Fatal(err)
	}
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
	type outcome struct {
		step map[string]any
		list []string
		docs map[string]bson.Raw
	}
	var got []outcome
	for i, more := range [][]string{nil, {"--follow", "--until-caught-up"}} {
		file := planned(t, s)
		into := fmt.Sprint("new", i)
		changePlan(t, filepath.Dir(file), copiedInto("c", into))
		setDecision(t, file, "a", "convert from csharpLegacy", "trust: true") // some of its values are in another order
		edit(t, file, "decision: unknown", "decision: leave")
		command(t, s, append([]string{"apply", filepath.Dir(file)}, more...)...).want(t, failure.ExitOK)
		r := command(t, s, slices.Concat([]string{"apply", filepath.Dir(file), "--write", "--output", "json"}, more, gentle)...).want(t, failure.ExitIncomplete)
		var out struct{ Steps []map[string]any }
		if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || len(out.Steps) != 1 {
			t.Fatal(err, r.stdout)
		}
		o := outcome{step: out.Steps[0], docs: all(t, db.Collection(into))}
		o.list = strings.Split(text(t, o.step["skipList"].(string)), "\n")
		slices.Sort(o.list)
		maps.DeleteFunc(o.step, func(key string, _ any) bool { return slices.Contains([]string{"into", "stream", "skipList"}, key) })
		got = append(got, o)
		if err := db.Collection(into).Drop(t.Context()); err != nil { // the next plan does not have it
			t.Fatal(err)
		}
	}
	equal(t, got[1].docs, got[0].docs)
	if fmt.Sprint(got[0].step) != fmt.Sprint(got[1].step) || !slices.Equal(got[0].list, got[1].list) || len(got[0].list) < 3 {
		t.Errorf("%v\n%v\n%v\n%v", got[0].step, got[1].step, got[0].list, got[1].list)
	}
}
