package servertest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A server that ends what exceeds its time limit gets half of a batch that did, and half of that. A
// document that takes too long alone is an error with its _id. Another server gets the same batch again.
func TestExpiredBatch(t *testing.T) {
	for _, tt := range []struct {
		enforces bool
		most     int // documents that the server writes within its limit
		code     int
		texts    []string
	}{
		{true, 3, failure.ExitOK, nil},
		{true, 0, failure.ExitFailed, []string{"within the time limit of a batch, 30s", "document with _id"}},
		{false, 3, failure.ExitUnreachable, []string{"operation exceeded time limit"}},
	} {
		for name, changes := range ways {
			t.Run(fmt.Sprint(name, " ", tt.enforces, " ", tt.most), func(t *testing.T) {
				c := newScene(t, 40, uuidrep.JavaLegacy, changes...)
				c.through(limited(t, c.s, tt.enforces, tt.most, "c", "c_standard")).run(tt.code, "apply --write --batch 40").says(t, tt.texts...)
				if tt.code == failure.ExitOK {
					c.converted()
				}
			})
		}
	}
}

// A document that another operation holds for longer than the limit of a batch is named, after smaller and smaller batches.
// The server was not lost, and the same command continues.
func TestHeldDocument(t *testing.T) {
	c := newScene(t, 40, uuidrep.JavaLegacy)
	p := limited(t, c.s, true, 1000)
	enforces := p.handle
	p.handle = func(r request, pass func() []byte) []byte {
		if writesTo("c")(r) && slices.ContainsFunc(r.sequence, func(u bsoncore.Document) bool { return bson.Raw(u).Lookup("q", "_id", "$eq").Int32() == 7 }) {
			return r.fail(50, "operation exceeded time limit")
		}
		return enforces(r, pass)
	}
	c.through(p).run(failure.ExitFailed, "apply --write --batch 40").says(t, `document with _id {"$numberInt":"7"}`,
		"within the time limit of a batch, 30s: a transaction or another operation holds it", "to continue: ").lacks(t, "cannot be reached", "was lost")
	c.ok("apply --write")
	c.converted()
}

// limited returns a proxy of a server that ends updates, insertions and deletions of more than most
// documents of the collections at their time limit. Unless it enforces limits, it does not know the
// question whether it does.
func limited(t *testing.T, s target, enforces bool, most int, names ...string) *proxy {
	const expired = 50 // MaxTimeMSExpired
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		limit, _ := r.command.Lookup("maxTimeMS").AsInt64OK()
		switch {
		case r.name() == "buildInfo":
			return r.ok(bson.E{Key: "version", Value: "8.0.0"}) // FerretDB 1 is not asked
		case r.name() == "update" && limit == 1 && enforces:
			return r.fail(expired, "refused")
		case r.name() == "update" && limit == 1:
			return r.fail(168, "refused") // InvalidPipelineOperator
		case writesTo(names...)(r) && r.documents > most:
			return r.refuse(expired, "operation exceeded time limit")
		}
		return pass()
	})
}

// What repairs a copy, restores a conversion or exchanges a copy halves its batches, too.
func TestExpiredRepair(t *testing.T) {
	const most = 3
	change := func(t *testing.T, coll *mongo.Collection) {
		if _, err := coll.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(t *testing.T, coll *mongo.Collection) {
		if n := len(all(t, coll)); n != 40 {
			t.Errorf("%d documents", n)
		}
	}
	t.Run("copy", func(t *testing.T) {
		c := newScene(t, 40, uuidrep.JavaLegacy, ways["copy"]...)
		// A run ends after it has copied, and before it has compared.
		c.through(lostAfter(t, c.s, 0, func(r request) bool {
			_, err := r.command.LookupErr("filter", "_id", "$in")
			return asks("find", "c_standard")(r) && err == nil
		})).run(failure.ExitUnreachable, "apply --write --batch 40")
		change(t, c.coll)
		c.through(limited(t, c.s, true, most, "c_standard")).ok("apply --write --batch 40")
		c.ok("verify")
		count(t, c.result)
	})
	t.Run("undo", func(t *testing.T) {
		c := newScene(t, 40, uuidrep.JavaLegacy)
		c.ok("apply --write")
		c.through(limited(t, c.s, true, most, "c")).ok("undo --write --batch 40")
		c.unchanged()
	})
	t.Run("cutover", func(t *testing.T) {
		c := startCut(t, 40, "a")
		change(t, c.db.Collection("a"))
		want := all(t, c.db.Collection("a"))
		c.cutover(limited(t, c.s, true, most, "a_new"), failure.ExitOK, "--write")
		equal(t, all(t, c.db.Collection("a")), converted(t, want))
		for i := range 10 {
			c.delete("a", i, uuidrep.Standard)
		}
		want = all(t, c.db.Collection("a"))
		command(t, limited(t, c.s, true, most, "a_before_cutover"), c.line("undo", "--write")...).want(t, failure.ExitOK)
		equal(t, converted(t, all(t, c.db.Collection("a"))), want)
	})
}

// conversations are commands that read or write data, or say what there is.
var conversations = []string{"find", "insert", "update", "getMore", "aggregate", "create", "createIndexes", "count", "listCollections", "listIndexes"}

// troubled starts a proxy that treats the nth command about documents, the (2n+1)st, the (3n+3)rd,
// and so on in one of three ways, one after the other: it loses the command, it loses the answer,
// and it answers that the server is no longer the primary. The commands between them pass: one more
// each time, so that no work of several commands is interrupted at every attempt. The second batch of
// updates is treated so, too, because the driver tries all other commands again itself.
func troubled(t *testing.T, s *mongotest.Server, first int) (*proxy, *int) {
	var mu sync.Mutex
	n, troubles, batches := 0, 0, 0
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if !slices.Contains(conversations, r.name()) {
			return pass()
		}
		mu.Lock()
		n++
		if r.name() == "update" && r.documents > 1 {
			batches++
		}
		trouble := n == first+troubles || batches == 2
		if trouble {
			n = 0
			troubles++
			if batches == 2 {
				batches++ // once
			}
		}
		way := troubles % 3
		mu.Unlock()
		switch {
		case !trouble:
			return pass()
		case way == 0:
			return nil
		case way == 1:
			pass()
			return nil
		}
		return r.fail(10107, "not primary") // NotWritablePrimary
	})
	return p, &troubles
}

// losing starts a proxy that loses the first commands of each name, more than the driver tries again,
// and later some queries in a row.
func losing(t *testing.T, s *mongotest.Server) *proxy {
	var mu sync.Mutex
	n := make(map[string]int)
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if !slices.Contains([]string{"find", "count", "listCollections"}, r.name()) {
			return pass()
		}
		mu.Lock()
		n[r.name()]++
		i := n[r.name()]
		mu.Unlock()
		if i <= 3 || r.name() == "find" && i >= 6 && i <= 8 {
			return nil
		}
		return pass()
	})
}

// Network cuts and step-downs at any command, also after an update whose answer is lost, are ridden
// out: in place, into a new collection, and in an undo.
func TestRiddenOut(t *testing.T) {
	for name, w := range works {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newScene(t, 40, w.from, w.changes...)
			p, troubles := troubled(t, c.s, 7)
			const flags = " --write --batch 5 --retry-for 1m --batch-timeout 2s"
			r := c.through(p).run(failure.ExitOK, "apply"+flags).prints(t, "120")
			c.converted()
			c.through(losing(t, c.s)).run(failure.ExitOK, "verify --retry-for 1m").says(t, "trying again")
			hello, err := c.db.RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			// The driver itself tries many commands again on a replica set.
			_, err = hello.LookupErr("setName")
			if *troubles < 3 || err != nil && c.result == c.coll && !strings.Contains(r.stderr, "trying again") {
				t.Errorf("%d troubles: %s", *troubles, r.stderr)
			}
			if c.result == c.coll {
				c.through(p).run(failure.ExitOK, "undo"+flags).prints(t, "40")
				c.unchanged()
			}
		})
	}
}

// A plan is made and applied through the same troubles.
func TestPlanRiddenOut(t *testing.T) {
	s, db := started(t)
	want := shop(t, db, 20)
	p, _ := troubled(t, s, 9)
	dir := filepath.Join(t.TempDir(), "shop.d")
	command(t, p, "plan", dir, "--db", s.Database(), "--retry-for", "1m").want(t, failure.ExitOK)
	edit(t, filepath.Join(dir, "plan.yaml"), mixed...)
	command(t, p, "apply", dir, "--batch", "5", "--write", "--retry-for", "1m").want(t, failure.ExitOK)
	whole(t, db, want)
	command(t, losing(t, s), "verify", dir, "--retry-for", "1m").want(t, failure.ExitOK)
}

// A server that loses every batch gets it again after a pause, and not from the driver, which would
// send it without a pause until the deadline of the batch.
func TestNoStormOfRetries(t *testing.T) {
	c := newScene(t, 12, uuidrep.JavaLegacy)
	var updates, reads atomic.Int32
	p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		switch {
		case r.greets(): // a server with retryable writes
			return r.router(21, bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)})
		case writesTo("c")(r):
			updates.Add(1)
			return nil
		case updates.Load() > 0 && r.name() == "find":
			reads.Add(1)
			return nil
		}
		return pass()
	})
	c.through(p).run(failure.ExitUnreachable, "apply --write --retry-for 1s")
	c.unchanged()
	// The pauses double from a quarter of a second.
	if u, r := updates.Load(), reads.Load(); u == 0 || u > 5 || r > 20 {
		t.Errorf("%d updates, %d reads", u, r)
	}
}

// A run whose document was inserted and whose answer was lost has written nothing: the next attempt
// does not wait until the last writes of that run have ended.
func TestLostBeginning(t *testing.T) {
	c := newScene(t, 12, uuidrep.JavaLegacy)
	c.ok("apply --write")
	var way, lost atomic.Int32
	p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		switch {
		case r.on() != record.Name:
		case way.Load() == 0 && r.name() == "insert": // the answer
			if lost.Add(1) == 1 {
				pass()
				return nil
			}
		case way.Load() == 1 && r.name() == "insert":
			lost.CompareAndSwap(0, 1)
		case way.Load() == 1 && lost.Load() > 0 && lost.Add(1) < 6: // what follows the insert, and the record of the end
			return nil
		}
		return pass()
	})
	for i := range 2 {
		c.ok("apply --write")
		way.Store(int32(i))
		lost.Store(0)
		c.through(p).run(failure.ExitOK, "undo --write --retry-for 1m --batch-timeout 2m").lacks(t, "waiting ")
		if lost.Load() == 0 {
			t.Errorf("way %d: nothing is lost", i)
		}
		c.unchanged()
	}
}
