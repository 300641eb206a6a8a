package servertest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// lastSkipped returns how many documents with values that were left the last run has in the record.
func lastSkipped(t *testing.T, db *mongo.Database, collection string) int64 {
	t.Helper()
	var run record.Run
	err := db.Collection(record.Name).FindOne(t.Context(), bson.D{{Key: "collection", Value: collection}, {Key: "kind", Value: record.Convert}},
		options.FindOne().SetSort(bson.D{{Key: "epoch", Value: -1}})).Decode(&run)
	if err != nil {
		t.Fatal(err)
	}
	return run.Progress.Skipped
}

// The record has the number of documents with values that a copy leaves as they are.
func TestCopySkipped(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	var docs []any
	for i := range 2 {
		value := append(make([]byte, 15), byte(1+i)) // without variant and version
		docs = append(docs, bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "customer", Value: bson.Binary{Subtype: 3, Data: value}}})
	}
	for i := range 20 {
		docs = append(docs, cutDoc(i, 0))
	}
	insert(t, db.Collection("c"), docs)
	command(t, s, "apply", prepared(t, s, "standard", convertFields("javaLegacy", ""), intoNew("c")), "--write").want(t, failure.ExitIncomplete)
	if n := lastSkipped(t, db, "c"); n != 2 {
		t.Errorf("%d documents", n)
	}
}

// A copy that follows its source gets a value that it leaves as it is. The record and the exit code
// have it in all later runs too, and cutover refuses the copy.
func TestFollowSkipped(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.ChangeStreams)
	s.Require(t, mongotest.CollMod)
	db := connect(t, s)
	var docs []any
	for i := range 20 {
		docs = append(docs, cutDoc(i, 0))
	}
	insert(t, db.Collection("c"), docs)
	dir := followPlan(t, s)
	command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
	if n := lastSkipped(t, db, "c"); n != 0 {
		t.Errorf("%d documents", n)
	}
	insert(t, db.Collection("c"), []any{bson.D{{Key: "_id", Value: in(cutID(100), uuidrep.JavaLegacy)}, {Key: "customer", Value: bson.Binary{Subtype: 3, Data: append(make([]byte, 15), 100)}}}})
	for range 2 {
		command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitIncomplete)
		if n := lastSkipped(t, db, "c"); n != 1 {
			t.Errorf("%d documents", n)
		}
		r := command(t, s, "cutover", "--db", s.Database(), "c").want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "left values in 1 documents") {
			t.Error(r.stderr)
		}
	}
	command(t, s, "cutover", "--db", s.Database(), "c", "--with-skipped", "c").want(t, failure.ExitOK)
}
