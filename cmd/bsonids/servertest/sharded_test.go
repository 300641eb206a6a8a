package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// clustered returns a database of a sharded cluster, and what runs a command on its router.
func clustered(t *testing.T) (server *mongotest.Server, db *mongo.Database, admin func(command bson.D)) {
	t.Helper()
	server, db = started(t)
	var is struct{ Msg string }
	if err := db.RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Decode(&is); err != nil || is.Msg != "isdbgrid" {
		t.Skipf("the server is no router of a sharded cluster: it says msg %q", is.Msg)
	}
	return server, db, func(command bson.D) {
		t.Helper()
		if err := db.Client().Database("admin").RunCommand(t.Context(), command).Err(); err != nil {
			t.Fatalf("%v: %v", command, err)
		}
	}
}

// On a sharded cluster, values in the shard key are converted in place, and restored. The key is in two chunks, so that
// documents move: values of subtype 3 are less than those of subtype 4 of the same length.
func TestShardKey(t *testing.T) {
	s, db, admin := clustered(t)
	coll := db.Collection("events")
	ns := db.Name() + ".events"
	admin(bson.D{{Key: "enableSharding", Value: db.Name()}})
	admin(bson.D{{Key: "shardCollection", Value: ns}, {Key: "key", Value: bson.D{{Key: "user", Value: 1}, {Key: "region", Value: 1}}}})
	border := bson.D{{Key: "user", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}, {Key: "region", Value: bson.MinKey{}}}
	admin(bson.D{{Key: "split", Value: ns}, {Key: "middle", Value: border}})
	want := make(map[string]bson.Raw)
	var docs []any
	for i := range 60 {
		u, v := uuid.New(), uuid.New()
		doc := func(r uuidrep.Representation) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: in(u, r)}, {Key: "region", Value: fmt.Sprint(i % 3)}, {Key: "ref", Value: in(v, r)}}
		}
		docs = append(docs, doc(uuidrep.JavaLegacy))
		note(want, doc(uuidrep.Standard))
	}
	insert(t, coll, docs)
	before := all(t, coll)
	dir := filepath.Dir(planned(t, s))
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, coll), want)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}

// A copy of a sharded collection is made only into one that is sharded alike.
func TestShardedInto(t *testing.T) {
	s, db, admin := clustered(t)
	coll := db.Collection("users")
	admin(bson.D{{Key: "enableSharding", Value: db.Name()}})
	shard := func(name string) {
		admin(bson.D{{Key: "shardCollection", Value: db.Name() + "." + name}, {Key: "key", Value: bson.D{{Key: "_id", Value: "hashed"}}}})
	}
	shard("users")
	want := make(map[string]bson.Raw)
	var docs []any
	for range 60 {
		u := uuid.New()
		docs = append(docs, bson.D{{Key: "_id", Value: in(u, uuidrep.JavaLegacy)}})
		note(want, bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}})
	}
	insert(t, coll, docs)
	dir := filepath.Dir(planned(t, s))
	if r := command(t, s, applying(dir)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, `sh.shardCollection("`+db.Name()+`.users_standard", {_id: "hashed"})`) {
		t.Error(r.stderr)
	}
	shard("users_standard")
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("users_standard")), want)
}
