package servertest

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A copy follows its source while another program inserts, updates, deletes and bypasses the
// validator, before, while and after it is copied, and while the command does not run.
func TestFollow(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	app := newApplication(t, db, "c", 60)
	dir := followPlan(t, s)

	stop := app.writes(100)
	b := inBackground(t, s, follow(dir, "--batch", "10")...)
	b.until(following)
	stop()
	b.interrupt().want(t, failure.ExitOK).prints(t, "Verified: new has every change of c")
	for range 30 {
		app.write()
	}
	stop = app.writes(100)
	b = inBackground(t, s, follow(dir)...)
	b.until(following)
	stop()
	for range 10 {
		app.write()
	}
	b.interrupt().want(t, failure.ExitOK)
	command(t, s, follow(dir, "--until-caught-up", "--output", "json")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("new")), app.want())
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	// Nothing has changed since.
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("new")), app.want())
}

// status shows the lag while a copy follows its source. No other run follows into the same copy.
func TestFollowStatus(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	app := newApplication(t, db, "c", 20)
	dir := followPlan(t, s)
	b := inBackground(t, s, follow(dir)...)
	b.until(following)
	command(t, s, follow(dir)...).want(t, failure.ExitUsage).says(t, "in use by another process")
	other := filepath.Join(t.TempDir(), "other.d")
	again(t, filepath.Join(dir, "plan.yaml"), other)
	command(t, s, follow(other)...).want(t, failure.ExitUsage).says(t, `"new" has documents already`)
	app.write()
	for { // until the record has it
		got := statusOf(t, s, "--db", s.Database())
		if len(got.Conversions) == 1 && got.Conversions[0].Status == "running" && got.Conversions[0].Stream != nil && got.Conversions[0].Stream.CaughtUp {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	command(t, s, "status", "--db", s.Database()).want(t, failure.ExitOK).prints(t, "following, ")
	b.interrupt().want(t, failure.ExitOK)
	command(t, s, "status", "--db", s.Database()).want(t, failure.ExitOK).prints(t, "stopped: the copy does not follow its source any more")
}

// The source is renamed while its copy follows it.
func TestFollowRenamed(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	app := newApplication(t, db, "c", 20)
	dir := followPlan(t, s)
	b := inBackground(t, s, follow(dir)...)
	b.until(following)
	for range 10 {
		app.write()
	}
	rename(t, db, "c", "c2")
	app.coll = db.Collection("c2")
	for range 10 {
		app.write()
	}
	for want := app.want(); !same(all(t, db.Collection("new")), want); {
		select {
		case r := <-b.ended:
			t.Fatal(r.code, r.stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
	b.interrupt().want(t, failure.ExitOK)
}

func same(got, want map[string]bson.Raw) bool {
	if len(got) != len(want) {
		return false
	}
	for id, doc := range want {
		if string(got[id]) != string(doc) {
			return false
		}
	}
	return true
}

// If the source or its database is dropped, or another collection takes its name, the copy stays as
// it is.
func TestFollowDropped(t *testing.T) {
	for name, drop := range map[string]func(*testing.T, *mongo.Database){
		"dropped": func(t *testing.T, db *mongo.Database) {
			drop(t, db.Collection("c"))
		},
		"dropped and created": func(t *testing.T, db *mongo.Database) {
			drop(t, db.Collection("c"))
			insert(t, db.Collection("c"), []any{bson.D{{Key: "_id", Value: 1}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := started(t, mongotest.ChangeStreams)
			app := newApplication(t, db, "c", 20)
			want := app.want()
			dir := followPlan(t, s)
			b := inBackground(t, s, follow(dir)...)
			b.until(following)
			drop(t, db)
			if r := b.wait().want(t, failure.ExitFailed); !strings.Contains(r.stderr, "the source was dropped") || strings.Contains(r.stderr, "to continue") {
				t.Error(r.stderr)
			}
			equal(t, all(t, db.Collection("new")), want)
			command(t, s, follow(dir)...).want(t, failure.ExitUsage)
			equal(t, all(t, db.Collection("new")), want)
		})
	}
}

// If the copy is dropped or renamed while the command runs, it ends, with documents to write and
// without.
func TestFollowCopyGoneMeanwhile(t *testing.T) {
	for _, write := range []bool{false, true} {
		s, db := started(t, mongotest.ChangeStreams)
		app := newApplication(t, db, "c", 20)
		b := inBackground(t, s, follow(followPlan(t, s))...)
		b.until(following)
		drop(t, db.Collection("new"))
		if write {
			app.insert()
		}
		b.wait().want(t, failure.ExitFailed).says(t, "was renamed or dropped").lacks(t, "to continue")
		names, err := db.ListCollectionNames(t.Context(), bson.D{{Key: "name", Value: "new"}})
		if err != nil || len(names) != 0 {
			t.Error(names, err)
		}
	}
}

// If the copy is dropped or renamed, the command does not make another one.
func TestFollowCopyGone(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	newApplication(t, db, "c", 20)
	dir := followPlan(t, s)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	drop(t, db.Collection("new"))
	command(t, s, follow(dir)...).want(t, failure.ExitFailed).says(t, "was renamed or dropped")
	names, err := db.ListCollectionNames(t.Context(), bson.D{{Key: "name", Value: "new"}})
	if err != nil || len(names) != 0 {
		t.Error(names, err)
	}
}

// Two documents exchange their values of a unique index. Neither copy can be replaced before the
// other one.
func TestFollowExchange(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	c := db.Collection("c")
	want := seed(t, c, 12, uuidrep.JavaLegacy, uuidrep.Standard)
	if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "seat", Value: 1}}, Options: options.Index().SetUnique(true).SetSparse(true)}); err != nil {
		t.Fatal(err)
	}
	set := func(id int, seat string) {
		set(t, c, id, "seat", seat)
	}
	set(1, "a")
	set(2, "b")
	dir := followPlan(t, s)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	set(1, "none")
	set(2, "a")
	set(1, "b")
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	got := all(t, db.Collection("new"))
	for id, seat := range map[string]string{"1": "b", "2": "a"} {
		id = `{"$numberInt":"` + id + `"}`
		if is, _ := got[id].Lookup("seat").StringValueOK(); is != seat {
			t.Errorf("%s: seat %q, want %q", id, is, seat)
		}
		delete(got, id)
		delete(want, id)
	}
	equal(t, got, want)
}

// The stream is opened, and the comparison begins again, if the changes behind the saved position
// are no longer available. Copies whose sources were deleted meanwhile are kept and reported: no
// event says that their sources existed.
func TestFollowExpired(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		s, db := started(t, mongotest.ChangeStreams)
		app := newApplication(t, db, "c", 30)
		dir := followPlan(t, s)
		command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
		before := app.want()
		if deleted {
			app.delete()
		}
		for range 10 {
			app.insert()
			app.update()
			app.bypass()
		}
		var mu sync.Mutex
		var order []string
		var refused sync.Once
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			switch name, _ := r.command.Lookup("find").StringValueOK(); {
			case name == "c":
				note("read")
			case r.name() == "aggregate":
				if _, err := r.command.LookupErr("pipeline", "0", "$changeStream", "startAfter"); err != nil {
					note("new stream")
					return pass()
				}
				var answer []byte
				refused.Do(func() {
					note("expired")
					answer = r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(286)}, {Key: "codeName", Value: "ChangeStreamHistoryLost"},
						{Key: "errmsg", Value: "Resume of change stream was not possible, as the resume point may no longer be in the oplog."}})
				})
				if answer != nil {
					return answer
				}
			}
			return pass()
		})
		code := failure.ExitOK
		if deleted {
			code = failure.ExitIncomplete
		}
		r := command(t, p, follow(dir, "--until-caught-up")...).want(t, code)
		if !strings.Contains(r.stderr, "the comparison begins again") || strings.Contains(r.stdout, "another program wrote it to the copy") != deleted {
			t.Error(r.stdout, r.stderr)
		}
		if got := strings.Join(order, " "); !strings.Contains(got, "expired new stream read") {
			t.Errorf("%s", got)
		}
		got := all(t, db.Collection("new"))
		for id := range before {
			if _, ok := app.want()[id]; !ok {
				delete(got, id) // it is kept
			}
		}
		equal(t, got, app.want())
	}
}

// A server without change streams is refused with the reason, before anything is written.
func TestFollowRefused(t *testing.T) {
	s := mongotest.Start(t)
	s.Refuse(t, mongotest.ChangeStreams)
	db := connect(t, s)
	var docs []any
	for i := range 10 {
		docs = append(docs, cutDoc(i, 0))
	}
	insert(t, db.Collection("c"), docs)
	dir := followPlan(t, s)
	command(t, s, follow(dir)...).want(t, failure.ExitUsage).says(t, "--follow: a copy cannot follow its source on this server: the server has no change streams")
	if names, err := db.ListCollectionNames(t.Context(), bson.D{}); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*.state")); err != nil || len(names) != 0 {
		t.Error(names, err)
	}
	command(t, s, "apply", dir, "--write", "--until-caught-up").want(t, failure.ExitUsage).says(t, "requires --follow")
}

// Only a copy can follow its collection, and only if its _id tells the one of its source.
func TestFollowNothing(t *testing.T) {
	s, db := started(t)
	seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := filepath.Dir(planned(t, s))
	for _, args := range [][]string{follow(dir), {"apply", dir, "--follow"}} {
		command(t, s, args...).want(t, failure.ExitUsage).says(t, "no collection of the plan has into")
	}
	var docs []any
	for i := range 12 {
		docs = append(docs, bson.D{{Key: "_id", Value: v4(i).String()}})
	}
	insert(t, db.Collection("texts"), docs)
	file := planned(t, s)
	edit(t, file, "- path: \"_id\"\n        stored: text\n        decision: leave", "- path: \"_id\"\n        stored: text\n        decision: convert from text",
		"name: \"texts\"\n", "name: \"texts\"\n    into: \"texts_standard\"\n")
	command(t, s, follow(filepath.Dir(file))...).want(t, failure.ExitUsage).says(t, "text in _id")
}
