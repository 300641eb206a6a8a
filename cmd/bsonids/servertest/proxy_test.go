package servertest

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/bsonids/bsonids/internal/strict"
)

// proxy is a proxy between clients and a server. A test can forward, delay or answer each command.
type proxy struct {
	addr   string
	server string
	handle func(request, func() []byte) []byte
}

// request is a command of a client.
type request struct {
	id        int32
	command   bson.Raw
	sequence  []bsoncore.Document // outside the command: the updates of an update
	documents int                 // in the sequence
}

// name returns the name of the command.
func (r request) name() string {
	e, err := r.command.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

// on returns the name of the collection that the command is about.
func (r request) on() string {
	name, _ := r.command.Lookup(r.name()).StringValueOK()
	return name
}

// isBatch reports whether the updates of a command are those of a batch, as opposed to a probe.
func isBatch(r request) bool {
	ordered, ok := r.command.Lookup("ordered").BooleanOK()
	return ok && !ordered
}

// writesTo matches batches of changes to one of the collections.
func writesTo(names ...string) func(request) bool {
	return func(r request) bool {
		return slices.Contains(names, r.on()) && slices.Contains([]string{"update", "insert", "delete"}, r.name()) && isBatch(r)
	}
}

// asks matches a command about a collection.
func asks(command, name string) func(request) bool {
	return func(r request) bool { return r.name() == command && r.on() == name }
}

// ok is the answer of a server that has done what it was asked to, with more fields.
func (r request) ok(more ...bson.E) []byte {
	return r.reply(append(bson.D{{Key: "ok", Value: 1.0}}, more...))
}

// fail is the answer of a server that refuses a command.
func (r request) fail(code int32, errmsg string) []byte {
	name := map[int32]string{13: "Unauthorized"}[code]
	return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: errmsg}})
}

// router is the answer of a mongos to its greeting.
func (r request) router(wireVersion int32, more ...bson.E) []byte {
	return r.ok(append(more, bson.E{Key: "ismaster", Value: true}, bson.E{Key: "msg", Value: "isdbgrid"}, bson.E{Key: "maxBsonObjectSize", Value: int32(16 << 20)},
		bson.E{Key: "maxMessageSizeBytes", Value: int32(48_000_000)}, bson.E{Key: "maxWriteBatchSize", Value: int32(100_000)},
		bson.E{Key: "minWireVersion", Value: int32(0)}, bson.E{Key: "maxWireVersion", Value: wireVersion})...)
}

// greets reports whether a command is the greeting of a client.
func (r request) greets() bool {
	return strings.EqualFold(r.name(), "hello") || strings.EqualFold(r.name(), "isMaster")
}

// reply returns an answer to the command.
func (r request) reply(doc any) []byte {
	body, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	start, b := wiremessage.AppendHeaderStart(nil, 0, r.id, wiremessage.OpMsg)
	b = wiremessage.AppendMsgFlags(b, 0)
	b = append(wiremessage.AppendMsgSectionType(b, wiremessage.SingleDocument), body...)
	return bsoncore.UpdateLength(b, start, int32(len(b)))
}

// refuse returns an answer that refuses each update of an update command.
func (r request) refuse(code int32, errmsg string) []byte {
	var refused bson.A
	for i := range r.documents {
		refused = append(refused, bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: code}, {Key: "errmsg", Value: errmsg}})
	}
	return r.reply(bson.D{{Key: "n", Value: int32(0)}, {Key: "nModified", Value: int32(0)}, {Key: "writeErrors", Value: refused}, {Key: "ok", Value: 1.0}})
}

// cursor returns an answer with all documents of a cursor.
func (r request) cursor(ns string, docs ...any) []byte {
	return r.reply(bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: ns}, {Key: "firstBatch", Value: bson.A(docs)}}}, {Key: "ok", Value: 1.0}})
}

// startProxy starts a proxy of the server at addr. It calls handle for each command, from several
// goroutines at the same time. The function pass forwards the command and returns the answer of the
// server, even if the client has disconnected. handle returns the answer for the client. A command that
// MongoDB refuses because of its fields gets this answer.
func startProxy(t testing.TB, addr string, handle func(r request, pass func() []byte) []byte) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), server: addr, handle: handle}
	var mu sync.Mutex
	var open []net.Conn
	ended := false
	opened := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		if open = append(open, c); ended {
			_ = c.Close()
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			opened(client)
			serving.Go(func() { p.serve(client, opened) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		ended = true
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return p
}

// lostAfter starts a proxy that loses the commands that match, except for the first n.
func lostAfter(t testing.TB, s target, n int, match func(request) bool) target {
	t.Helper()
	var seen atomic.Int64
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if match(r) && seen.Add(1) > int64(n) {
			return nil
		}
		return pass()
	})
}

// justBefore starts a proxy that calls do once, before the server gets the first command that matches.
func justBefore(t testing.TB, s target, match func(request) bool, do func()) target {
	t.Helper()
	var once sync.Once
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if match(r) {
			once.Do(do)
		}
		return pass()
	})
}

// justAfter starts a proxy that calls do once, after the server has carried out the first command that matches and before the client
// has the answer.
func justAfter(t testing.TB, s target, match func(request) bool, do func()) target {
	t.Helper()
	var once sync.Once
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if match(r) {
			once.Do(do)
		}
		return answer
	})
}

// URI returns the connection string of the proxy.
func (p *proxy) URI() string { return "mongodb://" + p.addr + "/?directConnection=true" }

// serve serves one client. It passes the connection to the server to opened, so that it can be
// closed: the monitor of a client asks a MongoDB server for an answer that the server delays for
// ten seconds, and nothing else would end this wait.
func (p *proxy) serve(client net.Conn, opened func(net.Conn)) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	opened(server)
	for {
		message, err := readMessage(client)
		if err != nil {
			return
		}
		pass := func() []byte {
			if _, err := server.Write(message); err != nil {
				return nil
			}
			answer, _ := readMessage(server) // nil if the connection to the server is closed
			return answer
		}
		answer := strict.Message(message)
		if r, ok := parseRequest(message); answer != nil {
			// The server would refuse it, too, unless handle answered for it.
		} else if ok {
			// A monitor allows the server to send further answers without a request. Here every
			// answer has one.
			flags, _, _ := wiremessage.ReadMsgFlags(message[16:])
			wiremessage.AppendMsgFlags(message[:16], flags&^wiremessage.ExhaustAllowed)
			answer = p.handle(r, pass)
		} else {
			answer = pass() // the older form of the handshake
		}
		if answer == nil {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

func readMessage(r io.Reader) ([]byte, error) {
	b := make([]byte, 16, 1024)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	n, _, _ := bsoncore.ReadLength(b)
	b = slices.Grow(b, int(n)-len(b))[:n]
	if _, err := io.ReadFull(r, b[16:]); err != nil {
		return nil, err
	}
	return b, nil
}

// parseRequest parses an OP_MSG; ok is false for every other message.
func parseRequest(message []byte) (r request, ok bool) {
	_, id, _, opcode, rest, ok := wiremessage.ReadHeader(message)
	if !ok || opcode != wiremessage.OpMsg {
		return r, false
	}
	r.id = id
	_, rest, ok = wiremessage.ReadMsgFlags(rest)
	for ok && len(rest) > 0 {
		var kind wiremessage.SectionType
		if kind, rest, ok = wiremessage.ReadMsgSectionType(rest); !ok {
			break
		}
		if kind == wiremessage.SingleDocument {
			doc, after, found := wiremessage.ReadMsgSectionSingleDocument(rest)
			r.command, rest, ok = bson.Raw(doc), after, found
			continue
		}
		_, docs, after, found := wiremessage.ReadMsgSectionDocumentSequence(rest)
		r.sequence, r.documents = append(r.sequence, docs...), r.documents+len(docs)
		rest, ok = after, found
	}
	return r, ok && r.command != nil
}
