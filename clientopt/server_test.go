package clientopt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/uuidrep"
)

var testUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

// The stored forms of testUUID, from the test plan of the specification.
var stored = map[uuidrep.Representation]bson.Binary{
	uuidrep.Standard:     {Subtype: 4, Data: mustHex("00112233445566778899AABBCCDDEEFF")},
	uuidrep.CSharpLegacy: {Subtype: 3, Data: mustHex("33221100554477668899AABBCCDDEEFF")},
	uuidrep.JavaLegacy:   {Subtype: 3, Data: mustHex("7766554433221100FFEEDDCCBBAA9988")},
	uuidrep.PythonLegacy: {Subtype: 3, Data: mustHex("00112233445566778899AABBCCDDEEFF")},
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// server is a MongoDB server at the other end of a pipe. It answers every command with success.
// Every find returns the document found. It keeps the commands that clients send.
type server struct {
	found bson.D

	mu       sync.Mutex
	commands []bson.Raw
}

// options returns the options of a client of the server. The client must be disconnected before its
// test ends.
func (s *server) options() *options.ClientOptions {
	return options.Client().SetDialer(s).
		SetServerSelectionTimeout(5 * time.Second).
		SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1)). // OP_MSG from the first message on
		SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.commands = append(s.commands, slices.Clone(e.Command))
		}})
}

// sent returns the commands with the given name that the server has received.
func (s *server) sent(name string) []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.commands), func(c bson.Raw) bool { return c.Lookup(name).IsZero() })
}

func (s *server) DialContext(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		for s.answer(far) == nil {
		}
	}()
	return near, nil
}

func (s *server) answer(conn net.Conn) error {
	le := binary.LittleEndian
	var head [16]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, conn, int64(le.Uint32(head[:]))-16); err != nil {
		return err
	}
	reply, err := bson.Marshal(bson.D{
		{Key: "ok", Value: 1}, {Key: "n", Value: 1},
		{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 25},
		{Key: "maxBsonObjectSize", Value: 1 << 24}, {Key: "maxMessageSizeBytes", Value: 48_000_000},
		{Key: "maxWriteBatchSize", Value: 100_000},
		{Key: "cursor", Value: bson.D{
			{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.coll"}, {Key: "firstBatch", Value: bson.A{s.found}},
		}},
	})
	if err != nil {
		return err
	}
	msg := le.AppendUint32(nil, uint32(16+5+len(reply)))
	msg = le.AppendUint32(msg, 0)
	msg = append(msg, head[4:8]...)  // responseTo
	msg = le.AppendUint32(msg, 2013) // OP_MSG
	msg = append(msg, 0, 0, 0, 0, 0) // no flags, one document
	_, err = conn.Write(append(msg, reply...))
	return err
}

func connect(t *testing.T, s *server, uri string, opts ...Option) *mongo.Client {
	t.Helper()
	client, err := Connect(uri, append([]Option{WithClientOptions(s.options())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// insertedID returns the _id of the only insert that s has received since the last call.
func (s *server) insertedID(t *testing.T) bson.RawValue {
	t.Helper()
	inserts := s.sent("insert")
	if len(inserts) != 1 {
		t.Fatalf("%d inserts were sent", len(inserts))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = nil
	return inserts[0].Lookup("documents", "0", "_id")
}

func wantStored(t *testing.T, got bson.RawValue, want uuidrep.Representation) {
	t.Helper()
	subtype, data, ok := got.BinaryOK()
	if w := stored[want]; !ok || subtype != w.Subtype || !bytes.Equal(data, w.Data) {
		t.Errorf("%v was sent, want the UUID as %v", got, want)
	}
}
