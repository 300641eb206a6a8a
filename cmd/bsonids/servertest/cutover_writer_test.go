package servertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

var cutoverKills = flag.Int("cutover-kills", 4, "number of times that a cutover is killed")

// writer writes to the collections all the time, as a service that does not know of the cutover: it
// inserts, updates and deletes, and does the first two in spite of the validator. It knows what each
// of its operations has changed.
type writer struct {
	c     *cut
	doc   func(i, n int) bson.D          // a document that is inserted
	truth map[string]map[string]bson.Raw // by collection and _id
	end   func()                         // stops the writers
	// both is set if the services find their documents in both representations, as those do that are ready for the conversion.
	both atomic.Bool
	// ddl is held while a collection is renamed or its validator changes. MongoDB does so as one step;
	// SecantusDB loses writes that come in the middle, or stops.
	ddl sync.RWMutex

	mu     sync.Mutex
	counts map[string]int // operations by kind and outcome
}

// write starts a writer for each collection, which inserts documents of the old representation.
func (c *cut) write() *writer { return c.writing(cutDoc) }

func (c *cut) writing(doc func(i, n int) bson.D) *writer {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	w := &writer{c: c, doc: doc, truth: make(map[string]map[string]bson.Raw), counts: make(map[string]int)}
	w.end = func() { cancel(); done.Wait() }
	for i, name := range c.names {
		w.truth[name] = c.docs(name)
		done.Go(func() { w.run(ctx, c.db.Collection(name), i) })
	}
	c.Cleanup(w.end)
	return w
}

// proxy returns the server as the command reaches it: renames wait for the operations of the writers.
func (w *writer) proxy() target {
	return startProxy(w.c, host(w.c, w.c.s), func(r request, pass func() []byte) []byte {
		if r.rename() == "" && r.name() != "collMod" {
			return pass()
		}
		w.ddl.Lock()
		defer w.ddl.Unlock()
		return pass()
	})
}

// written returns how many operations changed a document so far.
func (w *writer) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for what, k := range w.counts {
		if strings.HasSuffix(what, "ok") {
			n += k
		}
	}
	return n
}

// run is one writer. It alone writes to the collection.
func (w *writer) run(ctx context.Context, coll *mongo.Collection, seed int) {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	for n := 1; ctx.Err() == nil && w.one(coll, random.IntN(5), n); n++ {
		time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond)
	}
}

// one tries one operation. It reports false if it failed for an unexpected reason.
func (w *writer) one(coll *mongo.Collection, kind, n int) bool {
	w.ddl.RLock()
	defer w.ddl.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	docs := w.truth[coll.Name()]
	var id string // of a document at random
	for id = range docs {
		break
	}
	find := func() bson.D {
		ids := bson.A{docs[id].Lookup("_id")}
		if w.both.Load() {
			u, err := uuidOf(docs[id].Lookup("_id"))
			check(w.c, err)
			ids = append(ids, in(u, uuidrep.Standard))
		}
		return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
	}
	what := []string{"delete", "insert", "update", "insert bypassing", "update bypassing"}[kind]
	outcome, bypass := "ok", kind > 2
	var err error
	switch {
	case strings.HasPrefix(what, "insert"):
		doc := marshal(w.c, w.doc(1_000_000+n, n))
		if _, err = coll.InsertOne(ctx, doc, options.InsertOne().SetBypassDocumentValidation(bypass)); err == nil {
			docs[doc.Lookup("_id").String()] = doc
		}
	case id == "":
		return true
	case what == "delete":
		var res *mongo.DeleteResult
		if res, err = coll.DeleteOne(ctx, find()); err == nil && res.DeletedCount == 1 {
			delete(docs, id)
		} else {
			outcome = "matched nothing"
		}
	default:
		fresh := bson.D{{Key: "_id", Value: docs[id].Lookup("_id")}, {Key: "customer", Value: docs[id].Lookup("customer")}, {Key: "n", Value: int32(n)}}
		var res *mongo.UpdateResult
		res, err = coll.UpdateOne(ctx, find(), bson.D{{Key: "$set", Value: fresh[2:]}}, options.UpdateOne().SetBypassDocumentValidation(bypass))
		if err == nil && res.ModifiedCount == 1 {
			docs[id] = marshal(w.c, fresh)
		} else {
			outcome = "matched nothing"
		}
	}
	var se mongo.ServerError
	if errors.As(err, &se) && se.HasErrorCode(121) {
		outcome, err = "refused", nil
	}
	if err != nil {
		w.c.Errorf("%s: %v", what, err)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what+" "+outcome]++
	return true
}

// check fails the test unless the collections have exactly what was written, in one representation or
// the other.
func (w *writer) check() {
	w.c.Helper()
	w.end()
	w.c.Logf("%v", w.counts)
	for _, name := range w.c.names {
		equal(w.c, converted(w.c, w.c.docs(name)), converted(w.c, w.truth[name]))
	}
}

// until waits until the writers have changed n more documents.
func (w *writer) until(n int) {
	w.c.Helper()
	for was, began := w.written(), time.Now(); w.written() < was+n; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			w.c.Fatalf("the writers have stopped: %v", w.counts)
		}
	}
}

// Nothing of what a service writes during a cutover is lost.
func TestCutoverWithWriter(t *testing.T) {
	c := startCut(t, 150, "a", "b")
	settings := c.settingsOf("a")
	w := c.write()
	w.until(20)
	c.cutover(w.proxy(), -1, "--write").is(t, "switched")
	w.until(10)
	w.check()
	c.release()
	c.wantSettings(settings, "a", "b")
}

// killed is the exit code of a process that was killed.
const killed = -1

// runFor runs the command in its own process, and kills it after the time.
func runFor(t *testing.T, s target, after time.Duration, args ...string) result {
	t.Helper()
	cmd, out := start(t, s, args...)
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	r := result{code: cmd.ProcessState.ExitCode(), stdout: out.String()}
	if r.code != killed && r.code != failure.ExitOK && r.code != failure.ExitIncomplete { // documents conflict, or could not be brought back
		t.Fatalf("exit code %d: %s", r.code, r.stdout)
	}
	return r
}

// A cutover that is killed at random moments loses nothing either.
func TestCutoverKilled(t *testing.T) {
	c := startCut(t, 100, "a", "b")
	settings := c.settingsOf("a")
	began := time.Now()
	runFor(t, c.s, time.Minute, "--version")
	begun := time.Since(began)
	w := c.write()
	kills, p := 0, w.proxy()
	for kills < *cutoverKills {
		if runFor(t, p, begun+rand.N(500*time.Millisecond+time.Duration(kills)*100*time.Millisecond), c.line("cutover", "--write")...).code != killed {
			break
		}
		kills++
	}
	c.cutover(p, -1, "--write").is(t, "switched")
	t.Logf("killed %d times", kills)
	w.check()
	c.release()
	c.wantSettings(settings, "a", "b")
}

// Two services write all the time while their collections are copied, cut over, put back perhaps, cut over again and released, and
// each of these commands is killed at random moments until it ends. They find their documents in both representations. Nothing is lost:
// what they write between an exchange and the way back is in a file.
func TestCopiesKilled(t *testing.T) {
	c := startCut(t, 60, "a", "b")
	settings := c.settingsOf("a")
	for _, name := range c.names {
		drop(t, c.db.Collection(name+"_new"))
	}
	c.planned(convertFields("javaLegacy"), copiedInto("a", "a_new"), copiedInto("b", "b_new"))
	began := time.Now()
	runFor(t, c.s, time.Minute, "--version")
	begun := time.Since(began)
	w := c.writing(cutDoc)
	w.both.Store(true)
	p, kills, most := w.proxy(), 0, *cutoverKills
	if testing.Short() {
		most = min(most, 1)
	}
	through := func(name string, flags ...string) {
		t.Helper()
		for i := range most {
			if runFor(t, p, begun+rand.N(400*time.Millisecond+time.Duration(i)*200*time.Millisecond), c.line(name, append(flags, "--write")...)...).code != killed {
				return
			}
			kills++
		}
		runFor(t, p, 2*time.Minute, c.line(name, append(flags, "--write")...)...)
	}
	through("apply")
	backs := rand.N(1 + min(most, 2))
	for range backs {
		through("cutover")
		w.until(5)
		through("cutover", "--roll-back", "--allow-changed")
		w.until(5)
	}
	through("cutover")
	w.until(5)
	through("release", "--allow-changed")
	w.until(5)
	w.end()
	left := 0
	aside := make(map[string][]bson.Raw) // by _id
	files, err := filepath.Glob(filepath.Join(c.dir, "*.written*"))
	check(t, err)
	for _, file := range files {
		for _, line := range lines(t, file) {
			var doc bson.Raw
			check(t, bson.UnmarshalExtJSON([]byte(line), true, &doc))
			for id, doc := range converted(t, map[string]bson.Raw{"": doc}) {
				aside[id] = append(aside[id], doc)
			}
		}
	}
	for _, name := range c.names {
		is, want := converted(t, c.docs(name)), converted(t, w.truth[name])
		for id, doc := range want {
			if !bytes.Equal(is[id], doc) && slices.ContainsFunc(aside[id], func(a bson.Raw) bool { return bytes.Equal(a, doc) }) {
				left++
				delete(is, id)
				delete(want, id)
			}
		}
		equal(t, is, want)
	}
	t.Logf("killed %d times, put back %d times, %d documents in files, %v", kills, backs, left, w.counts)
	c.wantSettings(settings, "a", "b")
}

// rename returns the names of a renameCollection, or "".
func (r request) rename() string {
	if r.name() != "renameCollection" {
		return ""
	}
	from, _ := r.command.Lookup("renameCollection").StringValueOK()
	to, _ := r.command.Lookup("to").StringValueOK()
	return from + " to " + to
}
