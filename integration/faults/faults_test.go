// Package faults tests generated ids and representations when connections break and servers stop.
package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.uber.org/goleak"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/integration/container"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

func TestMain(m *testing.M) { mongotest.Main(m) }

// testTime is the time limit of each test.
const testTime = 2 * time.Minute

// server is a server for one test. The test may stop it.
type server struct {
	addr    string
	restart func(context.Context) error // stops it at once if possible, and starts it with the same data
}

// newServer starts a server. When the test ends, it stops everything and checks that no goroutine
// remains.
func newServer(t *testing.T) (*server, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	t.Cleanup(cancel)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before,
			// toxiproxy leaks the goroutines of a link if its limit is reached and more data
			// follows.
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
			// Connections to the container engine are kept for the next test.
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		)
	})
	switch kind := os.Getenv("BSONIDS_SERVER"); {
	case kind == "container":
		return newContainer(ctx, t), ctx
	case kind == "uri" || kind == "" && os.Getenv("MONGODB_URI") != "":
		mongotest.Skip(t, "needs a server that it may stop, and MONGODB_URI names one that is not the test's own")
	}

	dir := t.TempDir()
	e, err := embedded.Start(embedded.WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: e.Addr()}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s.restart = func(context.Context) error {
		if err := e.Close(); err != nil {
			return err
		}
		again, err := embedded.Start(embedded.WithDir(dir))
		if err == nil {
			e, s.addr = again, again.Addr()
		}
		return err
	}
	return s, ctx
}

func newContainer(ctx context.Context, t *testing.T) *server {
	t.Helper()
	volume := fmt.Sprintf("bsonids-faults-%d-%d", os.Getpid(), time.Now().UnixNano())
	c, err := container.Start(ctx, container.WithVolume(volume))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if t.Failed() {
			log, err := c.Log(ctx)
			t.Logf("the server's log, %v:\n%s", err, log)
		}
		if err := errors.Join(c.Terminate(ctx), container.RemoveVolume(ctx, volume)); err != nil {
			t.Error(err)
		}
	})
	s := &server{addr: c.Addr()}
	s.restart = func(ctx context.Context) error {
		err := errors.Join(c.Kill(ctx), c.Restart(ctx))
		s.addr = c.Addr()
		return err
	}
	return s
}

// proxy is a proxy between clients and a server, on loopback.
type proxy struct {
	t *testing.T
	p *toxiproxy.Proxy
}

func newProxy(t *testing.T, s *server) *proxy {
	t.Helper()
	nowhere := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()) // the API is not served
	p := toxiproxy.NewProxy(nowhere, t.Name(), "127.0.0.1:0", s.addr)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return &proxy{t, p}
}

// toxic is a fault of toxiproxy. It has a toxiproxy type and a direction: upstream is the data that
// clients send.
type toxic struct {
	kind, direction string
	attributes      map[string]any
}

func (x toxic) String() string { return fmt.Sprintf("%s %s %v", x.direction, x.kind, x.attributes) }

func (p *proxy) add(x toxic) {
	p.t.Helper()
	b, err := json.Marshal(map[string]any{"type": x.kind, "stream": x.direction, "attributes": x.attributes})
	if err == nil {
		_, err = p.p.Toxics.AddToxicJson(bytes.NewReader(b))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// heal removes the toxics from new and existing connections.
func (p *proxy) heal() { p.p.Toxics.ResetToxics(context.Background()) }

// cut closes all connections and refuses new ones until connect.
func (p *proxy) cut() { p.p.Stop() }

// connect accepts clients again and forwards them to the server, which may have a new address.
func (p *proxy) connect(s *server) {
	p.t.Helper()
	err := p.p.Update(&toxiproxy.Proxy{Listen: p.p.Listen, Upstream: s.addr, Enabled: true})
	if err != nil {
		p.t.Fatal(err)
	}
}

// dialer makes the connections of a client, with those for monitoring, and counts them.
type dialer struct {
	net.Dialer
	open          atomic.Int64
	read, written atomic.Int64 // bytes
}

func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.Dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	return &conn{Conn: c, d: d}, nil
}

type conn struct {
	net.Conn
	d      *dialer
	closed sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.d.read.Add(int64(n))
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.d.written.Add(int64(n))
	return n, err
}

func (c *conn) Close() error {
	c.closed.Do(func() { c.d.open.Add(-1) })
	return c.Conn.Close()
}

// client is a client that uses a proxy. All its connections must be closed after disconnect.
type client struct {
	*mongo.Client
	t      *testing.T
	dialer *dialer
	once   sync.Once
}

// newClient connects a client. The ledger records the inserts that it sends; it may be nil.
func newClient(t *testing.T, addr string, r uuidrep.Representation, l *ledger) *client {
	t.Helper()
	d := &dialer{}
	opts := options.Client().
		SetDialer(d).
		// Before MongoDB 5.0, an acknowledged write may be lost with the process unless it was journaled.
		SetWriteConcern(writeconcern.Journaled()).
		SetConnectTimeout(2 * time.Second).
		SetServerSelectionTimeout(5 * time.Second).
		SetHeartbeatInterval(time.Hour). // a fault must hit the operation and not a heartbeat
		// In the other modes Disconnect may wait for an answer that the server delays by the
		// heartbeat interval, if a check begins while it runs.
		SetServerMonitoringMode(options.ServerMonitoringModePoll).
		SetMonitor(&event.CommandMonitor{Started: l.started})
	c, err := clientopt.Connect("mongodb://"+addr+"/?directConnection=true&uuidRepresentation="+r.String(),
		clientopt.WithClientOptions(opts))
	if err != nil {
		t.Fatal(err)
	}
	made := &client{Client: c, t: t, dialer: d}
	t.Cleanup(made.disconnect)
	return made
}

func (c *client) disconnect() {
	c.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Disconnect(ctx); err != nil {
			c.t.Errorf("disconnecting: %v", err)
		}
		for deadline := time.Now().Add(5 * time.Second); c.dialer.open.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				c.t.Errorf("%d connections are open after Disconnect", c.dialer.open.Load())
				return
			}
		}
	})
}

// ledger records which documents were sent and acknowledged, with their ids. The field n identifies
// a document. It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	sent    map[int32]bson.RawValue // by n
	again   int                     // documents that were sent more than once
	acked   map[int32]bool
	changed []string // errors: an id that differs from the id sent before
}

func newLedger() *ledger {
	return &ledger{sent: make(map[int32]bson.RawValue), acked: make(map[int32]bool)}
}

func (l *ledger) started(_ context.Context, e *event.CommandStartedEvent) {
	if l == nil || e.CommandName != "insert" {
		return
	}
	docs, err := e.Command.Lookup("documents").Array().Values()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.changed = append(l.changed, err.Error())
		return
	}
	for _, d := range docs {
		n, id := d.Document().Lookup("n").Int32(), d.Document().Lookup("_id")
		if old, found := l.sent[n]; !found {
			l.sent[n] = id
		} else {
			l.again++
			if !old.Equal(id) {
				l.changed = append(l.changed, fmt.Sprintf("document %d was sent with %v, then with %v", n, old, id))
			}
		}
	}
}

func (l *ledger) acknowledge(ns ...int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range ns {
		l.acked[n] = true
	}
}

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// check compares the ledger with the documents on the server, which it reads through a client
// without faults. It returns the number of documents.
func (l *ledger) check(ctx context.Context, t *testing.T, coll *mongo.Collection) int {
	t.Helper()
	return l.checkOf(ctx, t, coll, 0, math.MaxInt32)
}

// checkOf is check for a collection that has the documents of low ≤ n < high.
func (l *ledger) checkOf(ctx context.Context, t *testing.T, coll *mongo.Collection, low, high int32) int {
	t.Helper()
	var docs []bson.Raw
	cursor, err := coll.Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	there := make(map[int32]bool)
	ids := make(map[string]bool)
	for _, d := range docs {
		n, id := d.Lookup("n").Int32(), d.Lookup("_id")
		if there[n] || ids[id.String()] {
			t.Errorf("document %d with %v is there twice", n, id)
		}
		there[n], ids[id.String()] = true, true
		if sent := l.sent[n]; !sent.Equal(id) {
			t.Errorf("document %d is there with %v and was sent with %v", n, id, sent)
		}
	}
	for n := range l.acked {
		if low <= n && n < high && !there[n] {
			t.Errorf("document %d was acknowledged and is not there", n)
		}
	}
	for _, c := range l.changed {
		t.Error(c)
	}
	return len(docs)
}

// batch is a number of documents to insert. Each document keeps its id.
type batch struct {
	docs []any
	ns   []int32
}

func newBatch(src autoid.Source, from, count int32) batch {
	var b batch
	for n := from; n < from+count; n++ {
		b.docs = append(b.docs, autoid.Document(src, bson.D{
			{Key: "n", Value: n}, {Key: "u", Value: uuid.New()}, {Key: "text", Value: "some more octets to send"},
		}))
		b.ns = append(b.ns, n)
	}
	return b
}

// insert inserts a batch and returns the documents that the driver reported as inserted. When it is
// repeated, it does not change the documents that are already stored.
type insert func(context.Context, *autoid.Collection, batch) ([]int32, error)

func insertMany(ctx context.Context, coll *autoid.Collection, b batch) ([]int32, error) {
	_, err := coll.InsertMany(ctx, b.docs, options.InsertMany().SetOrdered(false))
	return inserted(b.ns, err)
}

// bulkWrite has an update among the inserts, which the driver sends as a separate command.
func bulkWrite(ctx context.Context, coll *autoid.Collection, b batch) ([]int32, error) {
	var models []mongo.WriteModel
	half := len(b.docs) / 2
	ns := make([]int32, 0, len(b.ns)+1) // for each model
	for i, d := range b.docs {
		if i == half {
			models = append(models, mongo.NewUpdateOneModel().
				SetFilter(bson.D{{Key: "n", Value: b.ns[0]}}).
				SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "updated", Value: true}}}}))
			ns = append(ns, -1)
		}
		models = append(models, mongo.NewInsertOneModel().SetDocument(d))
		ns = append(ns, b.ns[i])
	}
	_, err := coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	said, err := inserted(ns, err)
	if half > 0 && len(said) > half && said[half] == -1 {
		said = append(said[:half:half], said[half+1:]...)
	}
	return said, err
}

// inserted returns the documents of a call that its error does not name. A document that is already
// stored counts as inserted and is not an error, because an earlier call has inserted it.
func inserted(ns []int32, err error) ([]int32, error) {
	if err == nil {
		return ns, nil
	}
	var failed mongo.BulkWriteException
	if !errors.As(err, &failed) || failed.WriteConcernError != nil {
		return nil, err
	}
	const codeDuplicateKey = 11000
	for _, e := range failed.WriteErrors {
		if e.Code != codeDuplicateKey {
			return nil, err
		}
	}
	return ns, nil
}

var inserts = []struct {
	name string
	do   insert
}{{"InsertMany", insertMany}, {"BulkWrite", bulkWrite}}

func newSource(t *testing.T) autoid.Source {
	t.Helper()
	src, err := uuidgen.NewV7Generator()
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// again repeats an insert until it is acknowledged, at most 20 times.
func again(ctx context.Context, l *ledger, do insert, coll *autoid.Collection, b batch) (tries int, err error) {
	for tries = 1; tries <= 20; tries++ {
		var ns []int32
		if ns, err = do(ctx, coll, b); err == nil {
			l.acknowledge(ns...)
			return tries, nil
		}
		if ctx.Err() != nil {
			return tries, err
		}
	}
	return tries, err
}
