package front

import (
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
	"go.uber.org/goleak"
)

func message(id int32, flags wiremessage.MsgFlag, command bson.D) []byte {
	body, err := bson.Marshal(command)
	if err != nil {
		panic(err)
	}
	start, b := wiremessage.AppendHeaderStart(nil, id, 0, wiremessage.OpMsg)
	b = append(wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(b, flags), wiremessage.SingleDocument), body...)
	return bsoncore.UpdateLength(b, start, int32(len(b)))
}

// A message that is refused does not reach the server. The client gets an answer if it waits for one.
func TestFront(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // a server that sends back what it gets
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	f, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.Serve(l.Addr().String())
	client, err := net.Dial("tcp", f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	twice := bson.D{{Key: "drop", Value: "c"}, {Key: "maxTimeMS", Value: 1}, {Key: "maxTimeMS", Value: 1}}
	once := twice[:2]
	for _, tt := range []struct {
		id, from int32 // of whom the answer is: 0 is the server, which does not change the message
		flags    wiremessage.MsgFlag
		command  bson.D
	}{{1, 0, 0, once}, {2, 2, 0, twice}, {3, -1, wiremessage.MoreToCome, twice}, {4, 0, wiremessage.MoreToCome, once}, {5, 5, 0, twice}, {6, 0, 0, once}} {
		if _, err := client.Write(message(tt.id, tt.flags, tt.command)); err != nil {
			t.Fatal(err)
		}
		if tt.from < 0 {
			continue
		}
		answer, err := readMessage(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, id, to, _, _, _ := wiremessage.ReadHeader(answer)
		if to != tt.from || to == 0 && id != tt.id {
			t.Errorf("%d: an answer of %d to %d", tt.id, id, to)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := readMessage(client, nil); err == nil {
		t.Error("the connection is open")
	}
	_ = client.Close()
}
