package servertest

import (
	"errors"
	"path/filepath"
	"sync"
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
	s, db := started(t, mongotest.CollMod)
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
	file := planned(t, s)
	text := "        stored: text\n        decision: "
	edit(t, file, "path: \"customer\"\n"+text+"leave", "path: \"customer\"\n"+text+"convert from text", "guard: none", "guard: strict")
	dir := filepath.Dir(file)
	command(t, s, "apply", dir).want(t, failure.ExitOK).prints(t, "The guard of c: strict")
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
	// At level moderate, before the first batch.
	var moderate sync.Once
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("update").StringValueOK(); name == "c" && r.documents > 1 {
			moderate.Do(inserts)
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write").want(t, failure.ExitOK).prints(t, "the second pass found no old value")
	inserts()
	back := prepared(t, s, "standard", convertFields("standard", "text", "customer"))
	command(t, s, "apply", back, "--write").want(t, failure.ExitUsage).says(t, "is guarded against text in customer")
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}
