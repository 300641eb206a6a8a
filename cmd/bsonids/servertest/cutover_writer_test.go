package servertest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
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
	stop  chan struct{}
	done  sync.WaitGroup
	// ddl is held while a collection is renamed or its validator changes. MongoDB does so as one step;
	// SecantusDB loses writes that come in the middle, or stops.
	ddl sync.RWMutex

	mu     sync.Mutex
	counts map[string]int // operations by kind and outcome
	paused bool
}

// write starts a writer for each collection, which inserts documents of the old representation.
func (c *cut) write() *writer { return c.writing(cutDoc) }

func (c *cut) writing(doc func(i, n int) bson.D) *writer {
	w := &writer{c: c, doc: doc, truth: make(map[string]map[string]bson.Raw), stop: make(chan struct{}), counts: make(map[string]int)}
	for i, name := range c.names {
		w.truth[name] = all(c, c.db.Collection(name))
		w.done.Go(func() { w.run(c.db.Collection(name), i) })
	}
	c.Cleanup(w.end)
	return w
}

// proxy returns the server as the command reaches it: renames wait for the operations of the writers.
// handle is called for each rename, if it is not nil.
func (w *writer) proxy(handle func(rename string, r request, pass func() []byte) []byte) target {
	return startProxy(w.c, host(w.c, w.c.s), func(r request, pass func() []byte) []byte {
		rename := r.rename()
		if rename == "" && r.name() != "collMod" {
			return pass()
		}
		w.ddl.Lock()
		defer w.ddl.Unlock()
		if rename != "" && handle != nil {
			return handle(rename, r, pass)
		}
		return pass()
	})
}

// end stops the writers.
func (w *writer) end() {
	w.mu.Lock()
	stopped := w.paused
	w.paused = true
	w.mu.Unlock()
	if !stopped {
		close(w.stop)
	}
	w.done.Wait()
}

func (w *writer) count(kind, outcome string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[kind+" "+outcome]++
}

// written returns how many operations changed a document so far.
func (w *writer) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for what, k := range w.counts {
		if what[len(what)-2:] == "ok" {
			n += k
		}
	}
	return n
}

// run is one writer. It alone writes to the collection.
func (w *writer) run(coll *mongo.Collection, seed int) {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	ids := slices.Sorted(maps.Keys(w.truth[coll.Name()]))
	for n := 1; ; n++ {
		select {
		case <-w.stop:
			return
		case <-time.After(time.Duration(random.IntN(4)) * time.Millisecond):
		}
		if !w.one(coll, random, n, &ids) {
			return
		}
	}
}

// one tries one operation. It reports false if it failed for an unexpected reason.
func (w *writer) one(coll *mongo.Collection, random *rand.Rand, n int, all *[]string) bool {
	w.ddl.RLock()
	defer w.ddl.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	docs, ids := w.truth[coll.Name()], *all
	defer func() { *all = ids }()
	kind := []string{"insert", "update", "delete", "insert bypassing", "update bypassing"}[random.IntN(5)]
	bypass := kind[len(kind)-1] == 'g'
	var err error
	var changed int64
	switch kind {
	case "insert", "insert bypassing":
		doc, _ := bson.Marshal(w.doc(1_000_000+n, n))
		if _, err = coll.InsertOne(ctx, bson.Raw(doc), options.InsertOne().SetBypassDocumentValidation(bypass)); err == nil {
			changed = 1
			id := bson.Raw(doc).Lookup("_id").String()
			docs[id] = doc
			ids = append(ids, id)
		}
	case "update", "update bypassing":
		if len(ids) == 0 {
			return true
		}
		id := ids[random.IntN(len(ids))]
		doc := docs[id]
		var res *mongo.UpdateResult
		res, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: doc.Lookup("_id")}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(n)}}}},
			options.UpdateOne().SetBypassDocumentValidation(bypass))
		if err == nil && res.ModifiedCount == 1 {
			changed = 1
			fresh, _ := bson.Marshal(bson.D{{Key: "_id", Value: doc.Lookup("_id")}, {Key: "customer", Value: doc.Lookup("customer")}, {Key: "n", Value: int32(n)}})
			docs[id] = fresh
		}
	case "delete":
		if len(ids) == 0 {
			return true
		}
		i := random.IntN(len(ids))
		var res *mongo.DeleteResult
		if res, err = coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: docs[ids[i]].Lookup("_id")}}); err == nil && res.DeletedCount == 1 {
			changed = 1
			delete(docs, ids[i])
			ids = slices.Delete(ids, i, i+1)
		}
	}
	var se mongo.ServerError
	switch {
	case err == nil && changed == 1:
		w.count(kind, "ok")
	case err == nil:
		w.count(kind, "matched nothing")
	case errors.As(err, &se) && se.HasErrorCode(121):
		w.count(kind, "refused")
	default:
		w.count(kind, "failed")
		w.c.Errorf("%s: %v", kind, err)
		return false
	}
	return true
}

// check fails the test unless the collections have exactly what was written, in one representation or
// the other.
func (w *writer) check() {
	w.c.Helper()
	w.end()
	w.c.Logf("%v", w.counts)
	for _, name := range w.c.names {
		equal(w.c, converted(w.c, all(w.c, w.c.db.Collection(name))), converted(w.c, w.truth[name]))
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
	r := c.cutover(w.proxy(nil), failure.ExitOK, "--write")
	w.until(10)
	t.Logf("%+v", r)
	w.check()
	c.release()
	c.wantSettings(settings, "a", "b")
	if r.State != "switched" {
		t.Errorf("%+v", r)
	}
}

// killedOnce runs cutover in its own process, and kills it after the time. It reports whether it was
// killed.
func (c *cut) killedOnce(s target, after time.Duration, flags ...string) bool {
	c.Helper()
	cmd, out := start(c.TB.(*testing.T), s, c.line("cutover", append(flags, "--write")...)...)
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		return true
	case errors.As(err, &exit) && exit.ExitCode() == failure.ExitIncomplete:
		return false // documents conflict, or could not be brought back
	}
	c.Fatalf("%v: %s", err, out)
	return false
}

// A cutover that is killed at random moments loses nothing either.
func TestCutoverKilled(t *testing.T) {
	c := startCut(t, 100, "a", "b")
	settings := c.settingsOf("a")
	began := time.Now()
	cmd, _ := start(t, c.s, "--version")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	begun := time.Since(began)
	w := c.write()
	kills, p := 0, w.proxy(nil)
	for kills < *cutoverKills && c.killedOnce(p, begun+rand.N(500*time.Millisecond+time.Duration(kills)*100*time.Millisecond)) {
		kills++
	}
	if r := c.cutover(p, -1, "--write"); r.State != "switched" {
		t.Errorf("%+v", r)
	}
	t.Logf("killed %d times", kills)
	w.check()
	c.release()
	c.wantSettings(settings, "a", "b")
}

// A cutover that is killed before or after a rename loses nothing, whether the same command goes on
// or rolls back.
func TestCutoverKilledAtRename(t *testing.T) {
	for _, rename := range []string{"a to a_before_cutover", "a_new to a"} {
		for _, after := range []bool{false, true} {
			for _, back := range []bool{false, true} {
				if testing.Short() && after != back {
					continue
				}
				t.Run(fmt.Sprintf("%s after=%v back=%v", rename, after, back), func(t *testing.T) {
					c := startCut(t, 50, "a", "b")
					c.args[3] = "1s" // a roll-back waits as long for the last command of the killed process
					settings := c.settingsOf("a")
					process := make(chan *exec.Cmd, 1)
					w := c.write()
					p := w.proxy(func(name string, _ request, pass func() []byte) []byte {
						if name != c.db.Name()+"."+strings.Replace(rename, " to ", " to "+c.db.Name()+".", 1) {
							return pass()
						}
						if after {
							pass()
						}
						_ = (<-process).Process.Kill()
						return nil
					})
					cmd, out := start(t, p, c.line("cutover", "--write")...)
					process <- cmd
					var exit *exec.ExitError
					if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
						t.Fatalf("%v: %s", err, out)
					}
					if state := statusCutovers(t, c.s, "--db", c.db.Name()); state != "switching" {
						t.Fatalf("killed in the state %q", state)
					}
					w.until(5)
					var flags []string
					if back {
						flags = []string{"--roll-back"}
					}
					r := c.cutover(w.proxy(nil), -1, append(flags, "--write")...)
					w.until(5)
					w.check()
					if !back {
						c.release()
						c.wantSettings(settings, "a", "b")
					} else {
						c.wantSettings(settings, "a", "b", "a_new", "b_new")
					}
					if want := map[bool]string{false: "switched", true: "rolled back"}[back]; r.State != want {
						t.Errorf("the state is %q, want %q", r.State, want)
					}
				})
			}
		}
	}
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
