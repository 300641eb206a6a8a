package servertest

import (
	"os"
	"runtime"
	"slices"
	"strings"
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
	s, db := started(t, mongotest.ChangeStreams)
	app := newApplication(t, db, "c", 12)
	dir := followPlan(t, s)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	id := app.ids[0]
	insert(t, app.coll, []any{bson.D{{Key: "_id", Value: in(id, uuidrep.Standard)}, {Key: "n", Value: int32(-1)}}})
	for range 2 {
		app.insert()
		command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitIncomplete).prints(t, "another copy has the same _id")
	}
	if _, err := app.coll.DeleteOne(t.Context(), app.filter(id)); err != nil {
		t.Fatal(err)
	}
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	delete(app.docs, id)
	want := app.want()
	note(want, bson.D{{Key: "_id", Value: in(id, uuidrep.Standard)}, {Key: "n", Value: int32(-1)}})
	equal(t, all(t, db.Collection("new")), want)
}

// The connection is lost before or after every kind of command.
func TestFollowLost(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	app := newApplication(t, db, "c", 20)
	dir := followPlan(t, s)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	for range 30 {
		app.write()
	}
	var mu sync.Mutex
	lost := make(map[string]int)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
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
	command(t, p, follow(dir, "--until-caught-up", "--retry-for", "2m")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("new")), app.want())
}

// SIGTERM ends the command with exit code 0 if the copy has caught up.
func TestFollowSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "Windows has no such signal")
	}
	s, db := started(t, mongotest.ChangeStreams)
	app := newApplication(t, db, "c", 20)
	log, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := startLogged(t, s, log, follow(followPlan(t, s))...)
	read := func() string {
		b := text(t, log.Name())
		return string(b)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for !strings.Contains(read(), ": following") {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatal(read())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(read(), "The same command continues.") {
		t.Errorf("%v: %s", err, read())
	}
	equal(t, all(t, db.Collection("new")), app.want())
}
