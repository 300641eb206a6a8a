package servertest

import (
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// atFence counts the documents of the collections that a cutover reads while the server refuses writes,
// up to the first rename. before is called before the fence is set, and after when it is.
type atFence struct {
	mu            sync.Mutex
	fences, reads int
	renamed       bool
}

func (c *cut) atFence(f *atFence, before, after func()) target {
	return startProxy(c, host(c, c.s), func(r request, pass func() []byte) []byte {
		name := r.name()
		if _, err := r.command.LookupErr("validator", "$nor"); name == "collMod" && err != nil {
			name = "" // it asks whether the server knows the command
		}
		switch name {
		case "collMod":
			if f.fences == 0 && before != nil {
				before()
			}
			answer := pass()
			f.mu.Lock()
			f.fences++
			f.mu.Unlock()
			if f.fences == 2*len(c.names) && after != nil {
				after()
			}
			return answer
		case "renameCollection":
			f.mu.Lock()
			f.renamed = true
			f.mu.Unlock()
		case "find", "aggregate", "count":
			answer := pass()
			f.mu.Lock()
			defer f.mu.Unlock()
			coll, ok := r.command.Index(0).Value().StringValueOK()
			if reply, read := parseRequest(answer); read && ok && !strings.HasPrefix(coll, "bsonids.") && f.fences > 0 && !f.renamed {
				batch, _ := reply.command.Lookup("cursor", "firstBatch").ArrayOK()
				values, _ := batch.Values()
				f.reads += max(1, len(values))
			}
			return answer
		}
		return pass()
	})
}

// The documents that are read while the server refuses writes depend on what has changed, and not on the
// number of documents. What other programs write to the copy is found too, before and behind the fence.
func TestCutoverReadsBehindFence(t *testing.T) {
	var reads []int
	for _, documents := range []int{60, 300} {
		c := startCut(t, documents, "a")
		c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
		change := func(i int) func() {
			return func() {
				c.delete("a", i, uuidrep.JavaLegacy)
				c.set("a", i+1, uuidrep.JavaLegacy, "n", int32(5))
				c.put("a", cutDoc(5000+i, 1))
				c.set("a", i+2, uuidrep.JavaLegacy, "n", int32(9))
				c.set("a", i+2, uuidrep.JavaLegacy, "n", int32(0)) // and back
				c.set("a_new", i+3, uuidrep.Standard, "n", int32(77))
				c.delete("a_new", i+4, uuidrep.Standard)
				// One that the conversion could make, and one that it could not.
				c.put("a_new", append(cutBy(6000+i, uuidrep.Standard), bson.E{Key: "n", Value: int32(3)}))
				c.put("a_new", append(cutBy(7000+i, uuidrep.JavaLegacy), bson.E{Key: "n", Value: int32(3)}))
			}
		}
		var f atFence
		r := c.cutover(c.atFence(&f, change(10), change(20)), failure.ExitOK, "--write")
		if r.State != "switched" || r.ComparedAllBehindFence != "" || r.Collections[0].Documents != int64(documents) {
			t.Errorf("%+v", r)
		}
		if r.RefusedMilliseconds < r.Collections[0].GapMilliseconds {
			t.Errorf("writes were refused for %d ms, and the gap was %d ms", r.RefusedMilliseconds, r.Collections[0].GapMilliseconds)
		}
		equal(t, c.docs("a"), converted(t, c.docs("a_before_cutover")))
		t.Logf("%d documents: %d reads behind the fence, %d compared", documents, f.reads, r.Collections[0].DocumentsComparedBehindFence)
		reads = append(reads, f.reads)
	}
	// 16 changes, each of which may be read in both collections, and again because it was repaired.
	const changes = 16
	if reads[0] < changes || reads[1] > 6*changes {
		t.Errorf("%d and %d documents were read", reads[0], reads[1])
	}
}

// If a transaction or another operation holds a collection, the cutover says so, and writes are not refused any longer. The
// server was not lost.
func TestCutoverHeld(t *testing.T) {
	c := startCut(t, 10, "a", "b")
	settings := c.settingsOf("a")
	asked := 0
	p := limited(t, c.s, true, 1000)
	enforces := p.handle
	p.handle = func(r request, pass func() []byte) []byte {
		if _, err := r.command.LookupErr("validator", "$nor"); err == nil && asks("collMod", "b")(r) {
			asked++
			if limit, _ := r.command.Lookup("maxTimeMS").AsInt64OK(); limit > 1000 || limit == 0 {
				t.Errorf("the limit is %d ms", limit)
			}
			return r.fail(50, "operation exceeded time limit")
		}
		return enforces(r, pass)
	}
	r := command(t, p, c.line("cutover", "--write", "--batch-timeout", "4s", "--retry-for", "0s")...).want(t, failure.ExitFailed)
	r.says(t, "a transaction or another operation holds "+c.db.Name()+".b", "was rolled back").lacks(t, "cannot be reached", "was lost")
	if asked != 2 {
		t.Errorf("the server was asked %d times", asked)
	}
	c.wantSettings(settings, "a", "b", "a_new", "b_new")
	c.wantCollections("a a_new b b_new")
	c.cutover(c.s, failure.ExitOK, "--write").is(t, "switched")
}

// On a router, a read of all shards that must see what was written comes before what the change stream is asked for, because a
// shard without writes would hold up the stream for ten seconds. Other servers are not asked.
func TestCutoverNudgesShards(t *testing.T) {
	for _, router := range []bool{false, true} {
		c := startCut(t, 20, "a")
		c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
		var mu sync.Mutex
		nudges, vain := 0, 0
		written := make(map[string]bson.Timestamp) // by the session
		var session string
		var seen bson.Timestamp
		p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			if db, _ := r.command.Lookup("$db").StringValueOK(); r.greets() && db == c.db.Name() && router {
				return r.router(21)
			}
			answer := pass()
			mu.Lock()
			defer mu.Unlock()
			_, streams := r.command.Lookup("pipeline", "0", "$changeStream").DocumentOK()
			s, i, after := r.command.Lookup("readConcern", "afterClusterTime").TimestampOK()
			of, _ := r.command.Lookup("collection").StringValueOK()
			switch reply, ok := parseRequest(answer); {
			case streams && after:
				nudges++
				seen, session = bson.Timestamp{T: s, I: i}, r.command.Lookup("lsid").String()
			case r.name() == "update" && r.on() == record.Name && ok:
				if s, i, ok := reply.command.Lookup("operationTime").TimestampOK(); ok {
					written[r.command.Lookup("lsid").String()] = bson.Timestamp{T: s, I: i}
				}
			case r.name() == "getMore" && of == "$cmd.aggregate" && seen.Before(written[session]):
				vain++
			}
			return answer
		})
		c.cutover(p, failure.ExitOK, "--write").is(t, "switched")
		equal(t, c.docs("a"), converted(t, c.docs("a_before_cutover")))
		if (nudges > 0) != router || vain > 0 {
			t.Errorf("router %v: %d reads of all shards, and %d of the stream without one before it", router, nudges, vain)
		}
	}
}

// Two documents that would become one are found, if they are there before any write is refused, and if a service
// makes them while the documents are compared or behind the fence. Without one of them, the cutover is carried out.
func TestCutoverSameID(t *testing.T) {
	c := startCut(t, 1100, "a") // the two are not read at once
	settings := c.settingsOf("a")
	becomesEqual := append(cutBy(3, uuidrep.Standard), bson.E{Key: "customer", Value: in(cutID(3), uuidrep.JavaLegacy)}, bson.E{Key: "n", Value: int32(0)})
	becomesOther := append(cutBy(4, uuidrep.Standard), bson.E{Key: "n", Value: int32(8)})
	for _, tt := range []struct {
		when string
		twin bson.D
	}{{"before", becomesEqual}, {"before", becomesOther}, {"compared", becomesEqual}, {"fenced", becomesOther}} {
		t.Run(tt.when, func(t *testing.T) {
			twin := func() { c.put("a", tt.twin) }
			var f atFence
			s := c.atFence(&f, nil, nil)
			switch tt.when {
			case "before":
				twin()
			case "compared": // without a change stream, it would be found behind the fence, too
				c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
				s = c.atFence(&f, twin, nil)
			case "fenced":
				c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
				s = c.atFence(&f, nil, twin)
			}
			r := command(t, s, c.line("cutover", "--write")...).want(t, failure.ExitUsage).says(t, "two documents have the same _id after the conversion")
			if tt.when != "before" {
				r.says(t, "was rolled back")
			} else if f.fences > 0 {
				t.Errorf("%d fences", f.fences)
			}
			c.wantSettings(settings, "a", "a_new")
			did(c)(c.db.Collection("a").DeleteOne(t.Context(), tt.twin[:1]))
		})
	}
	want := converted(t, c.docs("a"))
	c.cutover(c.s, failure.ExitOK, "--write")
	equal(t, c.docs("a"), want)
}

// Documents that exchanged a unique value since they were copied are brought to agree.
func TestCutoverExchangedValues(t *testing.T) {
	c := startCut(t, 0)
	did(c)(c.db.Collection("u").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}, Options: options.Index().SetUnique(true)}))
	for i := range 20 {
		c.put("u", cutDoc(i, i))
	}
	c.copy("u")
	exchange := func(a, b int) {
		for _, step := range [][2]int{{a, 1000}, {b, a}, {a, b}} {
			c.set("u", step[0], uuidrep.JavaLegacy, "n", int32(step[1]))
		}
	}
	exchange(1, 15)
	var f atFence
	c.cutover(c.atFence(&f, func() { exchange(2, 16) }, func() { exchange(3, 17) }), failure.ExitOK, "--write")
	equal(t, c.docs("u"), converted(t, c.docs("u_before_cutover")))
	if n := c.docs("u")[marshalValue(t, in(cutID(1), uuidrep.Standard)).String()].Lookup("n").Int32(); n != 15 {
		t.Errorf("n is %d", n)
	}
}

// If the change stream has expired when a cutover that was killed goes on, everything is compared:
// before the fence while services write, or behind it. The command says so.
func TestCutoverStreamLost(t *testing.T) {
	for _, at := range []string{"before the fence", "behind the fence"} {
		t.Run(at, func(t *testing.T) {
			c := startCut(t, 30, "a", "b")
			c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
			var mu sync.Mutex
			fenced, expired := false, 0
			p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
				mu.Lock()
				if _, err := r.command.LookupErr("validator", "$nor"); r.name() == "collMod" && err == nil {
					fenced = true
				}
				of, _ := r.command.Lookup("collection").StringValueOK()
				_, resumes := r.command.Lookup("pipeline", "0", "$changeStream", "startAfter").DocumentOK()
				now := expired == 0 && (at == "behind the fence" && fenced && r.name() == "getMore" && of == "$cmd.aggregate" || at == "before the fence" && !fenced && resumes)
				if now {
					expired++
				}
				mu.Unlock()
				if !now {
					return pass()
				}
				c.put("a", cutDoc(900, 1))
				return r.fail(286, "resume point may no longer be in the oplog")
			})
			want := map[string]string{"before the fence": "the comparison begins again", "behind the fence": "all documents are compared behind the fence"}[at]
			command(t, p, c.line("cutover", "--write")...).want(t, failure.ExitOK).says(t, want, "may no longer be in the oplog")
			if docs := c.docs("a"); expired == 0 || len(docs) != 31 {
				t.Errorf("expired %d times, %d documents", expired, len(docs))
			}
			equal(t, c.docs("a"), converted(t, c.docs("a_before_cutover")))
		})
	}
}

// A cutover that is killed while it compares the documents has fenced nothing. The same command goes on,
// or gives it up. If the old collection is gone, the copy keeps its documents.
func TestCutoverKilledBeforeFence(t *testing.T) {
	for _, then := range []string{"continued", "rolled back", "dropped", "another index"} {
		t.Run(then, func(t *testing.T) {
			c := startCut(t, 40, "a", "b")
			c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
			settings := c.settingsOf("a")
			killed, out := c.killed(t, func(r request) bool {
				name, _ := r.command.Lookup("find").StringValueOK()
				_, err := r.command.LookupErr("filter", "_id", "$in")
				return name == "b_new" && err == nil
			}, false, c.line("cutover", "--write")...)
			if state := statusCutovers(t, c.s, "--db", c.db.Name()); !killed || state != "comparing" {
				t.Fatalf("killed in the state %q: %s", state, out)
			}
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			c.put("a", cutDoc(800, 1)) // a collection that was compared
			dir := c.dir
			command(t, c.s, "apply", c.planFrom("a", "a_again", "javaLegacy"), "--write").want(t, failure.ExitUsage).says(t, "is compared by a cutover of a, b")
			c.dir, c.names = dir, []string{"a", "b"}
			want := converted(t, c.docs("a"))
			switch then {
			case "continued":
				c.cutover(c.s, failure.ExitOK, "--write").is(t, "switched")
				equal(t, c.docs("a"), want)
				return
			case "rolled back":
				if r := c.cutover(c.s, failure.ExitOK, "--roll-back", "--write"); r.State != "rolled back" || r.RefusedMilliseconds != 0 {
					t.Errorf("%+v", r)
				}
			case "dropped":
				drop(t, c.db.Collection("b"))
				c.put("b", cutDoc(1, 1)) // a service creates it again
				c.run(failure.ExitFailed, "cutover", "--write").says(t, "was rolled back")
				if n := len(c.docs("b_new")); n != 40 {
					t.Errorf("the copy has %d documents", n)
				}
				return
			case "another index":
				did(c)(c.db.Collection("a").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}))
				c.run(failure.ExitUsage, "cutover", "--write").says(t, "has indexes that a_new does not have: n_1", "was rolled back")
			}
			c.wantSettings(settings, "a", "b", "a_new", "b_new")
			if state := statusCutovers(t, c.s, "--db", c.db.Name()); state != "" {
				t.Errorf("the state is %q", state)
			}
		})
	}
}

// A cutover that is killed while it asks with a collection of its own whether the server keeps UUIDs. The next
// one leaves no other collections than the old and the new one.
func TestCutoverProbeKilled(t *testing.T) {
	for _, tt := range []struct {
		command string
		after   bool
	}{{"create", true}, {"renameCollection", true}, {"drop", false}} {
		t.Run(tt.command, func(t *testing.T) {
			c := startCut(t, 5, "a")
			killed, _ := c.killed(t, func(r request) bool {
				name, ok := r.command.Lookup(tt.command).StringValueOK()
				return ok && strings.Contains(name, "bsonids.probe.")
			}, tt.after, c.line("cutover", "--write")...)
			if !killed {
				t.Skip("this server reports no UUIDs of collections, or keeps them: nothing is asked")
			}
			if got := c.collections(); !strings.Contains(got, "bsonids.probe.") {
				t.Fatalf("it was killed at another moment: %s", got)
			}
			c.cutover(c.s, failure.ExitOK, "--write")
			c.wantCollections("a a_before_cutover")
		})
	}
}

// A cutover that was killed behind the fence, before it has renamed a collection, lets services write while it reads all _ids
// again. What is read behind the fence does not depend on the number of documents then, either.
func TestCutoverKilledBehindFence(t *testing.T) {
	var reads []int
	for _, documents := range []int{60, 300} {
		c := startCut(t, documents, "a")
		c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
		settings := c.settingsOf("a")
		fences := 0
		killed, out := c.killed(t, func(r request) bool {
			if _, err := r.command.LookupErr("validator", "$nor"); err == nil {
				fences++
			}
			return fences == 2 && r.name() == "ping"
		}, false, c.line("cutover", "--write")...)
		if state := statusCutovers(t, c.s, "--db", c.db.Name()); !killed || state != "fencing" {
			t.Fatalf("killed in the state %q: %s", state, out)
		}
		c.delete("a", 10, uuidrep.JavaLegacy) // deletions are not validated
		c.delete("a_new", 11, uuidrep.Standard)

		var mu sync.Mutex
		fenced, renamed, behind, before := true, false, 0, 0
		p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			answer := pass()
			mu.Lock()
			defer mu.Unlock()
			switch r.name() {
			case "collMod":
				if _, err := r.command.LookupErr("validator", "$nor"); r.on() == "a" {
					fenced = err == nil
				}
			case "renameCollection":
				renamed = true
			case "find":
				reply, ok := parseRequest(answer)
				if !ok || renamed || r.on() != "a" && r.on() != "a_new" {
					break
				}
				batch, _ := reply.command.Lookup("cursor", "firstBatch").ArrayOK()
				values, _ := batch.Values()
				if fenced {
					behind += len(values)
					break
				}
				if before == 0 {
					c.wantSettings(settings, "a")
					c.put("a", cutDoc(5000, 1))
					c.delete("a", 12, uuidrep.JavaLegacy)
				}
				before += len(values)
			}
			return answer
		})
		r := c.cutover(p, failure.ExitOK, "--write").is(t, "switched")
		if r.ComparedAllBehindFence != "" || before < documents {
			t.Errorf("%d documents read before the fence: %+v", before, r)
		}
		docs := c.docs("a")
		equal(t, docs, converted(t, c.docs("a_before_cutover")))
		if len(docs) != documents-1 {
			t.Errorf("%d documents, want %d", len(docs), documents-1)
		}
		t.Logf("%d documents: %d read before the fence, %d behind it", documents, before, behind)
		reads = append(reads, behind)
		c.release()
		c.wantSettings(settings, "a")
	}
	// What a service and this run have written may be compared behind the fence.
	if reads[1] > 30 {
		t.Errorf("%d and %d documents were read", reads[0], reads[1])
	}
}
