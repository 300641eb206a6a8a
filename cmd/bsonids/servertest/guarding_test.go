package servertest

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// byHand returns the commands of docs/guarding.md that set a validator: the one for binary values, and the one for text.
func byHand(t *testing.T) (commands []bson.D) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guarding.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?s)EJSON\.deserialize\((.*?)\)\)\n`).FindAllSubmatch(page, -1) {
		var command bson.D
		if err := bson.UnmarshalExtJSON(m[1], false, &command); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		commands = append(commands, command)
	}
	if len(commands) != 2 {
		t.Fatalf("%d commands", len(commands))
	}
	return commands
}

// wantRefused fails the test unless the validator of a collection refused a write, or the write was carried out.
func wantRefused(t *testing.T, refused bool, what any, err error) {
	t.Helper()
	var se mongo.ServerError
	if failed := errors.As(err, &se) && se.HasErrorCode(121); failed != refused || err != nil && !failed {
		t.Errorf("%v: %v, want refused %v", what, err, refused)
	}
}

// The validator of the page for binary values refuses 16 octets of subtype 3, alone and in an array, and nothing else, while
// apply converts the documents that are there. Without it, undo restores them.
func TestValidatorByHand(t *testing.T) {
	s, db := started(t, mongotest.CollMod, mongotest.BinaryOrder)
	coll := db.Collection("orders")
	var docs []any
	for i := range 20 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: in(v4(i), uuidrep.JavaLegacy)}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	check(t, db.RunCommand(t.Context(), byHand(t)[0]).Err())
	old, is := in(v4(1), uuidrep.JavaLegacy), in(v4(1), uuidrep.Standard)
	other := func(subtype byte, n int) bson.Binary { return bson.Binary{Subtype: subtype, Data: make([]byte, n)} }
	for _, tt := range []struct {
		refused bool
		v       any
	}{
		{true, old}, {true, bson.A{is, old}}, {true, other(3, 16)},
		{true, bson.Binary{Subtype: 3, Data: []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}},
		{false, is}, {false, other(3, 15)}, {false, other(3, 17)}, {false, other(0, 16)}, {false, other(2, 16)}, {false, other(4, 16)}, {false, other(5, 16)},
		{false, bson.A{other(3, 15), other(3, 17), is}}, {false, "text"}, {false, nil}, {false, bson.D{{Key: "id", Value: old}}},
	} {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "tried"}, {Key: "customer", Value: tt.v}})
		wantRefused(t, tt.refused, tt.v, err)
		deleted(t, coll, bson.D{{Key: "_id", Value: "tried"}})
	}
	_, err := coll.UpdateByID(t.Context(), int32(1), bson.D{{Key: "$set", Value: bson.D{{Key: "touched", Value: true}}}})
	wantRefused(t, false, "an update of an old document", err)
	did(t)(coll.UpdateByID(t.Context(), int32(1), bson.D{{Key: "$unset", Value: bson.D{{Key: "touched", Value: 1}}}}))
	dir := prepared(t, s, accepted)
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	_, err = coll.UpdateByID(t.Context(), int32(1), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: old}}}})
	wantRefused(t, true, "an update of a converted document", err)
	check(t, db.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "orders"}, {Key: "validator", Value: bson.D{}}}).Err())
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}

// The validator of the page for text refuses the usual spelling of a UUID in either letter case, and no other text.
func TestTextValidatorByHand(t *testing.T) {
	_, db := started(t, mongotest.CollMod)
	coll := db.Collection("orders")
	insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(0)}, {Key: "customer", Value: v4(0).String()}}})
	check(t, db.RunCommand(t.Context(), byHand(t)[1]).Err())
	for v, refused := range map[any]bool{
		"00112233-4455-6677-8899-aabbccddeeff": true, "00112233-4455-6677-8899-AABBCCDDEEFF": true,
		"00112233-4455-6677-8899-aabbccddeeff\n": false, "x00112233-4455-6677-8899-aabbccddeeff": false, "00112233-4455-6677-8899-aabbccddee": false,
		"": false, int32(1): false,
	} {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "customer", Value: v}})
		wantRefused(t, refused, v, err)
	}
}
