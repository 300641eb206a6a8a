package servertest

import (
	"path/filepath"
	"sync/atomic"
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
	f := startFollowed(t, 60)
	stop := f.app.writes(100)
	b := f.begin("--batch", "10")
	stop()
	b.interrupt().want(t, failure.ExitOK).prints(t, "Verified: new has every change of c")
	for range 30 {
		f.app.write()
	}
	stop = f.app.writes(100)
	b = f.begin()
	stop()
	for range 10 {
		f.app.write()
	}
	b.interrupt().want(t, failure.ExitOK)
	f.catchUp(f.s, failure.ExitOK, "--output", "json")
	f.wantCopy()
	command(t, f.s, "verify", f.dir).want(t, failure.ExitOK)
	f.catchUp(f.s, failure.ExitOK) // nothing has changed since
	f.wantCopy()
}

// status shows the lag while a copy follows its source. No other run follows into the same copy.
func TestFollowStatus(t *testing.T) {
	f := startFollowed(t, 20)
	b := f.begin()
	command(t, f.s, follow(f.dir)...).want(t, failure.ExitUsage).says(t, "in use by another process")
	other := filepath.Join(t.TempDir(), "other.d")
	again(t, filepath.Join(f.dir, "plan.yaml"), other)
	command(t, f.s, follow(other)...).want(t, failure.ExitUsage).says(t, `"new" has documents already`)
	f.app.write()
	status := []string{"status", "--db", f.s.Database()}
	for { // until the record has it
		got := statusOf(t, f.s, status[1:]...)
		if len(got.Conversions) == 1 && got.Conversions[0].Status == "running" && got.Conversions[0].Stream != nil && got.Conversions[0].Stream.CaughtUp {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	command(t, f.s, status...).want(t, failure.ExitOK).prints(t, "following, ")
	b.interrupt().want(t, failure.ExitOK)
	command(t, f.s, status...).want(t, failure.ExitOK).prints(t, "stopped: the copy does not follow its source any more")
}

// The source is renamed while its copy follows it.
func TestFollowRenamed(t *testing.T) {
	f := startFollowed(t, 20)
	b := f.begin()
	for _, name := range []string{"c", "c2"} {
		if name != "c" {
			rename(t, f.db, "c", name)
			f.app.coll = f.db.Collection(name)
		}
		for range 10 {
			f.app.write()
		}
	}
	b.untilEqual(f.db.Collection("new"), f.app.want())
	b.interrupt().want(t, failure.ExitOK)
}

// If the source is dropped, or another collection takes its name, the copy stays as it is. If the copy is dropped, with
// documents to write and without, the command does not make another one. Both end the command, and the next one.
func TestFollowDropped(t *testing.T) {
	source, copied := "the source was dropped", "was renamed or dropped"
	for name, tt := range map[string]struct {
		says  string
		again int // the exit code of the next command
		gone  func(f *followed)
	}{
		"source": {source, failure.ExitUsage, func(f *followed) { drop(f, f.app.coll) }},
		"source, and created": {source, failure.ExitUsage, func(f *followed) {
			drop(f, f.app.coll)
			insert(f, f.app.coll, []any{bson.D{{Key: "_id", Value: 1}}})
		}},
		"copy":                {copied, failure.ExitFailed, func(f *followed) { drop(f, f.db.Collection("new")) }},
		"copy, with a change": {copied, failure.ExitFailed, func(f *followed) { drop(f, f.db.Collection("new")); f.app.insert() }},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFollowed(t, 20)
			want := f.app.want()
			b := f.begin()
			tt.gone(f)
			check := func() {
				t.Helper()
				if tt.says == source {
					equal(t, all(t, f.db.Collection("new")), want)
				} else if names, err := f.db.ListCollectionNames(t.Context(), bson.D{{Key: "name", Value: "new"}}); err != nil || len(names) != 0 {
					t.Error(names, err)
				}
			}
			b.wait().want(t, failure.ExitFailed).says(t, tt.says).lacks(t, "to continue")
			check()
			r := command(t, f.s, follow(f.dir)...).want(t, tt.again)
			if tt.says == copied {
				r.says(t, copied)
			}
			check()
		})
	}
}

// Two documents exchange their values of a unique index. Neither copy can be replaced before the
// other one.
func TestFollowExchange(t *testing.T) {
	s, db := started(t, mongotest.ChangeStreams)
	c := db.Collection("c")
	want := seed(t, c, 12, uuidrep.JavaLegacy, uuidrep.Standard)
	did(t)(c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "seat", Value: 1}}, Options: options.Index().SetUnique(true).SetSparse(true)}))
	set(t, c, 1, "seat", "a")
	set(t, c, 2, "seat", "b")
	dir := followPlan(t, s)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	set(t, c, 1, "seat", "none")
	set(t, c, 2, "seat", "a")
	set(t, c, 1, "seat", "b")
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	for i, seat := range map[int32]string{1: "b", 2: "a"} {
		var doc bson.D
		check(t, bson.Unmarshal(want[marshalValue(t, i).String()], &doc))
		note(want, append(doc, bson.E{Key: "seat", Value: seat}))
	}
	equal(t, all(t, db.Collection("new")), want)
}

// The comparison begins again if the changes behind the saved position are no longer available. Copies whose
// sources were deleted meanwhile are kept and reported: no event says that their sources existed.
func TestFollowExpired(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		f := startFollowed(t, 30)
		f.catchUp(f.s, failure.ExitOK)
		before, code := f.app.want(), failure.ExitOK
		if deleted {
			f.app.delete()
			code = failure.ExitIncomplete
		}
		for range 10 {
			f.app.insert()
			f.app.update()
			f.app.bypass()
		}
		var expired atomic.Bool
		p := startProxy(t, host(t, f.s), func(r request, pass func() []byte) []byte {
			if _, err := r.command.LookupErr("pipeline", "0", "$changeStream", "startAfter"); err == nil && expired.CompareAndSwap(false, true) {
				return r.fail(286, "Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
			}
			return pass()
		})
		r := f.catchUp(p, code).says(t, "the comparison begins again")
		const kept = "another program wrote it to the copy"
		if deleted {
			r.prints(t, kept)
		} else {
			r.lacks(t, kept)
		}
		got, want := all(t, f.db.Collection("new")), f.app.want()
		for id := range before {
			if _, ok := want[id]; !ok {
				delete(got, id) // it is kept
			}
		}
		equal(t, got, want)
	}
}

// A server without change streams is refused with the reason, before anything is written.
func TestFollowRefused(t *testing.T) {
	s, db := started(t)
	s.Refuse(t, mongotest.ChangeStreams)
	seed(t, db.Collection("c"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := followPlan(t, s)
	command(t, s, follow(dir)...).want(t, failure.ExitUsage).
		says(t, "--follow: a copy cannot follow its source on this server: the server has no change streams")
	if names, err := db.ListCollectionNames(t.Context(), bson.D{}); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "c*")); err != nil || len(names) != 0 {
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
	dir = prepared(t, s, "standard", convertFields("text", "", "_id"), intoNew("texts"))
	command(t, s, follow(dir)...).want(t, failure.ExitUsage).says(t, "text in _id")
}
