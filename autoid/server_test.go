package autoid

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// testServer implements the parts of a MongoDB server that inserts need, at the other end of a
// pipe. It answers insert, the client-level bulkWrite and the commands of a transaction, refuses a
// second document with the same _id, and keeps every command that it receives. It supports commands
// that the embedded server lacks, and lets a test set limits and failures.
type testServer struct {
	maxBatch   int32 // maxWriteBatchSize
	maxMessage int32 // maxMessageSizeBytes

	mu       sync.Mutex
	commands []bson.Raw           // without hello and endSessions
	ids      map[string]bool      // type and bytes of every stored _id
	docs     []bson.Raw           // stored
	fail     func(bson.Raw) error // called first; a serverError is sent as the reply
	upserted any                  // the _id of every document that an update upserts
}

// serverError is a reply with ok: 0.
type serverError struct {
	code   int32
	labels []string
}

func (e serverError) Error() string { return "server error " + strconv.Itoa(int(e.code)) }

func newTestServer() *testServer {
	return &testServer{maxBatch: 100_000, maxMessage: 48_000_000, ids: map[string]bool{}}
}

// client connects to the server with reg, which may be nil. The function that it returns returns
// the names of the commands that were started.
func (s *testServer) client(t testing.TB, reg *bson.Registry, opts ...*options.ClientOptions) (*mongo.Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var started []string
	base := options.Client().ApplyURI("mongodb://autoid.test:27017").
		SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1)).
		SetDialer(s).
		SetServerSelectionTimeout(5 * time.Second).
		SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, e.CommandName)
		}})
	if reg != nil {
		base.SetRegistry(reg)
	}
	client, err := mongo.Connect(append([]*options.ClientOptions{base}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), started...)
	}
}

// DialContext connects the driver to the server.
func (s *testServer) DialContext(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go s.serve(far)
	return near, nil
}

func (s *testServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		id, cmd, err := readMessage(conn)
		if err != nil {
			return
		}
		if writeMessage(conn, id, s.reply(cmd)) != nil {
			return
		}
	}
}

// readMessage reads an OP_MSG and returns its request id and its command. The command has the
// document sequences as arrays.
func readMessage(r io.Reader) (uint32, bson.Raw, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	le := binary.LittleEndian
	body := make([]byte, le.Uint32(head[:])-16)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	if op := le.Uint32(head[12:]); op != 2013 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	var cmd bson.D
	for b := body[4:]; len(b) > 0; {
		kind, size := b[0], le.Uint32(b[1:])
		section := b[1 : 1+size]
		b = b[1+size:]
		if kind == 0 {
			var d bson.D
			if err := bson.Unmarshal(section, &d); err != nil {
				return 0, nil, err
			}
			cmd = append(d, cmd...)
			continue
		}
		name, docs, arr := "", section[4:], bson.A{}
		for i, c := range docs {
			if c == 0 {
				name, docs = string(docs[:i]), docs[i+1:]
				break
			}
		}
		for len(docs) > 0 {
			n := le.Uint32(docs)
			arr = append(arr, bson.Raw(docs[:n]))
			docs = docs[n:]
		}
		cmd = append(cmd, bson.E{Key: name, Value: arr})
	}
	raw, err := bson.Marshal(cmd)
	return le.Uint32(head[4:]), raw, err
}

func writeMessage(w io.Writer, to uint32, doc any) error {
	b, err := bson.Marshal(doc)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	msg := le.AppendUint32(nil, uint32(21+len(b)))
	msg = le.AppendUint32(msg, 1)
	msg = le.AppendUint32(msg, to)
	msg = le.AppendUint32(msg, 2013)
	msg = append(msg, 0, 0, 0, 0, 0)
	_, err = w.Write(append(msg, b...))
	return err
}

func (s *testServer) reply(cmd bson.Raw) bson.D {
	first, err := cmd.IndexErr(0)
	if err != nil {
		return bson.D{{Key: "ok", Value: 0}}
	}
	switch first.Key() {
	case "hello", "isMaster":
		return bson.D{
			{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "msg", Value: "isdbgrid"},
			{Key: "maxBsonObjectSize", Value: int32(16 << 20)}, {Key: "maxMessageSizeBytes", Value: s.maxMessage},
			{Key: "maxWriteBatchSize", Value: s.maxBatch}, {Key: "logicalSessionTimeoutMinutes", Value: int32(30)},
			{Key: "minWireVersion", Value: int32(0)}, {Key: "maxWireVersion", Value: int32(25)},
		}
	case "endSessions":
		return bson.D{{Key: "ok", Value: 1}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, cmd)
	if s.fail != nil {
		if e, ok := s.fail(cmd).(serverError); ok {
			return bson.D{
				{Key: "ok", Value: 0}, {Key: "code", Value: e.code}, {Key: "errmsg", Value: e.Error()},
				{Key: "errorLabels", Value: e.labels},
			}
		}
	}
	ordered, _ := cmd.Lookup("ordered").BooleanOK()
	switch first.Key() {
	case "insert":
		n, failed := s.store(arrayOf(cmd, "documents"), ordered)
		d := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: n}}
		if len(failed) > 0 {
			d = append(d, bson.E{Key: "writeErrors", Value: failed})
		}
		return d
	case "update":
		var upserted bson.A
		for i := range arrayOf(cmd, "updates") {
			upserted = append(upserted, bson.D{{Key: "index", Value: i}, {Key: "_id", Value: s.upserted}})
		}
		return bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: len(upserted)}, {Key: "upserted", Value: upserted}}
	case "bulkWrite":
		var results bson.A
		inserted, refused := 0, 0
		for i, op := range arrayOf(cmd, "ops") {
			doc, ok := op.Lookup("document").DocumentOK()
			if !ok {
				results = append(results, bson.D{{Key: "ok", Value: 1}, {Key: "idx", Value: i}, {Key: "n", Value: 1}})
				continue
			}
			n, failed := s.store([]bson.Raw{doc}, ordered)
			inserted += n
			if len(failed) > 0 {
				refused++
				results = append(results, bson.D{
					{Key: "ok", Value: 0}, {Key: "idx", Value: i}, {Key: "n", Value: 0},
					{Key: "code", Value: 11000}, {Key: "errmsg", Value: "duplicate key"},
				})
				continue
			}
			results = append(results, bson.D{{Key: "ok", Value: 1}, {Key: "idx", Value: i}, {Key: "n", Value: 1}})
		}
		return bson.D{
			{Key: "ok", Value: 1}, {Key: "nInserted", Value: inserted}, {Key: "nErrors", Value: refused},
			{Key: "cursor", Value: bson.D{
				{Key: "id", Value: int64(0)}, {Key: "ns", Value: "admin.$cmd.bulkWrite"}, {Key: "firstBatch", Value: results},
			}},
		}
	}
	return bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}}
}

// store keeps docs. It returns their number, and a write error for each _id that is already stored.
func (s *testServer) store(docs []bson.Raw, ordered bool) (int, bson.A) {
	n := 0
	var failed bson.A
	for i, doc := range docs {
		id := doc.Lookup("_id")
		key := string(rune(id.Type)) + string(id.Value)
		if s.ids[key] {
			failed = append(failed, bson.D{
				{Key: "index", Value: i}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "duplicate key"},
			})
			if ordered {
				break
			}
			continue
		}
		s.ids[key] = true
		s.docs = append(s.docs, doc)
		n++
	}
	return n, failed
}

func (s *testServer) stored() []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]bson.Raw(nil), s.docs...)
}

// received returns the commands with the given name.
func (s *testServer) received(name string) []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cmds []bson.Raw
	for _, c := range s.commands {
		if c.Index(0).Key() == name {
			cmds = append(cmds, c)
		}
	}
	return cmds
}

func arrayOf(doc bson.Raw, key string) []bson.Raw {
	arr, ok := doc.Lookup(key).ArrayOK()
	if !ok {
		return nil
	}
	values, _ := arr.Values()
	docs := make([]bson.Raw, len(values))
	for i, v := range values {
		docs[i] = v.Document()
	}
	return docs
}
