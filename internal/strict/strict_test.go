package strict

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// The texts are those of MongoDB 4.4.6, and of idl_parser.cpp.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		command   bson.D
		sequences []string
		code      int32
		text      string
	}{
		{bson.D{{Key: "renameCollection", Value: "d.a"}, {Key: "to", Value: "d.b"}, {Key: "maxTimeMS", Value: 1}, {Key: "lsid", Value: 1}, {Key: "maxTimeMS", Value: 2}, {Key: "$db", Value: "admin"}}, nil,
			40413, "BSON field 'OperationSessionInfo.maxTimeMS' is a duplicate field"},
		{bson.D{{Key: "ping", Value: 1}, {Key: "x", Value: 1}, {Key: "x", Value: 1}}, nil, 40413, "BSON field 'OperationSessionInfo.x' is a duplicate field"},
		{bson.D{{Key: "ping", Value: 1}, {Key: "x", Value: 1}}, nil, 0, ""},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{}}}, []string{"documents"}, 40413, "BSON field 'OperationSessionInfo.documents' is a duplicate field"},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "ordered", Value: true}}, []string{"documents"}, 0, ""},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "order", Value: true}}, []string{"documents"}, 40415, "BSON field 'insert.order' is an unknown field."},
		{bson.D{{Key: "insert", Value: "c"}}, []string{"updates"}, 40415, "BSON field 'insert.updates' is an unknown field."},
		{bson.D{{Key: "drop", Value: "c"}, {Key: "writeConcern", Value: bson.D{}}, {Key: "$db", Value: "d"}}, nil, 0, ""},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: 1}, {Key: "q", Value: 1}}}}}, nil, 0, ""}, // at the top level only
		// The driver sends these with what its users ask for.
		{bson.D{{Key: "findAndModify", Value: "c"}, {Key: "bypassEmptyTsReplacement", Value: true}, {Key: "rawData", Value: true}}, nil, 0, ""},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "encryptionInformation", Value: bson.D{}}}, []string{"documents"}, 0, ""},
		{bson.D{{Key: "dropIndexes", Value: "c"}, {Key: "index", Value: "i"}, {Key: "rawData", Value: true}}, nil, 0, ""},
		{bson.D{}, nil, 0, ""},
	} {
		command, err := bson.Marshal(tt.command)
		if err != nil {
			t.Fatal(err)
		}
		r := Check(command, tt.sequences...)
		if r == nil {
			r = &Refusal{}
		}
		if r.Code != tt.code || r.Text != tt.text {
			t.Errorf("%v: got %d, %q", tt.command, r.Code, r.Text)
		}
		answer := Message(message(t, command, tt.sequences...))
		if (answer != nil) != (tt.code != 0) {
			t.Errorf("%v: got the answer %q", tt.command, answer)
		}
		if answer == nil {
			continue
		}
		_, _, to, _, rest, _ := wiremessage.ReadHeader(answer)
		doc, _, ok := wiremessage.ReadMsgSectionSingleDocument(rest[5:])
		if reply := bson.Raw(doc); !ok || to != 7 || reply.Lookup("code").Int32() != tt.code || reply.Lookup("errmsg").StringValue() != tt.text || reply.Lookup("ok").Double() != 0 {
			t.Errorf("%v: got the answer %v to %d", tt.command, reply, to)
		}
	}
}

// A message that is cut off or damaged does not make Message panic.
func TestMessageDamaged(t *testing.T) {
	command, err := bson.Marshal(bson.D{{Key: "insert", Value: "c"}, {Key: "x", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	whole := message(t, command, "documents")
	if Message(whole) == nil {
		t.Fatal("it is not refused")
	}
	for n := range whole {
		Message(whole[:n]) // does not panic
		damaged := slices.Clone(whole)
		damaged[n] ^= 0xff
		Message(damaged)
	}
}

// message returns a message with the id 7.
func message(t *testing.T, command bson.Raw, sequences ...string) []byte {
	t.Helper()
	start, b := wiremessage.AppendHeaderStart(nil, 7, 0, wiremessage.OpMsg)
	b = wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(b, 0), wiremessage.SingleDocument)
	b = append(b, command...)
	for _, name := range sequences {
		b = wiremessage.AppendMsgSectionType(b, wiremessage.DocumentSequence)
		at := int32(len(b))
		b = append(bsoncore.AppendInt32(b, 0), name...)
		b = append(b, 0)
		b = append(b, command...)
		b = bsoncore.UpdateLength(b, at, int32(len(b))-at)
	}
	return bsoncore.UpdateLength(b, start, int32(len(b)))
}
