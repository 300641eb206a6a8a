package main

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// proxy stands between programs and a server, and lets a test pass a command on, hold it back or answer it.
type proxy struct {
	addr   string
	server string
	handle func(request, func() []byte) []byte
}

// request is a command of a client.
type request struct {
	id        int32
	command   bson.Raw
	documents int // in sequences beside the command: the updates of an update
}

// name is what the command is called.
func (r request) name() string {
	e, err := r.command.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}

// reply is an answer to the command.
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

// refuse is an answer to an update that refuses each of its updates.
func (r request) refuse(code int32, errmsg string) []byte {
	var refused bson.A
	for i := range r.documents {
		refused = append(refused, bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: code}, {Key: "errmsg", Value: errmsg}})
	}
	return r.reply(bson.D{{Key: "n", Value: int32(0)}, {Key: "nModified", Value: int32(0)}, {Key: "writeErrors", Value: refused}, {Key: "ok", Value: 1.0}})
}

// startProxy starts a proxy of the server at addr. Each command goes to handle, with a function that passes it on and
// returns the server's answer, whatever becomes of the client meanwhile; handle returns the answer. It is called by
// several goroutines at the same time.
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

// URI is the proxy's connection string.
func (p *proxy) URI() string { return "mongodb://" + p.addr + "/?directConnection=true" }

// serve serves one client. The connection to the server goes to opened: a server of MongoDB is asked by every client's
// monitor for an answer that it keeps for ten seconds, and nothing else would end the wait for it.
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
			answer, _ := readMessage(server) // nil where the server is gone
			return answer
		}
		var answer []byte
		if r, ok := parseRequest(message); ok {
			// A monitor allows the server further answers without a request. Here every answer has one.
			flags, _, _ := wiremessage.ReadMsgFlags(message[16:])
			wiremessage.AppendMsgFlags(message[:16], flags&^wiremessage.ExhaustAllowed)
			answer = p.handle(r, pass)
		} else {
			answer = pass() // the handshake's older form
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

// parseRequest takes an OP_MSG apart; ok is false for every other message.
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
		r.documents += len(docs)
		rest, ok = after, found
	}
	return r, ok && r.command != nil
}

// A server of MongoDB keeps the answer to a client's monitor until something changes or time is up, and may go on to send
// answers. Neither holds up a test.
func TestProxyOfStreamingServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan wiremessage.MsgFlag, 1)
	left := make(chan error, 1)
	go func() {
		defer close(asked)
		server, err := l.Accept()
		if err != nil {
			left <- err
			return
		}
		defer server.Close()
		message, err := readMessage(server)
		if err != nil {
			left <- err
			return
		}
		flags, _, _ := wiremessage.ReadMsgFlags(message[16:])
		asked <- flags
		_ = server.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err = readMessage(server)
		left <- err
	}()
	t.Run("monitor", func(t *testing.T) {
		p := startProxy(t, l.Addr().String(), func(_ request, pass func() []byte) []byte { return pass() })
		client, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		hello, err := bson.Marshal(bson.D{{Key: "hello", Value: 1}, {Key: "maxAwaitTimeMS", Value: 10_000}, {Key: "$db", Value: "admin"}})
		if err != nil {
			t.Fatal(err)
		}
		start, b := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
		b = wiremessage.AppendMsgFlags(b, wiremessage.ExhaustAllowed)
		b = append(wiremessage.AppendMsgSectionType(b, wiremessage.SingleDocument), hello...)
		if _, err := client.Write(bsoncore.UpdateLength(b, start, int32(len(b)))); err != nil {
			t.Fatal(err)
		}
		if flags, ok := <-asked; !ok || flags != 0 {
			t.Errorf("the server was asked with flags %b, %v", flags, ok)
		}
	})
	if err := <-left; err != io.EOF {
		t.Errorf("the proxy waited for the server: %v", err)
	}
}
