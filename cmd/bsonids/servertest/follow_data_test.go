package servertest

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// application is a program that writes to a collection, and knows what a conversion of it must
// produce. A document has UUIDs in _id and in a field.
type application struct {
	t    *testing.T
	coll *mongo.Collection
	ids  []uuid.UUID
	docs map[uuid.UUID]orderState
	next int
}

type orderState struct {
	customer uuid.UUID
	n        any // an int32, or text, which the validator rejects
}

// validator is the validator of the collection of an application.
var validator = bson.D{{Key: "n", Value: bson.D{{Key: "$type", Value: "int"}}}}

// newApplication creates a collection with n documents.
func newApplication(t *testing.T, db *mongo.Database, name string, n int) *application {
	t.Helper()
	a := &application{t: t, coll: db.Collection(name), docs: make(map[uuid.UUID]orderState)}
	check(t, db.CreateCollection(t.Context(), name, options.CreateCollection().SetValidator(validator)))
	for range n {
		a.insert()
	}
	return a
}

func (a *application) doc(id uuid.UUID, r uuidrep.Representation) bson.D {
	o := a.docs[id]
	return bson.D{{Key: "_id", Value: in(id, r)}, {Key: "customer", Value: in(o.customer, r)}, {Key: "n", Value: o.n}}
}

func (a *application) filter(id uuid.UUID) bson.D {
	return bson.D{{Key: "_id", Value: in(id, uuidrep.JavaLegacy)}}
}

func (a *application) insert() {
	a.next++
	id := v4(a.next)
	a.ids = append(a.ids, id)
	a.docs[id] = orderState{v4(a.next), int32(0)}
	did(a.t)(a.coll.InsertOne(context.Background(), a.doc(id, uuidrep.JavaLegacy)))
}

// some returns a document at random.
func (a *application) some() uuid.UUID { return a.ids[rand.IntN(len(a.ids))] }

func (a *application) update() {
	a.next++
	id := a.some()
	o := orderState{v4(a.next), int32(a.next)}
	a.docs[id] = o
	did(a.t)(a.coll.UpdateOne(context.Background(), a.filter(id), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: in(o.customer, uuidrep.JavaLegacy)}, {Key: "n", Value: o.n}}}}))
}

// bypass replaces a document by one that the validator rejects.
func (a *application) bypass() {
	a.next++
	id := a.some()
	a.docs[id] = orderState{v4(a.next), "text"}
	did(a.t)(a.coll.ReplaceOne(context.Background(), a.filter(id), a.doc(id, uuidrep.JavaLegacy), options.Replace().SetBypassDocumentValidation(true)))
}

func (a *application) delete() {
	i := rand.IntN(len(a.ids))
	did(a.t)(a.coll.DeleteOne(context.Background(), a.filter(a.ids[i])))
	delete(a.docs, a.ids[i])
	a.ids[i] = a.ids[len(a.ids)-1]
	a.ids = a.ids[:len(a.ids)-1]
}

// write makes one change of any kind.
func (a *application) write() {
	switch rand.IntN(6) {
	case 0, 1:
		a.insert()
	case 2, 3:
		a.update()
	case 4:
		a.bypass()
	default:
		if len(a.ids) > 1 {
			a.delete()
		}
	}
}

// writes makes changes until stop is called, and not more than most: the server may be slow.
func (a *application) writes(most int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for range most {
			if ctx.Err() != nil {
				return
			}
			a.write()
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	a.t.Cleanup(stop)
	return stop
}

// want returns the documents that a conversion to the standard representation must produce.
func (a *application) want() map[string]bson.Raw {
	out := make(map[string]bson.Raw)
	for id := range a.docs {
		note(out, a.doc(id, uuidrep.Standard))
	}
	return out
}

// followPlan makes a plan that copies the collection c into the collection new, and returns its directory.
func followPlan(t *testing.T, s *mongotest.Server) (dir string) {
	t.Helper()
	return prepared(t, s, "standard", copiedInto("c", "new"))
}

// follow returns the arguments of the command that applies the plan in the directory, and whose copies follow
// their collections.
func follow(dir string, extra ...string) []string {
	return append([]string{"apply", dir, "--write", "--follow"}, extra...)
}

// followed is the collection c, which an application writes to, and a plan that copies it into the collection new.
type followed struct {
	*testing.T
	s   *mongotest.Server
	db  *mongo.Database
	app *application
	dir string
}

// startFollowed starts a server with change streams, or skips the test.
func startFollowed(t *testing.T, n int) *followed {
	t.Helper()
	s, db := started(t, mongotest.ChangeStreams)
	f := &followed{T: t, s: s, db: db, app: newApplication(t, db, "c", n)}
	f.dir = followPlan(t, s)
	return f
}

// catchUp lets the copy follow until it has caught up.
func (f *followed) catchUp(s target, code int, flags ...string) result {
	f.Helper()
	return command(f, s, follow(f.dir, append(flags, "--until-caught-up")...)...).want(f, code)
}

// begin lets the copy follow in the background, and waits until it has caught up.
func (f *followed) begin(flags ...string) *background {
	f.Helper()
	b := inBackground(f.T, f.s, follow(f.dir, flags...)...)
	b.until(following)
	return b
}

// wantCopy fails the test unless the copy has what the application has written.
func (f *followed) wantCopy() {
	f.Helper()
	equal(f, all(f, f.db.Collection("new")), f.app.want())
}

// background is a command that runs.
type background struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan result
	log    *watched
}

// watched is a buffer. A test can wait until it contains a text.
type watched struct {
	mu      sync.Mutex
	changed *sync.Cond
	buf     bytes.Buffer
	closed  bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	return w.buf.Write(b)
}

func (w *watched) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.changed.Broadcast()
}

// inBackground starts a command.
func inBackground(t *testing.T, s target, args ...string) *background {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{t: t, cancel: cancel, ended: make(chan result, 1), log: newWatched()}
	go func() {
		var out bytes.Buffer
		code := cli.Run(ctx, append(args, "--uri", s.URI(), "--log-format", "json"), &out, b.log)
		b.log.close()
		b.ended <- result{code, out.String(), b.log.buf.String()}
	}()
	t.Cleanup(cancel)
	return b
}

// until waits until the buffer contains the text.
func (w *watched) until(t testing.TB, text string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !strings.Contains(w.buf.String(), text) {
		if w.closed {
			t.Fatalf("it ended without %q: %s", text, w.buf.String())
		}
		w.changed.Wait()
	}
}

func newWatched() *watched {
	w := &watched{}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// until waits until the log has the text.
func (b *background) until(text string) {
	b.t.Helper()
	b.log.until(b.t, text)
}

// untilEqual waits until the collection has the documents.
func (b *background) untilEqual(coll *mongo.Collection, want map[string]bson.Raw) {
	b.t.Helper()
	for !same(all(b.t, coll), want) {
		select {
		case r := <-b.ended:
			b.t.Fatal(r.code, r.stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// interrupt interrupts the command, as a signal does, and waits for its end.
func (b *background) interrupt() result {
	b.cancel()
	return b.wait()
}

func (b *background) wait() result {
	r := <-b.ended
	for line := range strings.Lines(r.stderr) {
		checkSchema(b.t, "log", line)
	}
	return r
}

// same reports whether documents are equal.
func same(got, want map[string]bson.Raw) bool {
	return maps.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) })
}

const following = `"msg":"following"`
