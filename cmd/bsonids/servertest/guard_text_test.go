package servertest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A guard against text refuses UUIDs in every usual spelling and no other text, before, during and
// after the conversion. The second server does not know the conditions for documents in arrays.
func TestGuardText(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.CollMod)
	db := connect(t, s)
	if err := db.CreateCollection(t.Context(), "c", options.CreateCollection().SetValidator(own)); err != nil {
		t.Fatal(err)
	}
	coll := db.Collection("c")
	var docs []any
	for i := range 40 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(i)}, {Key: "customer", Value: spelling(v4(i), i)},
			{Key: "note", Value: v4(i).String()}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	flags := []string{"--db", s.Database(), "--collection", "c", "--from", "text", "--field", "customer"}
	guard := func(code int, args ...string) result {
		t.Helper()
		return command(t, s, append(append([]string{"guard"}, flags...), args...)...).want(t, code)
	}
	if r := guard(failure.ExitOK); !strings.Contains(r.stdout, "guard against text; dry run") || !strings.Contains(r.stdout, "40 old values in 40 documents") ||
		!strings.Contains(r.stdout, "not guarded: note, with 40 values that are text") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	guard(failure.ExitOK, "--output", "json")
	guard(failure.ExitOK, "--write")
	try := func(refused bool, key string, v any) {
		t.Helper()
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "n", Value: int32(1)}, {Key: "test", Value: true}, {Key: key, Value: v}})
		var se mongo.ServerError
		if failed := errors.As(err, &se) && se.HasErrorCode(121); failed != refused || err != nil && !failed {
			t.Errorf("%s: %v: %v, want refused %v", key, v, err, refused)
		}
	}
	inserts := func() {
		t.Helper()
		u := v4(1)
		for n := range 8 {
			try(true, "customer", spelling(u, n))
			try(true, "customer", bson.A{"", spelling(u, n)})
			try(false, "customer", spelling(u, n)+"\n")
			try(false, "customer", "x"+spelling(u, n))
			try(false, "note", spelling(u, n))
		}
		try(false, "customer", in(u, uuidrep.Standard))
		try(false, "customer", bson.A{"", "none", in(u, uuidrep.Standard)})
		if _, err := coll.DeleteMany(t.Context(), bson.D{{Key: "test", Value: true}}); err != nil {
			t.Fatal(err)
		}
	}
	inserts()
	if r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "standard", "--to", "text", "--field", "note", "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "is guarded against text") {
		t.Error(r.stderr)
	}
	dir := t.TempDir()
	undo := filepath.Join(dir, "undo")
	guard(failure.ExitIncomplete, "--level", "strict", "--write")
	command(t, s, append([]string{"convert", "--write", "--state", filepath.Join(dir, "state"), "--undo-log", undo}, flags...)...).want(t, failure.ExitOK)
	if r := guard(failure.ExitOK, "--level", "strict", "--write"); !strings.Contains(r.stdout, "the second pass found no old value") {
		t.Error(r.stdout)
	}
	inserts()
	if r := command(t, s, "undo", undo, "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "is guarded against text") {
		t.Error(r.stderr)
	}
	if r := command(t, s, "guard", "--db", s.Database(), "--collection", "c", "--from", "generic", "--field", "customer", "--write", "--confirm-unordered").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "is guarded already, against text") {
		t.Error(r.stderr)
	}
	command(t, s, "guard", "--db", s.Database(), "--collection", "c", "--remove", "--write").want(t, failure.ExitOK)
	command(t, s, "undo", undo, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}
