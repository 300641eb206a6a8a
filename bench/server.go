package bench

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// A replier returns the reply to a command, whose first element is name and whose document sequence is docs, nil if it has
// none. An error is sent as the reply. The bytes of the command are valid until it returns.
type replier func(name bson.RawElement, command bson.Raw, docs []bsoncore.Document) (bson.Raw, error)

// listen starts a server on loopback that answers with reply, and returns its connection string. It is a member of a
// replica set with sessions, which the client knows by its address alone.
func listen(reply replier) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				c := serverConn{Conn: conn, reply: reply}
				for c.answer() == nil {
				}
			}()
		}
	}()
	return "mongodb://" + listener.Addr().String() + "/?directConnection=true&serverMonitoringMode=poll", nil
}

// hello is the reply to hello, and done to what needs no more.
var hello, done = encoded(bson.D{
	{Key: "isWritablePrimary", Value: true}, {Key: "setName", Value: "bench"}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
	{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000},
	{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "ok", Value: 1},
}), encoded(bson.D{{Key: "ok", Value: 1}})

// encoded returns v as the driver encodes it.
func encoded(v any) bson.Raw {
	doc, err := bson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return doc
}

// A serverConn is a connection of a client. It keeps its memory between messages.
type serverConn struct {
	net.Conn
	reply   replier
	in, out []byte
}

// answer answers one message: OP_MSG, or the OP_QUERY of a first hello.
func (c *serverConn) answer() error {
	var header [16]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return err
	}
	size := int(binary.LittleEndian.Uint32(header[:])) - len(header)
	if cap(c.in) < size {
		c.in = make([]byte, size)
	}
	body := c.in[:size]
	if _, err := io.ReadFull(c, body); err != nil {
		return err
	}
	c.out = append(c.out[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	c.out = append(c.out, header[4:8]...) // responseTo
	const opReply, opQuery, opMsg = 1, 2004, 2013
	switch op := binary.LittleEndian.Uint32(header[12:]); op {
	case opQuery:
		c.out = binary.LittleEndian.AppendUint32(c.out, opReply)
		c.out = append(append(c.out, make([]byte, 16)...), 1, 0, 0, 0) // flags, cursor, start; one document
		c.out = append(c.out, hello...)
	case opMsg:
		c.out = binary.LittleEndian.AppendUint32(c.out, op)
		c.out = append(c.out, 0, 0, 0, 0, 0) // flags, the kind of the section
		reply, err := c.replyTo(body)
		if err != nil {
			reply = encoded(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 1}, {Key: "errmsg", Value: err.Error()}})
		}
		c.out = append(c.out, reply...)
	default:
		return fmt.Errorf("bench: a message of the kind %d", op)
	}
	binary.LittleEndian.PutUint32(c.out, uint32(len(c.out)))
	_, err := c.Write(c.out)
	return err
}

// replyTo returns the reply to the OP_MSG in body.
func (c *serverConn) replyTo(body []byte) (bson.Raw, error) {
	_, rest, ok := wiremessage.ReadMsgFlags(body)
	var command bsoncore.Document
	var docs []bsoncore.Document
	for ok && len(rest) > 0 {
		var kind wiremessage.SectionType
		kind, rest, _ = wiremessage.ReadMsgSectionType(rest)
		if kind == wiremessage.SingleDocument {
			command, rest, ok = wiremessage.ReadMsgSectionSingleDocument(rest)
		} else {
			_, docs, rest, ok = wiremessage.ReadMsgSectionDocumentSequence(rest)
		}
	}
	if !ok || command == nil {
		return nil, io.ErrUnexpectedEOF
	}
	name, err := bson.Raw(command).IndexErr(0)
	if err != nil {
		return nil, err
	}
	switch name.Key() {
	case "hello", "isMaster", "ismaster":
		return hello, nil
	case "ping", "endSessions", "killCursors":
		return done, nil
	}
	return c.reply(name, bson.Raw(command), docs)
}
