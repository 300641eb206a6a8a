package memory

import (
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// parse returns a command, in which the sequences of the message are arrays.
func parse(body []byte) (bson.Raw, error) {
	_, rest, ok := wiremessage.ReadMsgFlags(body)
	var command bson.Raw
	var arrays bson.D
	for ok && len(rest) > 0 {
		var kind wiremessage.SectionType
		if kind, rest, ok = wiremessage.ReadMsgSectionType(rest); !ok {
			break
		}
		if kind == wiremessage.SingleDocument {
			var doc bsoncore.Document
			doc, rest, ok = wiremessage.ReadMsgSectionSingleDocument(rest)
			command = bson.Raw(doc)
			continue
		}
		var name string
		var docs []bsoncore.Document
		name, docs, rest, ok = wiremessage.ReadMsgSectionDocumentSequence(rest)
		var all bson.A
		for _, doc := range docs {
			all = append(all, bson.Raw(doc))
		}
		arrays = append(arrays, bson.E{Key: name, Value: all})
	}
	if !ok || command == nil {
		return nil, io.ErrUnexpectedEOF
	}
	if len(arrays) == 0 {
		return command, nil
	}
	var all bson.D
	if err := bson.Unmarshal(command, &all); err != nil {
		return nil, err
	}
	return marshal(append(all, arrays...)), nil
}

func reply(to int32, opcode wiremessage.OpCode, doc any) []byte {
	start, b := wiremessage.AppendHeaderStart(nil, 0, to, opcode)
	if opcode == wiremessage.OpMsg {
		b = wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(b, 0), wiremessage.SingleDocument)
	} else {
		b = append(b, make([]byte, 16)...) // flags, id of the cursor, position
		b = append(b, 1, 0, 0, 0)          // number of documents
	}
	raw, ok := doc.(bson.Raw)
	if !ok {
		raw = marshal(doc)
	}
	b = append(b, raw...)
	return bsoncore.UpdateLength(b, start, int32(len(b)))
}

func (s *Server) hello() bson.D {
	version := int32(21)
	var router bson.D
	if wire := s.Router.Load(); wire > 0 {
		version = wire
		router = bson.D{{Key: "msg", Value: "isdbgrid"}}
	}
	return append(router, bson.D{{Key: "ismaster", Value: true}, {Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "logicalSessionTimeoutMinutes", Value: int32(30)},
		{Key: "maxBsonObjectSize", Value: int32(16 << 20)}, {Key: "maxMessageSizeBytes", Value: int32(48_000_000)}, {Key: "maxWriteBatchSize", Value: int32(100_000)},
		{Key: "localTime", Value: time.Now()}, {Key: "minWireVersion", Value: int32(0)}, {Key: "maxWireVersion", Value: version}, {Key: "ok", Value: 1.0}}...)
}
