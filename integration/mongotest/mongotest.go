// Package mongotest gives a test a MongoDB server and a new database on it.
//
// The environment selects the server, which all tests of the binary share:
//
//	BSONIDS_SERVER=embedded   FerretDB inside the test process (the default)
//	BSONIDS_SERVER=container  a container of BSONIDS_MONGO_IMAGE, mongo:8 by default
//	BSONIDS_SERVER=uri        the server of MONGODB_URI; MONGODB_URI set alone means the same
//
// A test binary passes its run to Main. Main starts the server when a test first requests it, stops
// it when the tests end, and prints the skipped tests with the reasons:
//
//	func TestMain(m *testing.M) { mongotest.Main(m) }
//
//	func TestInsert(t *testing.T) {
//		client, err := clientopt.Connect(mongotest.Start(t).With("uuidRepresentation=standard"))
//		…
//	}
package mongotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/container"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/front"
)

// timeout is the time limit of each command of this package.
const timeout = 30 * time.Second

// Server is a server with a database for one test. It is safe for concurrent use.
type Server struct {
	uri      connString
	database string
}

// URI returns the connection string, with the test's database in its path.
func (s *Server) URI() string { return s.With("") }

// With returns the connection string with further options, such as
// "uuidRepresentation=standard&appName=x". They follow the options that the server needs. With does
// not check them.
func (s *Server) With(opts string) string { return s.uri.with(s.database, opts) }

// Database returns the name of the test's database.
func (s *Server) Database() string { return s.database }

// URI returns the connection string of Start.
func URI(tb testing.TB) string {
	tb.Helper()
	return Start(tb).URI()
}

// Start returns the server with a new database, which is dropped when the test ends. Each call
// makes another database. The test fails if there is no server, or if Main does not run the tests.
func Start(tb testing.TB) *Server {
	tb.Helper()
	b, err := process.backend()
	if err != nil {
		tb.Fatalf("mongotest: %v", err)
	}
	s := &Server{uri: b.uri, database: databaseName(tb.Name())}
	process.begin(s.database)
	tb.Cleanup(func() {
		defer process.end(s.database)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := b.drop(ctx, s.database); err != nil {
			tb.Errorf("mongotest: dropping the test's database: %v", err)
		}
	})
	return s
}

// backend is the server of a test binary.
type backend struct {
	uri   connString
	stop  func(context.Context) error           // nil if the tests did not start the server
	front func() error                          // closes what stands before a server that the tests did not start; may be nil
	log   func(context.Context) (string, error) // nil if the server has no log to show
}

// connect returns a client with the driver's default options.
func (b *backend) connect() (*mongo.Client, error) {
	return mongo.Connect(options.Client().ApplyURI(b.uri.with("", "")).SetServerSelectionTimeout(timeout))
}

func (b *backend) drop(ctx context.Context, database string) error {
	client, err := b.connect()
	if err != nil {
		return err
	}
	return errors.Join(client.Database(database).Drop(ctx), client.Disconnect(ctx))
}

// run is the state of a test binary.
type run struct {
	mu      sync.Mutex
	running bool // from the start of Main to its end
	started bool
	server  *backend
	err     error
	skipped []skip

	databases map[string]bool // the databases that are not dropped yet
}

var process = run{databases: make(map[string]bool)}

func (r *run) begin(database string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.databases[database] = true
}

func (r *run) end(database string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.databases, database)
}

func (r *run) backend() (*backend, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		return nil, errors.New("no server outside Main: the package needs func TestMain(m *testing.M) { mongotest.Main(m) }")
	}
	if !r.started {
		r.started = true
		r.server, r.err = startBackend()
	}
	return r.server, r.err
}

// printLog writes the log of the server after a failed run.
func (r *run) printLog(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil || r.server.log == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	log, err := r.server.log(ctx)
	if err != nil {
		fmt.Fprintf(w, "mongotest: the server's log: %v\n", err)
		return
	}
	fmt.Fprintf(w, "mongotest: the server's log:\n%s\n", log)
}

// stop stops the server and prevents another start. If the tests did not start the server, stop
// drops the databases of interrupted tests instead. Only the first call has an effect.
func (r *run) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
	if r.server == nil {
		return nil
	}
	b := r.server
	r.server, r.err = nil, errors.New("the server has stopped")
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if b.stop != nil {
		if err := b.stop(ctx); err != nil {
			return fmt.Errorf("mongotest: stopping the server: %w", err)
		}
		return nil
	}
	for database := range r.databases {
		if err := b.drop(ctx, database); err != nil {
			return fmt.Errorf("mongotest: dropping a test's database: %w", err)
		}
	}
	if b.front != nil {
		return b.front()
	}
	return nil
}

// Main runs the tests of a binary and exits. TestMain must not do anything after it. It stops the
// server when the tests have passed, failed, or been interrupted. The server of MONGODB_URI keeps
// running; Main drops the databases of the tests.
func Main(m *testing.M) {
	container.Guard()
	process.mu.Lock()
	process.running = true
	process.mu.Unlock()

	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-interrupt
		fmt.Fprintf(os.Stderr, "mongotest: %v: stopping the server\n", s)
		if err := process.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(130)
	}()

	code := m.Run()
	if code != 0 {
		process.printLog(os.Stderr)
	}
	if err := process.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	printSkipped(os.Stdout, process.skipped)
	os.Exit(code)
}

func startBackend() (*backend, error) {
	uri := os.Getenv("MONGODB_URI")
	kind := os.Getenv("BSONIDS_SERVER")
	if kind == "" {
		kind = "embedded"
		if uri != "" {
			kind = "uri"
		}
	}
	switch kind {
	case "embedded":
		s, err := embedded.Start(embedded.WithFront())
		if err != nil {
			return nil, err
		}
		return &backend{
			uri:  connString{scheme: "mongodb://", hosts: s.Addr()},
			stop: func(context.Context) error { return s.Close() },
		}, nil
	case "container":
		// Pulling the image may take minutes. The timeout is for an engine that hangs.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		c, err := container.Start(ctx)
		if err != nil {
			return nil, err
		}
		uri, err := parseConnString(c.URI())
		if err != nil {
			return nil, errors.Join(err, c.Terminate(ctx))
		}
		return &backend{
			uri:  uri,
			stop: c.Terminate,
			log:  c.Log,
		}, nil
	case "uri":
		if uri == "" {
			return nil, errors.New("BSONIDS_SERVER=uri needs MONGODB_URI")
		}
		c, err := parseConnString(uri)
		if err != nil {
			return nil, fmt.Errorf("MONGODB_URI: %w", err)
		}
		b := &backend{uri: c}
		if !c.direct() {
			return b, nil
		}
		f, err := front.Listen("127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		f.Serve(c.hosts)
		b.uri.hosts, b.front = f.Addr(), f.Close
		return b, nil
	default:
		return nil, fmt.Errorf("BSONIDS_SERVER=%s: want embedded, container or uri", kind)
	}
}
