package servertest

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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
		if res, err = coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: docs[id].Lookup("_id")}}); err == nil && res.DeletedCount == 1 {
			delete(docs, id)
		} else {
			outcome = "matched nothing"
		}
	default:
		fresh := bson.D{{Key: "_id", Value: docs[id].Lookup("_id")}, {Key: "customer", Value: docs[id].Lookup("customer")}, {Key: "n", Value: int32(n)}}
		var res *mongo.UpdateResult
		res, err = coll.UpdateOne(ctx, fresh[:1], bson.D{{Key: "$set", Value: fresh[2:]}}, options.UpdateOne().SetBypassDocumentValidation(bypass))
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

// rename returns the names of a renameCollection, or "".
func (r request) rename() string {
	if r.name() != "renameCollection" {
		return ""
	}
	from, _ := r.command.Lookup("renameCollection").StringValueOK()
	to, _ := r.command.Lookup("to").StringValueOK()
	return from + " to " + to
}
