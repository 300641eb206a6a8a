package servertest

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// troubled starts a proxy that treats the nth command about documents, the (2n+1)st, the (3n+3)rd,
// and so on in one of three ways, one after the other: it loses the command, it loses the answer,
// and it answers that the server is no longer the primary. The commands between them pass: one more
// each time, so that no work of several commands is interrupted at every attempt. The second batch of
// updates is treated so, too, because the driver tries all other commands again itself.
func troubled(t *testing.T, s *mongotest.Server, first int) (*proxy, *int) {
	var mu sync.Mutex
	n, troubles, batches := 0, 0, 0
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "find", "insert", "update", "getMore", "aggregate", "create", "createIndexes", "count", "listCollections", "listIndexes":
		default:
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
		return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(10107)}, {Key: "codeName", Value: "NotWritablePrimary"}, {Key: "errmsg", Value: "not primary"}})
	})
	return p, &troubles
}

// losing starts a proxy that loses the first commands of each name, more than the driver tries again,
// and later some queries in a row.
func losing(t *testing.T, s *mongotest.Server) *proxy {
	var mu sync.Mutex
	n := make(map[string]int)
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "find", "count", "listCollections":
		default:
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
// out: in place, within one subtype, into a new collection, and in an undo.
func TestRiddenOut(t *testing.T) {
	for _, tt := range []struct {
		name string
		to   uuidrep.Representation
		into bool
	}{{"to standard", uuidrep.Standard, false}, {"same subtype", uuidrep.CSharpLegacy, false}, {"into a new collection", uuidrep.Standard, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mongotest.Start(t)
			db := connect(t, s)
			want := seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, tt.to)
			before := all(t, db.Collection("c"))
			p, troubles := troubled(t, s, 7)
			target, dir := "c", prepared(t, s, tt.to.String())
			if tt.into {
				target = "c_standard"
				changePlan(t, dir, intoNew("c"))
			}
			args := []string{"apply", dir, "--write", "--batch", "5", "--retry-for", "1m", "--batch-timeout", "2s"}
			r := command(t, p, args...).want(t, failure.ExitOK)
			equal(t, all(t, db.Collection(target)), want)
			if r := command(t, losing(t, s), "verify", dir, "--retry-for", "1m").want(t, failure.ExitOK); !strings.Contains(r.stderr, "trying again") {
				t.Error(r.stderr)
			}
			hello, err := db.RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			// The driver itself tries many commands again on a replica set.
			_, err = hello.LookupErr("setName")
			if *troubles < 3 || err != nil && !strings.Contains(r.stderr, "trying again") {
				t.Errorf("%d troubles: %s", *troubles, r.stderr)
			}
			if !tt.into {
				if !strings.Contains(r.stdout, "120") {
					t.Error(r.stdout)
				}
				r := command(t, p, "undo", dir, "--write", "--batch", "5", "--retry-for", "1m", "--batch-timeout", "2s").want(t, failure.ExitOK)
				equal(t, all(t, db.Collection("c")), before)
				if !strings.Contains(r.stdout, "40") {
					t.Error(r.stdout)
				}
			}
		})
	}
}

// A server that loses every batch gets it again after a pause, and not from the driver, which would
// send it without a pause until the deadline of the batch.
func TestNoStormOfRetries(t *testing.T) {
	s := mongotest.Start(t)
	c := connect(t, s).Collection("c")
	seed(t, c, 10, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, c)
	dir := filepath.Dir(planned(t, s))
	var updates, reads atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch {
		case strings.EqualFold(r.name(), "hello"), strings.EqualFold(r.name(), "isMaster"): // a server with retryable writes
			return r.reply(bson.D{{Key: "ismaster", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "maxBsonObjectSize", Value: int32(16 << 20)}, {Key: "maxMessageSizeBytes", Value: int32(48_000_000)},
				{Key: "maxWriteBatchSize", Value: int32(100_000)}, {Key: "logicalSessionTimeoutMinutes", Value: int32(30)}, {Key: "minWireVersion", Value: int32(0)}, {Key: "maxWireVersion", Value: int32(21)}, {Key: "ok", Value: 1.0}})
		case r.name() == "update" && r.documents == 10:
			updates.Add(1)
			return nil
		case updates.Load() > 0 && r.name() == "find":
			reads.Add(1)
			return nil
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write", "--retry-for", "1s").want(t, failure.ExitUnreachable)
	equal(t, all(t, c), before)
	// The pauses double from a quarter of a second.
	if u, r := updates.Load(), reads.Load(); u == 0 || u > 5 || r > 20 {
		t.Errorf("%d updates, %d reads", u, r)
	}
}

// A plan is made and applied through the same troubles.
func TestPlanRiddenOut(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 20)
	p, _ := troubled(t, s, 9)
	dir := filepath.Join(t.TempDir(), "shop.d")
	command(t, p, "plan", dir, "--db", s.Database(), "--retry-for", "1m").want(t, failure.ExitOK)
	edit(t, filepath.Join(dir, "plan.yaml"), mixed...)
	command(t, p, "apply", dir, "--batch", "5", "--write", "--retry-for", "1m").want(t, failure.ExitOK)
	whole(t, db, want)
	command(t, losing(t, s), "verify", dir, "--retry-for", "1m").want(t, failure.ExitOK)
}

// A run whose document was inserted and whose answer was lost has written nothing: the next attempt
// does not wait until the last writes of that run have ended.
func TestLostBeginning(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 10, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, coll)
	dir := filepath.Dir(planned(t, s))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	var way, lost atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		name, _ := r.command.Lookup(r.name()).StringValueOK()
		switch {
		case name != "bsonids.migrations":
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
		way.Store(int32(i))
		lost.Store(0)
		r := command(t, p, "undo", dir, "--write", "--retry-for", "1m", "--batch-timeout", "2m").want(t, failure.ExitOK)
		if lost.Load() == 0 || strings.Contains(r.stderr, "waiting ") {
			t.Errorf("way %d, %d commands: %s", i, lost.Load(), r.stderr)
		}
		equal(t, all(t, coll), before)
	}
}
