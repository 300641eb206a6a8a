package cursors_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// server is a MongoDB server at the other end of a pipe. It answers a find and an aggregate with the first of its batches,
// and each getMore with the next one. After the last one the cursor is closed.
type server struct {
	batches []bson.A
	token   bson.D // the token behind each batch, if not nil

	mu       sync.Mutex
	next     int
	commands []string // the names of the commands that were sent
}

func (s *server) collection(t testing.TB, reg *bson.Registry, bsonOpts *options.BSONOptions) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().SetDialer(s).SetRegistry(reg).SetBSONOptions(bsonOpts).
		SetHosts([]string{"h"}).SetServerSelectionTimeout(5 * time.Second).
		SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1))) // OP_MSG from the first message on
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database("db").Collection("c")
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
	body := make([]byte, le.Uint32(head[:])-16)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	elements, err := bson.Raw(body[5:]).Elements() // behind the flags and the kind of the section
	if err != nil {
		return err
	}
	reply, err := bson.Marshal(s.reply(elements[0].Key()))
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

func (s *server) reply(command string) bson.D {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, command)
	reply := bson.D{
		{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true},
		{Key: "setName", Value: "rs"}, {Key: "hosts", Value: bson.A{"h:27017"}}, {Key: "me", Value: "h:27017"},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 25}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
		{Key: "maxBsonObjectSize", Value: 1 << 24}, {Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000},
	}
	batch := "nextBatch"
	switch command {
	case "find", "aggregate":
		s.next, batch = 0, "firstBatch"
	case "getMore":
	default:
		return reply
	}
	cursor := bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.c"}, {Key: batch, Value: bson.A{}}}
	if s.next < len(s.batches) {
		cursor[2].Value = s.batches[s.next]
		s.next++
	}
	if s.next < len(s.batches) {
		cursor[0].Value = int64(7)
	}
	if s.token != nil {
		cursor = append(cursor, bson.E{Key: "postBatchResumeToken", Value: s.token})
	}
	return append(reply, bson.E{Key: "cursor", Value: cursor})
}
